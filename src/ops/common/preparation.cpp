// Preparation (contract clause 20). Blocks of rows are widened and read column by column, so that a column's sums stay
// in the cache; each worker has sums of its own, which are exact, so that no order shows in what they add up to.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "core/table_access.hpp"
#include "io/csv_layout.hpp"
#include "io/format.hpp"
#include "io/shown.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Scaling>, 3> kScalings = {{
    {Scaling::none, "none"},
    {Scaling::standard, "standard"},
    {Scaling::minmax, "minmax"},
}};
constexpr std::array<core::Named<TextCodes>, 2> kTextCodes = {{
    {TextCodes::ordinal, "ordinal"},
    {TextCodes::one_hot, "onehot"},
}};

using PreparedColumns = std::vector<Preparation::Column>;

constexpr std::int64_t kBlockValues = std::int64_t{1} << 16;
constexpr std::int64_t kStepsPerPoll = 4096;

/// Blocks of a table's rows as float64, in parallel unless the table itself comes in blocks, by one thread.
class Blocks {
 public:
  Blocks(const Context& ctx, const TableView& view)
      : ctx_(ctx),
        view_(view),
        rows_(std::max<std::int64_t>(1, kBlockValues / std::max<std::int64_t>(1, view.cols()))),
        count_((view.rows() + rows_ - 1) / rows_) {}

  /// Numbers of workers are below it; no more of them than `busy` get a block.
  [[nodiscard]] std::size_t workers() const { return static_cast<std::size_t>(ctx_.threads()); }
  [[nodiscard]] std::uint64_t busy() const {
    return view_.is_block_source() ? 1 : static_cast<std::uint64_t>(std::min<std::int64_t>(ctx_.threads(), count_));
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return busy() * static_cast<std::uint64_t>(rows_) * static_cast<std::uint64_t>(view_.cols()) * sizeof(double);
  }
  /// Calls body(worker, first row, rows, values [rows, cols]). Where bodies throw, the exception of the first block is
  /// thrown, whatever the number of threads.
  template <class Body>
  void for_each(const Body& body) const {
    std::vector<std::vector<double>> values(workers());
    const auto visit = [&](std::int64_t block, int worker) {
      std::vector<double>& mine = values[static_cast<std::size_t>(worker)];
      const std::int64_t first = block * rows_;
      const std::int64_t last = std::min(first + rows_, view_.rows());
      if (mine.empty()) mine.resize(static_cast<std::size_t>(rows_ * view_.cols()));
      core::widen_rows(view_, first, last, mine.data());
      body(static_cast<std::size_t>(worker), first, last - first, mine.data());
    };
    if (!view_.is_block_source()) return core::parallel_for(ctx_, count_, visit);
    for (std::int64_t block = 0; block < count_; ++block) {
      ctx_.check_cancelled();
      visit(block, 0);
    }
  }

 private:
  const Context& ctx_;
  const TableView& view_;
  std::int64_t rows_;
  std::int64_t count_;
};

void require_on_host(const TableView& view, const std::string& name) {
  if (view.memory() == Memory::cuda) {
    refuse(name + ": is in device memory, but columns are prepared on the host; copy the rows to host memory");
  }
}

