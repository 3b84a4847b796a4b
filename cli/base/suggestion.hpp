// "Did you mean": the known word that a mistyped one is closest to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vicinal::cli {

/// The candidate with the fewest changes (a letter added, left out, replaced, or two neighbors swapped) between it and
/// `word`, if those are at most one in three letters or `word` is the beginning of exactly one candidate. Of equally
/// close ones the first.
std::optional<std::string> closest_word(std::string_view word, const std::vector<std::string>& candidates);

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& words);

}  // namespace vicinal::cli
