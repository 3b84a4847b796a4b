// See suggestion.hpp.
#include "base/suggestion.hpp"

#include <algorithm>
#include <cstddef>

namespace vicinal::cli {
namespace {

/// The changes that lead from one word to the other, row by row of the usual table; three rows are enough.
std::size_t changes_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool is_same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (is_same ? 0 : 1)});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> closest_word(std::string_view word, const std::vector<std::string>& candidates) {
  // Nothing that anyone types by mistake is longer, and the table would grow with its square.
  constexpr std::size_t max_word = 64;
  if (word.empty() || word.size() > max_word) return std::nullopt;
  std::vector<std::string> begun;
  const std::string* closest = nullptr;
  std::size_t fewest = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.starts_with(word)) begun.push_back(candidate);
    const std::size_t changes = changes_between(word, candidate);
    if (changes >= fewest) continue;
    fewest = changes;
    closest = &candidate;
  }
  if (begun.size() == 1) return begun.front();
  return closest == nullptr ? std::nullopt : std::optional<std::string>(*closest);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace vicinal::cli
