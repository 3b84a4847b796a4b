// One lookup for every enum that has names: name of a value, value of a name, and the sentence that lists the names.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal::core {

/// A value of an enum and its name, as users write it.
template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
};

/// The name of `value`, or "unknown" for a number outside the enum.
template <class Enum, std::size_t N>
std::string_view name_in(const std::array<Named<Enum>, N>& names, Enum value) noexcept {
  for (const auto& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

/// The value called `name`. Throws `invalid_argument`: what is unknown, and which names there are.
template <class Enum, std::size_t N>
Enum value_in(const std::array<Named<Enum>, N>& names, std::string_view what, std::string_view name) {
  std::string known;
  for (const auto& entry : names) {
    if (entry.name == name) return entry.value;
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown " + std::string(what) + " '" + std::string(name) + "': choose one of " + known);
}

}  // namespace vicinal::core
