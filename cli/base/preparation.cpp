// See preparation.hpp.
#include "base/preparation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "base/input.hpp"
#include "core/exact_sum.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kRowsRead = 4096;

/// Calls visit(i, j, value) for all values, a block of rows column by column, so that it stays in the cache.
template <class Visit>
void for_each_value(const Context& ctx, const TableView& view, const Visit& visit) {
  for (std::int64_t first = 0; first < view.rows(); first += kRowsRead) {
    ctx.check_cancelled();
    const std::int64_t last = std::min(first + kRowsRead, view.rows());
    for (std::int64_t j = 0; j < view.cols(); ++j) {
      for (std::int64_t i = first; i < last; ++i) visit(i, j, value_at(view, i, j));
    }
  }
}

/// What a column's scale is made of.
struct Spread {
  double least = INFINITY;
  double most = -INFINITY;
  core::ExactSum sum;
  core::ExactSum squares;
};

/// Mean and standard deviation, or least value and range, of each column. Exact sums, so that no order shows.
void fit_scales(const Context& ctx, const TableView& view, const std::string& scale,
                std::vector<Preparation::Column>& columns) {
  std::vector<Spread> spreads(columns.size());
  const bool standard = scale == "standard";
  for_each_value(ctx, view, [&](std::int64_t i, std::int64_t j, double value) {
    if (!std::isfinite(value)) {
      throw Error(ErrorCode::bad_data, fmt::format("table: row {}, column {} is not finite", i, j));
    }
    Spread& spread = spreads[static_cast<std::size_t>(j)];
    spread.least = std::min(spread.least, value);
    spread.most = std::max(spread.most, value);
    if (standard) spread.sum.add(value);
  });
  const auto rows = static_cast<double>(view.rows());
  std::vector<double> units;  // squares of deviations would overflow or vanish
  for (std::size_t j = 0; j < columns.size(); ++j) {
    columns[j].shift = standard ? spreads[j].sum.rounded() / rows : spreads[j].least;
    columns[j].scale = spreads[j].most - spreads[j].least;
    if (!std::isfinite(columns[j].scale) || !std::isfinite(columns[j].shift)) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("table: column {} has a range beyond float64, so that it cannot be scaled", j));
    }
    units.push_back(std::max(columns[j].scale, 1e-300));
  }
  if (standard) {
    for_each_value(ctx, view, [&](std::int64_t /*i*/, std::int64_t j, double value) {
      const auto at = static_cast<std::size_t>(j);
      const double deviation = (value - columns[at].shift) / units[at];
      spreads[at].squares.add(deviation * deviation);
    });
    for (std::size_t j = 0; j < columns.size(); ++j) {
      columns[j].scale = units[j] * std::sqrt(spreads[j].squares.rounded() / rows);
    }
  }
  for (std::size_t j = 0; j < columns.size(); ++j) {
    if (!(spreads[j].most > spreads[j].least && columns[j].scale > 0)) columns[j].scale = 1;
  }
}

std::optional<std::int64_t> position_of(const std::string& reference, const std::vector<std::string>& names) {
  const auto named = std::find(names.begin(), names.end(), reference);
  if (named != names.end()) return named - names.begin();
  std::int64_t position = 0;
  const char* const end = reference.data() + reference.size();
  const auto result = std::from_chars(reference.data(), end, position);
  if (result.ec != std::errc() || result.ptr != end || position < 0) return std::nullopt;
  return position;
}

}  // namespace

void add_preparation_options(const Parser& command, PreparationOptions& options) {
  const std::string group = "Preparing columns";
  command
      .add_choice(
          "--categories", options.categories, {"none", "ordinal", "onehot"},
          "Text columns; ordinal: numbers in the order of the sorted texts of TRAIN; onehot: one column per text")
      .group(group);
  command
      .add_choice("--scale", options.scale, {"none", "standard", "minmax"},
                  "Scale columns: standard: mean 0 and deviation 1; minmax: 0 to 1; fitted on TRAIN")
      .group(group);
}

