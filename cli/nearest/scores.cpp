// See scores.hpp.
#include "nearest/scores.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kLargestMatrix = 1000;

}  // namespace

Scores score(const Context& ctx, const Labels& labels, std::span<const std::int32_t> truth,
             std::span<const std::int32_t> predicted) {
  const std::int64_t c = labels.class_count();
  Scores scores{classification_scores(ctx, truth, predicted, c), {}, {}};
  for (std::int64_t j = 0; j < c; ++j) scores.names.push_back(labels.name_of(j));
  if (c <= kLargestMatrix) scores.confusion = confusion_matrix(ctx, truth, predicted, c);
  return scores;
}

std::vector<std::int32_t> codes_among(const Labels& training, const Labels& test, const std::string& file) {
  std::unordered_map<std::string, std::int32_t> code_of;
  for (std::int64_t j = 0; j < training.class_count(); ++j) code_of[training.name_of(j)] = static_cast<std::int32_t>(j);
  std::vector<std::int32_t> translated(static_cast<std::size_t>(test.class_count()), -1);
  for (std::int64_t j = 0; j < test.class_count(); ++j) {
    const auto found = code_of.find(test.name_of(j));
    if (found != code_of.end()) translated[static_cast<std::size_t>(j)] = found->second;
  }
  std::vector<std::int32_t> codes(test.codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = translated[static_cast<std::size_t>(test.codes[i])];
    if (codes[i] < 0) {
      throw Error(ErrorCode::bad_data, fmt::format("{}: the label '{}' of row {} does not occur in the training labels",
                                                   file, test.name_of(test.codes[i]), i));
    }
  }
  return codes;
}

Labels with_class(const Labels& labels, const std::string& name) {
  const auto widened = [&](const auto& list, const auto& value) {
    const auto at = std::lower_bound(list.begin(), list.end(), value);
    if (at != list.end() && *at == value) return labels;
    const auto code = static_cast<std::int32_t>(at - list.begin());
    auto longer = list;
    longer.insert(longer.begin() + code, value);
    Labels found{std::move(longer), labels.codes};
    for (std::int32_t& one : found.codes) one += one >= code ? 1 : 0;
    return found;
  };
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&labels.classes)) return widened(*texts, name);
  std::int64_t value = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, status] = std::from_chars(name.data(), end, value);
  if (status != std::errc() || rest != end) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--outlier: '{}' is not a whole number, as the labels of TRAIN are", name));
  }
  return widened(std::get<std::vector<std::int64_t>>(labels.classes), value);
}

std::int32_t code_of(const Labels& labels, const std::string& name) {
  for (std::int64_t code = 0; code < labels.class_count(); ++code) {
    if (labels.name_of(code) == name) return static_cast<std::int32_t>(code);
  }
  return -1;
}

}  // namespace vicinal::cli
