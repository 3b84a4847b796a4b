#include "words.hpp"

#include <array>
#include <span>

namespace vicinal::python {
namespace {

constexpr std::array<std::string_view, 2> kRules = {"settled", "classical"};
constexpr std::array<std::string_view, 2> kEmpties = {"farthest", "keep"};
constexpr std::array<std::string_view, 3> kAgreements = {"ignored", "required", "enough"};
constexpr std::array<std::string_view, 3> kWeightings = {"uniform", "distance", "custom"};

/// Words in the order of their enumerators.
std::size_t place_of(std::string_view text, const char* what, std::span<const std::string_view> words) {
  std::string expected;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return i;
    expected += (i == 0 ? "" : ", ") + std::string(words[i]);
  }
  throw Error(ErrorCode::invalid_argument,
              std::string(what) + ": unknown value '" + std::string(text) + "'; expected one of " + expected);
}

}  // namespace

LleCount from_text(std::string_view text, LleCount) {
  for (int i = 0; i <= static_cast<int>(LleCount::by_solver); ++i) {
    if (name_of(static_cast<LleCount>(i)) == text) return static_cast<LleCount>(i);
  }
  throw Error(ErrorCode::invalid_argument, "count: unknown value '" + std::string(text) + "'");
}
KMeansRule from_text(std::string_view text, KMeansRule) {
  return static_cast<KMeansRule>(place_of(text, "rule", kRules));
}
EmptyClusters from_text(std::string_view text, EmptyClusters) {
  return static_cast<EmptyClusters>(place_of(text, "empty", kEmpties));
}
Agreement from_text(std::string_view text, Agreement) {
  return static_cast<Agreement>(place_of(text, "agreement", kAgreements));
}
Weighting from_text(std::string_view text, Weighting) {
  // A function stands for custom weights.
  return static_cast<Weighting>(place_of(text, "weights", std::span(kWeightings).first(2)));
}

std::string_view word_of(KMeansRule rule) {
  return kRules[static_cast<std::size_t>(rule)];
}
std::string_view word_of(EmptyClusters empty) {
  return kEmpties[static_cast<std::size_t>(empty)];
}
std::string_view word_of(Agreement agreement) {
  return kAgreements[static_cast<std::size_t>(agreement)];
}
std::string_view word_of(Weighting weights) {
  return kWeightings[static_cast<std::size_t>(weights)];
}

}  // namespace vicinal::python