Preparation Preparation::fit(const Context& ctx, const Table& table, const PreparationOptions& options) {
  Preparation found;
  found.scale_ = options.scale;
  for (std::int64_t j = 0; j < table.view.cols(); ++j) {
    const auto at = static_cast<std::size_t>(j);
    Column column;
    if (at < table.columns.size()) column.name = table.columns[at];
    if (at < table.categories.size()) column.categories = table.categories[at];
    column.one_hot = options.categories == "onehot" && !column.categories.empty();
    found.columns_.push_back(std::move(column));
  }
  if (options.scale != "none" && table.view.rows() > 0) fit_scales(ctx, table.view, options.scale, found.columns_);
  for (Column& column : found.columns_) {
    if (!column.one_hot) continue;
    column.shift = 0;
    column.scale = 1;
  }
  return found;
}

bool Preparation::has_texts() const noexcept {
  return std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return !column.categories.empty(); });
}

std::string Preparation::texts_as() const {
  if (!has_texts()) return {};
  const bool one_hot =
      std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.one_hot; });
  return one_hot ? "one-hot" : "ordinal";
}

std::int64_t Preparation::width() const noexcept {
  return std::accumulate(columns_.begin(), columns_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Column& column) { return sum + column.width(); });
}

std::string Preparation::name_of(std::int64_t column) const {
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& source = columns_[j];
    if (column >= source.width()) {
      column -= source.width();
      continue;
    }
    const std::string name = name_of_source(static_cast<std::int64_t>(j));
    return source.one_hot ? fmt::format("{}={}", name, source.categories[static_cast<std::size_t>(column)]) : name;
  }
  return fmt::format("column {}", column);
}

std::string Preparation::name_of_source(std::int64_t column) const {
  const auto at = static_cast<std::size_t>(column);
  return at < columns_.size() && !columns_[at].name.empty() ? columns_[at].name : fmt::format("column {}", column);
}

void Preparation::require_same_names(const std::vector<std::string>& names, const std::string& file) const {
  for (std::size_t j = 0; j < std::min(names.size(), columns_.size()); ++j) {
    const std::string& wanted = columns_[j].name;
    if (wanted.empty() || names[j].empty() || names[j] == wanted) continue;
    throw Error(ErrorCode::bad_data,
                fmt::format("{} has a column '{}' where the table that rows are compared with has '{}'", file, names[j],
                            wanted));
  }
}

void Preparation::require_same_columns(const Table& table, const std::string& file) const {
  const auto d = static_cast<std::int64_t>(columns_.size());
  if (table.view.cols() != d) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} has {} columns, the table that rows are compared with has {}", file, table.view.cols(), d));
  }
  require_same_names(table.columns, file);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    const bool text = j < table.categories.size() && !table.categories[j].empty();
    if (text == column.categories.empty()) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("{} has {} in {}, where the table that rows are compared with has {}", file,
                              text ? "text" : "numbers", name_of_source(static_cast<std::int64_t>(j)),
                              text ? "numbers" : "text"));
    }
  }
}

Table Preparation::apply(const Context& ctx, Table table, const std::string& file) const {
  require_same_columns(table, file);
  if (scale_ == "none" && !has_texts()) return table;
  const std::int64_t n = table.view.rows();
  const std::int64_t d = width();
  // The number here of each text of the file.
  std::vector<std::vector<double>> codes(columns_.size());
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (columns_[j].categories.empty()) continue;
    const std::vector<std::string>& known = columns_[j].categories;
    auto found = known.begin();  // both are in ascending order
    std::int64_t steps = 0;
    for (const std::string& text : table.categories[j]) {
      for (; found != known.end() && *found < text; ++found) {
        if (++steps % kRowsRead == 0) ctx.check_cancelled();
      }
      if (++steps % kRowsRead == 0) ctx.check_cancelled();
      const bool there = found != known.end() && *found == text;
      codes[j].push_back(static_cast<double>((there ? found : known.end()) - known.begin()));
    }
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(d) * sizeof(double);
  if (bytes > ctx.memory_limit()) {
    throw Error(ErrorCode::over_memory, fmt::format("preparing {} needs {} bytes, more than the memory limit of {}",
                                                    file, bytes, ctx.memory_limit()));
  }
  const auto values = std::make_shared<std::vector<double>>();
  values->reserve(static_cast<std::size_t>(n * d));
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kRowsRead == 0) ctx.check_cancelled();
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const Column& column = columns_[j];
      double value = value_at(table.view, i, static_cast<std::int64_t>(j));
      if (!codes[j].empty()) value = codes[j][static_cast<std::size_t>(value)];
      if (column.one_hot) {
        for (std::int64_t c = 0; c < column.width(); ++c) values->push_back(static_cast<double>(c) == value ? 1 : 0);
        continue;
      }
      value = (value - column.shift) / column.scale;
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("{} row {}, column {} is not finite, or not after scaling", file, i, j));
      }
      values->push_back(value);
    }
  }
  table.view = TableView(values->data(), n, d);
  table.storage = values;
  table.categories.clear();
  return table;
}

