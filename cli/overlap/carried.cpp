// See carried.hpp.
#include "overlap/carried.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "overlap/output.hpp"

namespace vicinal::cli {
namespace {

const PolygonColumn& column_called(const PolygonLayer& layer, const std::string& name) {
  return *std::find_if(layer.columns.begin(), layer.columns.end(),
                       [&name](const PolygonColumn& column) { return column.name == name; });
}

/// Those of a column of numbers, or what its texts spell.
std::vector<double> numbers_of(const PolygonColumn& column, const PolygonLayer& layer, const std::string& path) {
  if (!column.numbers.empty()) return column.numbers;
  std::vector<double> numbers;
  numbers.reserve(column.texts.size());
  for (std::size_t i = 0; i < column.texts.size(); ++i) {
    poll_interrupt();
    const std::string_view text = column.texts[i];
    double number = std::numeric_limits<double>::quiet_NaN();
    if (!text.empty()) {
      const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
      if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(number)) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("{}: feature {}: '{}' in column '{}' is no number: carry its texts by --carry {}", path,
                                layer.ids[i], text, column.name, column.name));
      }
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// Texts of the largest share.
void add_texts(const Context& ctx, const PolygonColumn& column, const Match& match, CarriedColumns& to) {
  std::unordered_map<std::string_view, std::int64_t> known;
  std::vector<std::string_view> texts;
  std::vector<std::int64_t> codes;
  for (const std::string& text : column.texts) {
    poll_interrupt();
    if (text.empty()) {
      codes.push_back(-1);
      continue;
    }
    const auto [place, is_new] = known.emplace(text, static_cast<std::int64_t>(texts.size()));
    if (is_new) texts.push_back(text);
    codes.push_back(place->second);
  }
  CarriedCodes found = carry_codes(ctx, match, codes);
  PolygonColumn& carried = to.columns.emplace_back();
  carried.name = "old_" + column.name;
  for (const std::int64_t code : found.codes) {
    carried.texts.emplace_back(code < 0 ? std::string_view() : texts[static_cast<std::size_t>(code)]);
  }
  to.columns.push_back({"old_" + column.name + "_share", {}, std::move(found.shares)});
}

void add_numbers(const Context& ctx, const PolygonColumn& column, const std::string& path, const PolygonLayer& layer,
                 const Match& match, CarryRule rule, CarriedColumns& to) {
  const std::vector<double> values = numbers_of(column, layer, path);
  CarriedNumbers found = carry(ctx, match, values, rule);
  to.columns.push_back({"old_" + column.name, {}, std::move(found.values)});
  to.columns.push_back({"old_" + column.name + "_share", {}, std::move(found.shares)});
  if (rule == CarryRule::mean) return;
  to.left.push_back(found.left);
  double total = 0;
  for (const double value : values) total += std::isnan(value) ? 0 : value;
  to.total.push_back(total);
}

}  // namespace

std::vector<std::string> CarryOptions::columns() const {
  std::vector<std::string> names;
  for (const auto* const list : {&largest, &sum, &mean}) {
    for (const std::string& name : *list) {
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("column '{}' is to be carried twice: name it in one of --carry, --carry-sum and "
                                "--carry-mean",
                                name));
      }
      names.push_back(name);
    }
  }
  return names;
}

CarriedColumns carry_columns(const Context& ctx, const CarryOptions& options, const std::string& path_a,
                             const PolygonLayers& layers, const Match& match) {
  CarriedColumns carried;
  for (const std::string& name : options.largest) add_texts(ctx, column_called(layers.a, name), match, carried);
  for (const std::string& name : options.sum) {
    add_numbers(ctx, column_called(layers.a, name), path_a, layers.a, match, CarryRule::sum, carried);
  }
  for (const std::string& name : options.mean) {
    add_numbers(ctx, column_called(layers.a, name), path_a, layers.a, match, CarryRule::mean, carried);
  }
  return carried;
}

std::string carried_csv(const PolygonLayers& layers, const Match& match, const CarriedColumns& carried) {
  const PolygonLayer& b = layers.b;
  std::string text = b.names.empty() ? "b_id,change,status" : "b_id,b_name,change,status";
  for (const PolygonColumn& column : carried.columns) text += "," + csv_field(column.name);
  text += "\n";
  for (std::size_t j = 0; j < match.b.size(); ++j) {
    poll_interrupt();
    const Change change = match.groups[static_cast<std::size_t>(match.b[j].group)].change;
    text += csv_field(b.ids[j]);
    if (!b.names.empty()) text += "," + csv_field(b.names[j]);
    fmt::format_to(std::back_inserter(text), ",{},{}", name_of(change), status_of(change));
    for (const PolygonColumn& column : carried.columns) {
      text += ',';
      if (column.numbers.empty()) {
        text += csv_field(column.texts[j]);
      } else if (!std::isnan(column.numbers[j])) {
        fmt::format_to(std::back_inserter(text), "{}", column.numbers[j]);
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace vicinal::cli