std::string place(std::int64_t row, std::size_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

/// Least and largest value of a column, and exact sums where they are asked for.
struct Spread {
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  /// The first zero in the order of the rows, whose sign a least value of 0 has.
  std::int64_t zero_row = std::numeric_limits<std::int64_t>::max();
  double zero = 0;

  void add(double value, std::int64_t row) {
    least = std::min(least, value);
    largest = std::max(largest, value);
    if (value == 0 && row < zero_row) {
      zero_row = row;
      zero = value;
    }
  }
  void add(const Spread& other) {
    least = std::min(least, other.least);
    largest = std::max(largest, other.largest);
    if (other.zero_row < zero_row) {
      zero_row = other.zero_row;
      zero = other.zero;
    }
  }
};

/// What every worker found, joined.
template <class One>
std::vector<One> joined(std::vector<std::vector<One>>& of_workers, std::size_t columns) {
  std::vector<One> all(columns);
  for (std::vector<One>& found : of_workers) {
    for (std::size_t j = 0; j < found.size(); ++j) all[j].add(found[j]);
    found = {};
  }
  return all;
}

/// Mean and standard deviation, or least value and range, of each column.
void fit_scales(const Context& ctx, const TableView& view, Scaling scaling, std::vector<Preparation::Column>& columns) {
  const bool standard = scaling == Scaling::standard;
  const std::size_t d = columns.size();
  const Blocks blocks(ctx, view);
  const std::uint64_t per_column = sizeof(Spread) + (standard ? sizeof(core::ExactSum) : 0);
  core::require_memory(ctx, blocks.bytes() + (blocks.busy() + 1) * d * per_column, "fitting the preparation");

  std::vector<std::vector<Spread>> spreads_of(blocks.workers());
  std::vector<std::vector<core::ExactSum>> sums_of(blocks.workers());
  blocks.for_each([&](std::size_t worker, std::int64_t first, std::int64_t rows, const double* values) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        if (std::isfinite(values[static_cast<std::size_t>(i) * d + j])) continue;
        throw Error(ErrorCode::bad_data, "table: " + place(first + i, j) + " is not finite");
      }
    }
    std::vector<Spread>& spreads = spreads_of[worker];
    std::vector<core::ExactSum>& sums = sums_of[worker];
    if (spreads.empty()) spreads.resize(d);
    if (standard && sums.empty()) sums.resize(d);
    for (std::size_t j = 0; j < d; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const double value = values[static_cast<std::size_t>(i) * d + j];
        spreads[j].add(value, first + i);
        if (standard) sums[j].add(value);
      }
    }
  });
  std::vector<Spread> spreads = joined(spreads_of, d);
  const std::vector<core::ExactSum> sums = joined(sums_of, d);
  const auto rows = static_cast<double>(view.rows());
  std::vector<double> units;  // squares of deviations would overflow or vanish
  for (std::size_t j = 0; j < d; ++j) {
    if (spreads[j].least == 0) spreads[j].least = spreads[j].zero;
    columns[j].shift = standard ? sums[j].rounded() / rows : spreads[j].least;
    columns[j].scale = spreads[j].largest - spreads[j].least;
    if (!std::isfinite(columns[j].scale) || !std::isfinite(columns[j].shift)) {
      throw Error(ErrorCode::bad_data,
                  "table: column " + std::to_string(j) + " has a range beyond float64, so that it cannot be scaled");
    }
    units.push_back(std::max(columns[j].scale, 1e-300));
  }
  if (standard) {
    std::vector<std::vector<core::ExactSum>> squares_of(blocks.workers());
    blocks.for_each([&](std::size_t worker, std::int64_t /*first*/, std::int64_t count, const double* values) {
      std::vector<core::ExactSum>& squares = squares_of[worker];
      if (squares.empty()) squares.resize(d);
      for (std::size_t j = 0; j < d; ++j) {
        for (std::int64_t i = 0; i < count; ++i) {
          const double deviation = (values[static_cast<std::size_t>(i) * d + j] - columns[j].shift) / units[j];
          squares[j].add(deviation * deviation);
        }
      }
    });
    const std::vector<core::ExactSum> squares = joined(squares_of, d);
    for (std::size_t j = 0; j < d; ++j) columns[j].scale = units[j] * std::sqrt(squares[j].rounded() / rows);
  }
  for (std::size_t j = 0; j < d; ++j) {
    if (!(spreads[j].largest > spreads[j].least && columns[j].scale > 0)) columns[j].scale = 1;
  }
}

