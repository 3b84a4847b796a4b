// See preparation.hpp.
#include "reference/preparation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "reference/kmeans.hpp"

namespace vicinal::reference {
namespace {

std::vector<double> codes_of(const RawColumn& column, const std::vector<std::string>& texts) {
  if (texts.empty()) return column.numbers;
  std::vector<double> codes;
  for (const std::string& text : column.texts) {
    codes.push_back(static_cast<double>(std::find(texts.begin(), texts.end(), text) - texts.begin()));
  }
  return codes;
}

}  // namespace

std::vector<ColumnRule> fit_columns(const std::vector<RawColumn>& table, const std::string& scaling, bool one_hot) {
  std::vector<ColumnRule> rules;
  for (const RawColumn& column : table) {
    ColumnRule rule;
    const std::set<std::string> texts(column.texts.begin(), column.texts.end());
    rule.texts.assign(texts.begin(), texts.end());
    rule.one_hot = one_hot && !texts.empty();
    const std::vector<double> x = codes_of(column, rule.texts);
    const auto n = static_cast<double>(x.size());
    const double least = *std::min_element(x.begin(), x.end());  // the first of equal ones
    const double range = *std::max_element(x.begin(), x.end()) - least;
    if (!rule.one_hot && scaling == "minmax") {
      rule.shift = least;
      rule.scale = range > 0 ? range : 1;
    }
    if (!rule.one_hot && scaling == "standard") {
      rule.shift = exact_sum(x) / n;
      const double e = std::max(1e-300, range);
      std::vector<double> squares;
      for (const double value : x) {
        const double deviation = (value - rule.shift) / e;
        squares.push_back(deviation * deviation);
      }
      const double deviation = e * std::sqrt(exact_sum(squares) / n);
      rule.scale = range > 0 && deviation > 0 ? deviation : 1;
    }
    rules.push_back(rule);
  }
  return rules;
}

std::vector<double> apply_columns(const std::vector<ColumnRule>& rules, const std::vector<RawColumn>& table) {
  std::vector<std::vector<double>> codes;
  for (std::size_t j = 0; j < rules.size(); ++j) codes.push_back(codes_of(table[j], rules[j].texts));
  std::vector<double> rows;
  for (std::size_t i = 0; i < codes[0].size(); ++i) {
    for (std::size_t j = 0; j < rules.size(); ++j) {
      const ColumnRule& rule = rules[j];
      if (!rule.one_hot) {
        rows.push_back((codes[j][i] - rule.shift) / rule.scale);
        continue;
      }
      for (const std::string& text : rule.texts) rows.push_back(text == table[j].texts[i] ? 1 : 0);
    }
  }
  return rows;
}

}  // namespace vicinal::reference