void Preparation::find_texts(ReadOptions& reading, const std::vector<std::string>& names,
                             const std::vector<std::string>& left_out, const std::string& file) const {
  std::set<std::int64_t> skipped;
  for (const std::string& reference : left_out) {
    if (const auto position = position_of(reference, names)) skipped.insert(*position);
  }
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (skipped.count(static_cast<std::int64_t>(i)) == 0) kept.push_back(names[i]);
  }
  if (kept.size() == columns_.size()) require_same_names(kept, file);
  std::int64_t position = 0;
  for (const Column& column : columns_) {
    while (skipped.count(position) != 0) ++position;
    std::string reference = fmt::format("{}", position);
    if (std::find(names.begin(), names.end(), reference) != names.end()) {  // it would be taken for a name
      reference = names[static_cast<std::size_t>(position) % names.size()];
    }
    if (!column.categories.empty()) reading.text.push_back(reference);
    ++position;
  }
}

std::string Preparation::summary() const {
  std::string options;
  if (has_texts()) options = texts_as() == "one-hot" ? "--categories onehot" : "--categories ordinal";
  if (scale_ != "none") options += (options.empty() ? "--scale " : " --scale ") + scale_;
  return options;
}

std::string Preparation::to_text() const {
  nlohmann::json columns = nlohmann::json::array();
  for (const Column& column : columns_) {
    columns.push_back({{"name", column.name},
                       {"categories", column.categories},
                       {"one_hot", column.one_hot},
                       {"shift", column.shift},
                       {"scale", column.scale}});
  }
  try {
    return nlohmann::json{{"scale", scale_}, {"columns", columns}}.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_argument, "--save-model: the table's texts are not UTF-8, which a model file needs");
  }
}

Preparation Preparation::from_text(const std::string& text, std::int64_t d, const std::string& file) {
  const Error bad(ErrorCode::bad_data,
                  fmt::format("model file '{}': its preparation is not one for {} columns", file, d));
  const nlohmann::json all = nlohmann::json::parse(text, nullptr, false);
  Preparation found;
  try {
    found.scale_ = all.at("scale").get<std::string>();
    for (const nlohmann::json& one : all.at("columns")) {
      Column column{one.at("name").get<std::string>(), one.at("categories").get<std::vector<std::string>>(),
                    one.at("shift").get<double>(), one.at("scale").get<double>(), one.value("one_hot", false)};
      const auto& texts = column.categories;
      const bool ascending = std::adjacent_find(texts.begin(), texts.end(), std::greater_equal<>()) == texts.end();
      if (column.one_hot && texts.empty()) throw bad;
      if (!ascending || !std::isfinite(column.shift) || !std::isfinite(column.scale) || !(column.scale > 0)) throw bad;
      found.columns_.push_back(std::move(column));
    }
  } catch (const nlohmann::json::exception&) {
    throw bad;
  }
  const bool known = found.scale_ == "none" || found.scale_ == "standard" || found.scale_ == "minmax";
  if (!known || found.width() != d) throw bad;
  return found;
}

}  // namespace vicinal::cli