bool ascend(const std::vector<std::string>& texts) {
  return std::adjacent_find(texts.begin(), texts.end(), std::greater_equal<>()) == texts.end();
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

Preparation fitted(const Context& ctx, const Table& table, const PreparationOptions& options) {
  const TableView& view = table.view;
  if (options.scaling > Scaling::minmax) refuse("scaling: unknown value; expected one of none, standard, minmax");
  if (options.texts > TextCodes::one_hot) refuse("texts: unknown value; expected one of ordinal, onehot");
  if (!table.categories.empty() && static_cast<std::int64_t>(table.categories.size()) != view.cols()) {
    refuse("table: has categories of " + std::to_string(table.categories.size()) + " columns, but " +
           std::to_string(view.cols()) + " columns");
  }
  std::vector<Preparation::Column> columns;
  for (std::int64_t j = 0; j < view.cols(); ++j) {
    const auto at = static_cast<std::size_t>(j);
    Preparation::Column column;
    if (at < table.columns.size()) column.name = table.columns[at];
    if (at < table.categories.size()) column.categories = table.categories[at];
    if (!ascend(column.categories)) refuse("table: the categories of column " + std::to_string(j) + " do not ascend");
    columns.push_back(std::move(column));
  }
  Imputer imputer = Imputer::fit(ctx, table, options.missing);
  if (options.scaling != Scaling::none && view.rows() > 0) {
    require_on_host(view, "table");
    const Table filled = imputer.apply(ctx, table);
    fit_scales(ctx, filled.view, options.scaling, columns);
  }
  for (Preparation::Column& column : columns) {
    column.one_hot = options.texts == TextCodes::one_hot && !column.categories.empty();
    if (!column.one_hot) continue;
    column.shift = 0;
    column.scale = 1;
  }
  return Preparation::of(std::move(columns), options.scaling, std::move(imputer));
}

/// The name of a column of the fitted table, or "column 3".
std::string name_of_source(const PreparedColumns& columns, std::int64_t column) {
  const auto at = static_cast<std::size_t>(column);
  return at < columns.size() && !columns[at].name.empty() ? columns[at].name : "column " + std::to_string(column);
}

void require_same_names(const PreparedColumns& columns, const std::vector<std::string>& names,
                        const std::string& file) {
  for (std::size_t j = 0; j < std::min(names.size(), columns.size()); ++j) {
    const std::string& wanted = columns[j].name;
    if (wanted.empty() || names[j].empty() || names[j] == wanted) continue;
    throw Error(ErrorCode::bad_data, file + " has a column '" + names[j] +
                                         "' where the table that rows are compared with has '" + wanted + "'");
  }
}

void require_same_columns(const PreparedColumns& columns, const Table& table, const std::string& file) {
  const auto d = static_cast<std::int64_t>(columns.size());
  if (table.view.cols() != d) {
    refuse(file + " has " + std::to_string(table.view.cols()) + " columns, the table that rows are compared with has " +
           std::to_string(d));
  }
  require_same_names(columns, table.columns, file);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const bool text = j < table.categories.size() && !table.categories[j].empty();
    if (text != columns[j].categories.empty()) continue;
    throw Error(ErrorCode::bad_data, file + " has " + (text ? "text" : "numbers") + " in " +
                                         name_of_source(columns, static_cast<std::int64_t>(j)) +
                                         ", where the table that rows are compared with has " +
                                         (text ? "numbers" : "text"));
  }
}

/// "'a', 'b', ..."
std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxShown = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) {
    list += (i > 0 ? ", '" : "'") + io::shown(names[i]) + "'";
  }
  return list + (names.size() > kMaxShown ? ", ..." : "");
}

std::string sentence_on_left_out(const std::string& file, const std::vector<std::string>& columns) {
  return "'" + file + "': " + (columns.size() == 1 ? "column " : "columns ") + listed_names(columns) +
         (columns.size() == 1 ? " is" : " are") + " left out, as the table that rows are compared with has no such";
}

/// Columns of a file that are none of the table's, by position, with what they are.
using Skipped = std::map<std::int64_t, std::string_view>;

/// Each column of the fitted table is the file's of that name.
Preparation::Matched by_name(const PreparedColumns& columns, const Skipped& skipped, ReadOptions options,
                             const std::vector<std::string>& names, const std::string& file) {
  std::set<std::string_view> there;
  std::set<std::string_view> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (skipped.count(static_cast<std::int64_t>(i)) == 0) there.insert(names[i]);
  }
  std::vector<std::string> missing;
  options.only.clear();
  options.text.clear();
  options.find_text = false;
  for (const Preparation::Column& column : columns) {
    wanted.insert(column.name);
    options.only.push_back(column.name);
    if (!column.categories.empty()) options.text.push_back(column.name);
    if (there.count(column.name) == 0) missing.push_back(column.name);
  }
  for (const auto& [position, role] : skipped) {
    const auto at = static_cast<std::size_t>(position);
    if (at >= names.size() || wanted.count(names[at]) == 0 || there.count(names[at]) != 0) continue;
    throw Error(ErrorCode::bad_data,
                file + ": column '" + io::shown(names[at]) + "' " + std::string(role) +
                    ", but rows are compared by it; give another column, or leave it out of the table that rows are "
                    "compared with, too");
  }
  if (!missing.empty()) {
    throw Error(ErrorCode::bad_data,
                file + " has no " + (missing.size() == 1 ? "column " : "columns ") + listed_names(missing) +
                    " as the table that rows are compared with; its columns are " + listed_names(names));
  }
  std::vector<std::string> left_out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_index = i == 0 && io::is_no_name(names[i]);
    if (is_index || skipped.count(static_cast<std::int64_t>(i)) != 0 || wanted.count(names[i]) != 0) continue;
    left_out.push_back(names[i]);
  }
  return {std::move(options), left_out.empty() ? std::string() : sentence_on_left_out(file, left_out)};
}

