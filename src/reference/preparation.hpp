// The oracle of prepared columns, by the letter of docs/contract.md, clause 20: sums in integers wide enough for every
// float64, a value at a time. Shares no code with the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vicinal::reference {

/// A column of a table: numbers, or texts.
struct RawColumn {
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

/// How a fitted column is prepared.
struct ColumnRule {
  std::vector<std::string> texts;  ///< ascending, each once; none: numbers
  bool one_hot = false;
  double shift = 0;
  double scale = 1;
};

/// `scaling`: "none", "standard" or "minmax".
std::vector<ColumnRule> fit_columns(const std::vector<RawColumn>& table, const std::string& scaling, bool one_hot);

/// The rows [n, width], row-major.
std::vector<double> apply_columns(const std::vector<ColumnRule>& rules, const std::vector<RawColumn>& table);

}  // namespace vicinal::reference
