// See filter.hpp.
#include "gdal/filter.hpp"

#include <cctype>
#include <charconv>
#include <compare>
#include <optional>

#include "gdal/source.hpp"

namespace vicinal::gdal {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

/// A whole number exactly, another one as float64; nothing where the text is none.
std::optional<long double> number_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end) {
    return static_cast<long double>(whole);
  }
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end || real != real) return std::nullopt;
  return static_cast<long double>(real);
}

bool is_numeric(OGRFieldType type) {
  return type == OFTInteger || type == OFTInteger64 || type == OFTReal;
}

}  // namespace

/// The text of a filter, taken from the left.
class FilterText {
 public:
  FilterText(const std::string& path, std::string_view text, const OGRFeatureDefn& columns)
      : path_(path), text_(text), columns_(columns) {}

  void read(Filter& filter) {
    do {
      auto& conjunct = filter.conjuncts_.emplace_back();
      do {
        conjunct.push_back(comparison());
        filter.columns_.push_back(conjunct.back().column);
      } while (takes_word("and"));
    } while (takes_word("or"));
    if (at_end()) return;
    refuse("'and', 'or' or its end must follow");
  }

 private:
  [[noreturn]] void refuse(const std::string& wanted) {
    at_end();
    const std::string read(text_.substr(0, at_));
    throw Failure(kInvalidArgument, path_ + ": the filter \"" + std::string(text_) + "\" cannot be read: " +
                                        (read.empty() ? "at its beginning" : "after '" + read + "'") + " " + wanted);
  }
  bool at_end() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ == text_.size();
  }
  bool takes(std::string_view sign) {
    if (at_end() || !text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  bool takes_word(std::string_view word) {
    if (at_end()) return false;
    const std::size_t before = at_;
    std::string found = bare();
    for (char& c : found) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (found == word) return true;
    at_ = before;
    return false;
  }
  std::string bare() {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return std::string(text_.substr(first, at_ - first));
  }
  /// What stands between two of `mark`, which is doubled inside.
  std::string quoted(char mark) {
    std::string found;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == mark) {
        ++at_;
        if (at_ == text_.size() || text_[at_] != mark) return found;
      }
      found += text_[at_];
    }
    refuse(std::string("a closing ") + mark + " must follow");
  }

  Filter::Comparison comparison() {
    if (at_end()) refuse("a column must follow");
    const std::string name = text_[at_] == '"' ? quoted('"') : bare();
    if (name.empty()) refuse("a column must follow (\"in double quotes\" where its name is not one word)");
    Filter::Comparison found;
    found.column = column_of(path_, columns_, name);
    if (takes_word("is")) {
      found.kind = takes_word("not") ? Filter::Kind::not_null : Filter::Kind::null;
      if (!takes_word("null")) refuse("'null' must follow");
      return found;
    }
    if (takes_word("in")) {
      found.kind = Filter::Kind::in;
      if (!takes("(")) refuse("'(' and a list of values must follow");
      do found.values.push_back(value(found.column));
      while (takes(","));
      if (!takes(")")) refuse("',' or ')' must follow");
      return found;
    }
    using Kind = Filter::Kind;
    found.kind = takes("!=") || takes("<>") ? Kind::unequal
                 : takes("<=")              ? Kind::less_or_equal
                 : takes(">=")              ? Kind::greater_or_equal
                 : takes("<")               ? Kind::less
                 : takes(">")               ? Kind::greater
                 : takes("=")               ? Kind::equal
                                            : Kind::null;
    if (found.kind == Kind::null) refuse("=, !=, <, <=, >, >=, 'in' or 'is' must follow");
    takes("=");  // "==" is read as "="
    found.values.push_back(value(found.column));
    return found;
  }

  Filter::Value value(int column) {
    const bool ended = at_end();
    if (!ended && text_[at_] == '\'') {
      const OGRFieldDefn& field = *columns_.GetFieldDefn(column);
      if (is_numeric(field.GetType())) {
        refuse(std::string("a number without quotes must follow: column '") + field.GetNameRef() + "' has numbers");
      }
      return {quoted('\''), 0, false};
    }
    const std::size_t first = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '+' || text_[at_] == '-')) {
      ++at_;
    }
    const std::string text(text_.substr(first, at_ - first));
    const std::optional<long double> number = number_of(text);
    if (!number) {
      at_ = first;
      refuse("a number or a text in 'single quotes' must follow");
    }
    return {text, *number, true};
  }

  const std::string& path_;
  std::string_view text_;
  const OGRFeatureDefn& columns_;
  std::size_t at_ = 0;
};

Filter::Filter(const std::string& path, std::string_view text, const OGRFeatureDefn& columns) {
  FilterText(path, text, columns).read(*this);
}

bool Filter::agrees(const OGRFeature& feature, const Comparison& comparison) {
  const int at = comparison.column;
  const bool missing = !feature.IsFieldSetAndNotNull(at);
  if (comparison.kind == Kind::null) return missing;
  if (missing || comparison.kind == Kind::not_null) return !missing;
  const OGRFieldType type = feature.GetFieldDefnRef(at)->GetType();
  const auto compared = [&](const Value& value) -> std::partial_ordering {
    if (!value.is_number) return std::string_view(feature.GetFieldAsString(at)) <=> std::string_view(value.text);
    if (type == OFTReal) return static_cast<long double>(feature.GetFieldAsDouble(at)) <=> value.number;
    if (is_numeric(type)) return static_cast<long double>(feature.GetFieldAsInteger64(at)) <=> value.number;
    const std::optional<long double> number = number_of(feature.GetFieldAsString(at));
    return number ? *number <=> value.number : std::partial_ordering::unordered;
  };
  if (comparison.kind == Kind::in) {
    for (const Value& value : comparison.values) {
      if (compared(value) == 0) return true;
    }
    return false;
  }
  const std::partial_ordering order = compared(comparison.values.front());
  switch (comparison.kind) {
    case Kind::equal:
      return order == 0;
    case Kind::unequal:
      return order < 0 || order > 0;
    case Kind::less:
      return order < 0;
    case Kind::less_or_equal:
      return order <= 0;
    case Kind::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool Filter::keeps(const OGRFeature& feature) const {
  if (conjuncts_.empty()) return true;
  for (const auto& conjunct : conjuncts_) {
    bool all = true;
    for (const Comparison& comparison : conjunct) {
      all = agrees(feature, comparison);
      if (!all) break;
    }
    if (all) return true;
  }
  return false;
}

int column_of(const std::string& path, const OGRFeatureDefn& columns, const std::string& name) {
  const int at = columns.GetFieldIndex(name.c_str());
  if (at >= 0) return at;
  std::string names;
  for (int i = 0; i < columns.GetFieldCount(); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(columns.GetFieldDefn(i)->GetNameRef());
  }
  throw Failure(kInvalidArgument, path + ": there is no column '" + name + "'; there are: " + names);
}

}  // namespace vicinal::gdal