/// The code here of each text of a table; none of a column of numbers.
std::vector<std::vector<double>> codes_of(const Context& ctx, const PreparedColumns& columns, const Table& table) {
  std::vector<std::vector<double>> codes(columns.size());
  std::int64_t steps = 0;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const std::vector<std::string>& known = columns[j].categories;
    if (known.empty()) continue;
    codes[j].reserve(table.categories[j].size());
    for (const std::string& text : table.categories[j]) {
      if (++steps % kStepsPerPoll == 0) ctx.check_cancelled();
      const auto found = std::lower_bound(known.begin(), known.end(), text);
      const bool is_known = found != known.end() && *found == text;
      codes[j].push_back(static_cast<double>((is_known ? found : known.end()) - known.begin()));
    }
  }
  return codes;
}

}  // namespace

std::string_view name_of(Scaling scaling) noexcept {
  return core::name_in(kScalings, scaling);
}
std::string_view name_of(TextCodes codes) noexcept {
  return core::name_in(kTextCodes, codes);
}
Scaling scaling_from(std::string_view name) {
  return core::value_in(kScalings, "scaling", name);
}
TextCodes text_codes_from(std::string_view name) {
  return core::value_in(kTextCodes, "codes of texts", name);
}

Preparation Preparation::fit(const Context& ctx, const Table& table, const PreparationOptions& options) try {
  const core::Entry entry;
  return fitted(ctx, table, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Preparation Preparation::fit(const Context& ctx, const TableView& table, const PreparationOptions& options) try {
  const core::Entry entry;
  Table unnamed;
  unnamed.view = table;
  return fitted(ctx, unnamed, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Preparation Preparation::of(std::vector<Column> columns, Scaling scaling, Imputer imputer) try {
  const core::Entry entry;
  if (scaling > Scaling::minmax) refuse("scaling: unknown value; expected one of none, standard, minmax");
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const Column& column = columns[j];
    const std::string what = "columns: column " + std::to_string(j);
    if (!ascend(column.categories)) refuse(what + " has categories that do not ascend");
    if (column.one_hot && column.categories.empty()) refuse(what + " is one-hot, but has no categories");
    if (!std::isfinite(column.shift)) refuse(what + " has a shift that is not finite");
    if (!std::isfinite(column.scale) || !(column.scale > 0))
      refuse(what + " has a scale that is not above 0 or not finite");
  }
  if (imputer.filling() != Filling::none && imputer.values().size() != columns.size()) {
    refuse("imputer: it fills " + std::to_string(imputer.values().size()) + " columns, not " +
           std::to_string(columns.size()));
  }
  for (std::size_t j = 0; j < imputer.values().size(); ++j) {
    if (std::isnan(imputer.values()[j]) == columns[j].categories.empty()) {
      refuse("imputer: column " + std::to_string(j) + " is text in one of imputer and columns only");
    }
  }
  Preparation made;
  made.imputer_ = std::move(imputer);
  made.columns_ = std::move(columns);
  made.scaling_ = scaling;
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

bool Preparation::has_texts() const noexcept {
  return std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return !column.categories.empty(); });
}

std::int64_t Preparation::width() const noexcept {
  return std::accumulate(columns_.begin(), columns_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Column& column) { return sum + column.width(); });
}

std::string Preparation::name_of(std::int64_t column) const try {
  const core::Entry entry;
  std::int64_t within = column;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& source = columns_[j];
    if (within >= source.width()) {
      within -= source.width();
      continue;
    }
    const std::string name = name_of_source(columns_, static_cast<std::int64_t>(j));
    return source.one_hot ? name + "=" + source.categories[static_cast<std::size_t>(within)] : name;
  }
  return "column " + std::to_string(within);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Table Preparation::apply(const Context& ctx, Table table, const std::string& name) const try {
  const core::Entry entry;
  if (columns_.empty()) return table;
  require_same_columns(columns_, table, name);
  if (!changes_rows()) return table;
  require_on_host(table.view, name);
  table = imputer_.apply(ctx, std::move(table), name);
  if (scaling_ == Scaling::none && !has_texts()) return table;
  const std::int64_t n = table.view.rows();
  const auto d = static_cast<std::size_t>(width());
  const std::vector<std::vector<double>> codes = codes_of(ctx, columns_, table);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(d) * sizeof(double), &bytes)) {
    bytes = std::numeric_limits<std::uint64_t>::max();
  }
  if (bytes > ctx.memory_limit()) {
    throw Error(ErrorCode::over_memory, "preparing " + name + " needs " + std::to_string(bytes) +
                                            " bytes, more than the memory limit of " +
                                            std::to_string(ctx.memory_limit()));
  }
  const auto storage = std::make_shared<core::RawVector<double>>(static_cast<std::size_t>(n) * d);
  const Blocks blocks(ctx, table.view);
  blocks.for_each([&](std::size_t /*worker*/, std::int64_t first, std::int64_t rows, const double* values) {
    double* out = storage->data() + static_cast<std::size_t>(first) * d;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        const Column& column = columns_[j];
        double value = *values++;
        if (!codes[j].empty()) {
          if (!(value >= 0 && value < static_cast<double>(codes[j].size()) && std::floor(value) == value)) {
            throw Error(ErrorCode::bad_data, name + " " + place(first + i, j) + " is not the number of one of its " +
                                                 std::to_string(codes[j].size()) + " texts");
          }
          value = codes[j][static_cast<std::size_t>(value)];
        }
        if (column.one_hot) {
          for (std::int64_t c = 0; c < column.width(); ++c) *out++ = static_cast<double>(c) == value ? 1 : 0;
          continue;
        }
        value = (value - column.shift) / column.scale;
        if (!std::isfinite(value)) {
          throw Error(ErrorCode::bad_data, name + " " + place(first + i, j) + " is not finite, or not after scaling");
        }
        *out++ = value;
      }
    }
  });
  table.view = TableView(storage->data(), n, static_cast<std::int64_t>(d));
  table.storage = storage;
  table.categories.clear();
  return table;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Table Preparation::apply(const Context& ctx, const TableView& table, const std::string& name) const try {
  const core::Entry entry;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (columns_[j].categories.empty()) continue;
    refuse(name + ": " + name_of_source(columns_, static_cast<std::int64_t>(j)) +
           " holds text, which a TableView cannot have; read the rows by Preparation::read and give the Table");
  }
  Table unnamed;
  unnamed.view = table;
  return apply(ctx, std::move(unnamed), name);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Preparation::Matched Preparation::matched(ReadOptions options, const std::vector<std::string>& names,
                                          const std::string& file) const try {
  const core::Entry entry;
  Skipped skipped;
  const auto skip = [&](const std::string& reference, std::string_view role) {
    if (const auto position = position_of(reference, names)) skipped.emplace(*position, role);
  };
  for (const std::string& reference : options.drop) skip(reference, "is dropped");
  if (!options.label.empty()) skip(options.label, "is the label");
  if (!options.id.empty()) skip(options.id, "is the id");
  if (has_names() && !names.empty()) return by_name(columns_, skipped, std::move(options), names, file);
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (skipped.count(static_cast<std::int64_t>(i)) == 0) kept.push_back(names[i]);
  }
  // An index column, which is no part of the table (read_table).
  if (kept.size() == columns_.size() + 1 && io::is_no_name(names[0]) && skipped.count(0) == 0) {
    skipped.emplace(0, "is an index");
    kept.erase(kept.begin());
  }
  if (kept.size() == columns_.size()) require_same_names(columns_, kept, file);
  std::int64_t position = 0;
  for (const Column& column : columns_) {
    while (skipped.count(position) != 0) ++position;
    std::string reference = std::to_string(position);
    if (std::find(names.begin(), names.end(), reference) != names.end()) {  // it would be taken for a name
      reference = names[static_cast<std::size_t>(position) % names.size()];
    }
    if (!column.categories.empty()) options.text.push_back(reference);
    ++position;
  }
  return {std::move(options), {}};
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

bool Preparation::has_names() const try {
  const core::Entry entry;
  std::set<std::string_view> seen;
  return !columns_.empty() && std::all_of(columns_.begin(), columns_.end(), [&](const Column& column) {
    return !column.name.empty() && seen.insert(column.name).second;
  });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Table Preparation::read(const Context& ctx, const std::filesystem::path& path, ReadOptions options) const try {
  const core::Entry entry;
  options.missing = options.missing || imputer_.filling() != Filling::none;
  std::string note;
  if (has_texts() || has_names()) {
    const FileInfo info = describe_file(ctx, path, options);
    if (io::has_named_columns(info.format)) {
      Matched found = matched(std::move(options), info.columns, path.string());
      options = std::move(found.options);
      note = std::move(found.note);
    }
  }
  Table table = read_table(ctx, path, options);
  if (!note.empty()) table.notes.push_back(std::move(note));
  return table;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
