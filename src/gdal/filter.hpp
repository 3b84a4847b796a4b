// Which features of a layer are read: comparisons of their columns, joined by `and` and `or`. An expression of our own,
// because GDAL would hand one to SQLite, whose functions open other files and addresses.
//
//   filter     = conjunct { "or" conjunct }
//   conjunct   = comparison { "and" comparison }
//   comparison = column operator value | column "in" "(" value { "," value } ")" | column "is" ["not"] "null"
//   operator   = "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//   column     = a word, or "any name"          value = a number, or 'any text'
//
// A number is compared with numbers, and with the numbers that texts spell; a text with a column's texts, byte by byte.
// A value that is missing, or a text that spells no number, agrees with no comparison but `is null`, which is for
// missing values only.
#pragma once

#include <ogr_feature.h>

#include <string>
#include <string_view>
#include <vector>

namespace vicinal::gdal {

class Filter {
 public:
  /// Keeps all.
  Filter() = default;
  /// Throws Failure with a sentence that begins with `path` for what is no filter and for unknown columns.
  Filter(const std::string& path, std::string_view text, const OGRFeatureDefn& columns);

  [[nodiscard]] bool keeps(const OGRFeature& feature) const;
  [[nodiscard]] bool keeps_all() const noexcept { return conjuncts_.empty(); }
  /// That it compares.
  [[nodiscard]] const std::vector<int>& columns() const noexcept { return columns_; }

 private:
  friend class FilterText;
  enum class Kind { equal, unequal, less, less_or_equal, greater, greater_or_equal, in, null, not_null };
  struct Value {
    std::string text;
    long double number = 0;  // exact for int64 and float64
    bool is_number = false;
  };
  struct Comparison {
    int column = 0;
    Kind kind = Kind::equal;
    std::vector<Value> values;
  };

  static bool agrees(const OGRFeature& feature, const Comparison& comparison);

  std::vector<std::vector<Comparison>> conjuncts_;
  std::vector<int> columns_;
};

/// The column of that name, without regard to case. Throws Failure that lists the names there are.
int column_of(const std::string& path, const OGRFeatureDefn& columns, const std::string& name);

}  // namespace vicinal::gdal
