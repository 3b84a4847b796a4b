// Imputer, plan_impute, count_missing and complete_rows (contract clause 24). Tables are widened to float64 once and
// looked at in place; what Filling::knn fills, the backend does (backend/donors.hpp).
#include "vicinal/impute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "backend/backend.hpp"
#include "backend/donors.hpp"
#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/raw_vector.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Filling>, 4> kFillings = {{
    {Filling::none, "none"},
    {Filling::mean, "mean"},
    {Filling::median, "median"},
    {Filling::knn, "knn"},
}};

using Widened = core::RawVector<double>;

constexpr std::int64_t kWidenedValues = std::int64_t{1} << 16;

std::uint64_t widened_bytes(const TableView& view) {
  std::uint64_t bytes = 0;
  const auto rows = static_cast<std::uint64_t>(view.rows());
  const bool beyond = __builtin_mul_overflow(rows, static_cast<std::uint64_t>(view.cols()), &bytes) ||
                      __builtin_mul_overflow(bytes, std::uint64_t{sizeof(double)}, &bytes);
  return beyond ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

/// Calls visit(first, last) for blocks of rows: in parallel, unless the table comes in blocks, by one thread.
void for_row_blocks(const Context& ctx, const TableView& view,
                    const std::function<void(std::int64_t first, std::int64_t last)>& visit) {
  const std::int64_t rows = std::max<std::int64_t>(1, kWidenedValues / view.cols());
  const std::int64_t count = (view.rows() + rows - 1) / rows;
  const auto one = [&](std::int64_t block, int /*worker*/) {
    visit(block * rows, std::min(view.rows(), (block + 1) * rows));
  };
  if (!view.is_block_source()) return core::parallel_for(ctx, count, one);
  for (std::int64_t block = 0; block < count; ++block) {
    ctx.check_cancelled();
    one(block, 0);
  }
}

/// All rows as float64, their memory checked by the caller.
Widened widened(const Context& ctx, const TableView& view) {
  Widened values(static_cast<std::size_t>(view.rows() * view.cols()));
  for_row_blocks(ctx, view, [&](std::int64_t first, std::int64_t last) {
    core::widen_rows(view, first, last, values.data() + first * view.cols());
  });
  return values;
}

void require_host_rows(const Context& ctx, const TableView& view, const std::string& name) {
  check_table(ctx, view, name);
  if (view.memory() == Memory::cuda) {
    refuse(name + ": lies in device memory; missing values are looked for on the host, in host memory");
  }
}

bool is_text(const Table& table, std::int64_t column) {
  const auto at = static_cast<std::size_t>(column);
  return at < table.categories.size() && !table.categories[at].empty();
}

std::string cell(const std::string& name, std::int64_t row, std::int64_t column) {
  return name + ": row " + std::to_string(row) + ", column " + std::to_string(column);
}

/// Refuses infinities, and missing texts. The rows with missing values, ascending.
std::vector<std::int64_t> incomplete_rows(const Context& ctx, const Table& table, const Widened& values,
                                          const std::string& name) {
  const std::int64_t d = table.view.cols();
  std::vector<std::int64_t> rows;
  core::Poll poll(ctx);
  for (std::int64_t i = 0; i < table.view.rows(); ++i) {
    bool lacks = false;
    for (std::int64_t j = 0; j < d; ++j) {
      poll.step();
      const double value = values[static_cast<std::size_t>(i * d + j)];
      if (std::isfinite(value)) continue;
      if (std::isinf(value)) throw Error(ErrorCode::bad_data, cell(name, i, j) + " is infinite");
      if (is_text(table, j)) {
        throw Error(ErrorCode::bad_data, cell(name, i, j) +
                                             " is a missing text, and only numbers are filled; leave out such rows, or "
                                             "the column");
      }
      lacks = true;
    }
    if (lacks) rows.push_back(i);
  }
  return rows;
}

/// The mean or median of the values that a column has.
double value_for(const Context& ctx, const Widened& values, std::int64_t d, std::int64_t column, bool median) {
  core::Poll poll(ctx);
  core::ExactSum sum;
  std::vector<double> present;
  std::int64_t count = 0;
  for (auto at = static_cast<std::size_t>(column); at < values.size(); at += static_cast<std::size_t>(d)) {
    poll.step();
    if (std::isnan(values[at])) continue;
    ++count;
    if (median) {
      present.push_back(values[at]);
    } else {
      sum.add(values[at]);
    }
  }
  const std::string what = "table: column " + std::to_string(column);
  if (count == 0) {
    throw Error(ErrorCode::bad_data, what + " has no value that others could be filled from; leave it out");
  }
  double value = 0;
  if (median) {
    const auto less = [&poll](double a, double b) {
      poll.step();
      return a < b;
    };
    const auto upper = present.begin() + static_cast<std::ptrdiff_t>(present.size() / 2);
    std::nth_element(present.begin(), upper, present.end(), less);
    const double lower = present.size() % 2 == 1 ? *upper : *std::max_element(present.begin(), upper, less);
    value = lower == *upper ? *upper : lower / 2 + *upper / 2;
  } else {
    value = sum.rounded() / static_cast<double>(count);
  }
  if (!std::isfinite(value)) throw Error(ErrorCode::bad_data, what + " has a sum beyond float64");
  return value + 0.0;  // a zero is +0
}

void check_impute(const ImputeOptions& options) {
  if (options.filling > Filling::knn) refuse("filling: unknown value; expected one of none, mean, median, knn");
  if (options.filling == Filling::knn && options.k < 1) {
    refuse("k is " + std::to_string(options.k) + "; missing values need at least 1 neighbor");
  }
}

void require_columns(const std::string& name, std::int64_t cols, std::size_t fitted) {
  if (static_cast<std::size_t>(cols) == fitted) return;
  refuse(name + " has " + std::to_string(cols) + " columns, the table that missing values are filled from has " +
         std::to_string(fitted));
}

Table unnamed_table(const TableView& view) {
  Table table;
  table.view = view;
  return table;
}

/// The table with other rows.
Table with_rows(Table table, std::shared_ptr<Widened> values, std::int64_t rows) {
  const std::int64_t d = table.view.cols();
  table.view = TableView(values->data(), rows, d);
  if (!table.shape.empty()) table.shape = {rows, d};
  table.storage = std::move(values);
  return table;
}

}  // namespace

std::string_view name_of(Filling filling) noexcept {
  return core::name_in(kFillings, filling);
}
Filling filling_from(std::string_view name) {
  return core::value_in(kFillings, "filling of missing values", name);
}

Imputer Imputer::fit(const Context& ctx, const Table& table, const ImputeOptions& options) try {
  const core::Entry entry;
  check_impute(options);
  if (options.filling == Filling::none) return {};
  require_host_rows(ctx, table.view, "table");
  const std::int64_t d = table.view.cols();
  core::require_memory(ctx, 2 * std::min(widened_bytes(table.view), std::uint64_t{1} << 62), "fitting missing values");
  Widened values = widened(ctx, table.view);
  incomplete_rows(ctx, table, values, "table");
  Imputer made;
  made.filling_ = options.filling;
  made.values_.assign(static_cast<std::size_t>(d), std::numeric_limits<double>::quiet_NaN());
  core::parallel_for(ctx, d, [&](std::int64_t j, int /*worker*/) {
    if (is_text(table, j)) return;
    made.values_[static_cast<std::size_t>(j)] = value_for(ctx, values, d, j, options.filling == Filling::median);
  });
  if (options.filling == Filling::knn) {
    made.k_ = options.k;
    made.donors_ = std::make_shared<std::vector<double>>(values.begin(), values.end());
  }
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Imputer Imputer::fit(const Context& ctx, const TableView& table, const ImputeOptions& options) try {
  const core::Entry entry;
  return fit(ctx, unnamed_table(table), options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Imputer Imputer::of(const ImputeOptions& options, std::vector<double> values, std::vector<double> donors) try {
  const core::Entry entry;
  check_impute(options);
  const auto infinite = [](double value) { return std::isinf(value); };
  if (std::any_of(values.begin(), values.end(), infinite)) refuse("values: not all are finite");
  if (std::any_of(donors.begin(), donors.end(), infinite)) refuse("donors: not all are finite");
  const bool knn = options.filling == Filling::knn;
  if (knn != !donors.empty()) refuse("donors: filling by knn has some, any other has none");
  if ((options.filling == Filling::none) != values.empty()) refuse("values: one for each column, none without filling");
  if (knn && donors.size() % values.size() != 0) refuse("donors: their rows have not one number for each column");
  Imputer made;
  made.filling_ = options.filling;
  made.values_ = std::move(values);
  if (!knn) return made;
  made.k_ = options.k;
  made.donors_ = std::make_shared<std::vector<double>>(std::move(donors));
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

TableView Imputer::donors() const noexcept {
  if (donors_ == nullptr) return {};
  const std::size_t d = values_.size();
  return {donors_->data(), static_cast<std::int64_t>(donors_->size() / d), static_cast<std::int64_t>(d)};
}

Table Imputer::apply(const Context& ctx, Table table, const std::string& name) const try {
  const core::Entry entry;
  if (filling_ == Filling::none) return table;
  require_host_rows(ctx, table.view, name);
  const std::int64_t d = table.view.cols();
  require_columns(name, d, values_.size());
  const std::string job = "filling the missing values of " + name;
  core::require_memory(ctx, widened_bytes(table.view), job);
  const auto values = std::make_shared<Widened>(widened(ctx, table.view));
  const std::vector<std::int64_t> rows = incomplete_rows(ctx, table, *values, name);
  if (rows.empty()) return table;
  const auto at = [&](std::int64_t i, std::int64_t j) -> double& {
    return (*values)[static_cast<std::size_t>(i * d + j)];
  };
  std::vector<std::int64_t> compared;
  for (std::int64_t j = 0; j < d; ++j) {
    const bool fills = !std::isnan(values_[static_cast<std::size_t>(j)]);
    if (fills == is_text(table, j)) {
      throw Error(ErrorCode::bad_data,
                  name + " has " + (fills ? "text" : "numbers") + " in column " + std::to_string(j) +
                      ", where the table that missing values are filled from has " + (fills ? "numbers" : "text"));
    }
    if (fills) compared.push_back(j);
  }
  if (filling_ == Filling::knn) {
    const std::int64_t n = static_cast<std::int64_t>(donors_->size()) / d;
    const kernels::DonorTask task{*donors_, d, compared, values_, std::min(k_, n)};
    const kernels::DonorBackend& backend = kernels::backend_of(ctx).donors();
    std::int64_t missing = 0;
    core::Poll poll(ctx);
    for (const std::int64_t i : rows) {
      for (const std::int64_t j : compared) {
        poll.step();
        missing += std::isnan(at(i, j)) ? 1 : 0;
      }
    }
    const kernels::MemoryNeed need =
        backend.bytes(ctx, {n, d, task.k, static_cast<std::int64_t>(rows.size()), missing});
    core::require_memory(ctx, widened_bytes(table.view) + need.host, job);
    backend.fill(ctx, task, rows, values->data());
  }
  core::Poll poll(ctx);
  for (const std::int64_t i : rows) {
    for (const std::int64_t j : compared) {
      poll.step();
      double& value = at(i, j);
      if (filling_ != Filling::knn && std::isnan(value)) value = values_[static_cast<std::size_t>(j)];
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::bad_data, cell(name, i, j) + " would be the mean of values whose sum is beyond float64");
      }
    }
  }
  const std::int64_t count = table.view.rows();
  return with_rows(std::move(table), values, count);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Table Imputer::apply(const Context& ctx, const TableView& table, const std::string& name) const try {
  const core::Entry entry;
  return apply(ctx, unnamed_table(table), name);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_impute(const Context& ctx, const TableView& fitted, const TableView& rows, const ImputeOptions& options) try {
  const core::Entry entry;
  check_impute(options);
  require_host_rows(ctx, fitted, "table");
  require_host_rows(ctx, rows, "rows");
  require_columns("rows", rows.cols(), static_cast<std::size_t>(fitted.cols()));
  Plan plan;
  plan.method = Method::direct;
  plan.isa = std::string(name_of(ctx.isa()));
  plan.threads = ctx.threads();
  if (options.filling == Filling::none) {
    plan.reason = "missing values stay";
    return plan;
  }
  const std::uint64_t known = std::min(widened_bytes(fitted), std::uint64_t{1} << 61);
  const std::uint64_t filled = std::min(widened_bytes(rows), std::uint64_t{1} << 61);
  plan.memory = std::max(2 * known, filled);
  if (options.filling != Filling::knn) {
    plan.reason = "missing values become the " + std::string(name_of(options.filling)) +
                  " of their column, which the host computes";
    return plan;
  }
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const std::int64_t n = fitted.rows();
  // Of rows that lack as many values as they can.
  const std::int64_t missing = rows.rows() * rows.cols();
  const kernels::MemoryNeed need =
      backend.donors().bytes(ctx, {n, fitted.cols(), std::min(options.k, n), rows.rows(), missing});
  plan.device = ctx.device();
  plan.isa = backend.isa(ctx);
  plan.memory = std::max(2 * known, known + filled + need.host);
  plan.device_memory = need.device;
  plan.reason =
      "rows with missing values have other columns in common with each row, which no screen or tree serves, "
      "so every key is computed";
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int64_t> count_missing(const Context& ctx, const TableView& table) try {
  const core::Entry entry;
  require_host_rows(ctx, table, "table");
  core::require_memory(ctx, widened_bytes(table), "counting missing values");
  const Widened values = widened(ctx, table);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(table.cols()));
  core::Poll poll(ctx);
  for (std::size_t at = 0; at < values.size(); ++at) {
    poll.step();
    if (std::isnan(values[at])) ++counts[at % counts.size()];
  }
  return counts;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

CompleteRows complete_rows(const Context& ctx, Table table, const std::string& name) try {
  const core::Entry entry;
  require_host_rows(ctx, table.view, name);
  if (table.labels) check_labels(*table.labels, table.view.rows());
  if (table.ids && table.ids->size() != table.view.rows()) {
    refuse(name + ": has " + std::to_string(table.ids->size()) + " ids for " + std::to_string(table.view.rows()) +
           " rows");
  }
  const std::int64_t d = table.view.cols();
  core::require_memory(ctx, widened_bytes(table.view), "leaving out rows of " + name);
  const auto values = std::make_shared<Widened>(widened(ctx, table.view));
  CompleteRows kept;
  core::Poll poll(ctx);
  for (std::int64_t i = 0; i < table.view.rows(); ++i) {
    const double* const row = values->data() + i * d;
    bool complete = true;
    for (std::int64_t j = 0; j < d; ++j) {
      poll.step();
      complete = complete && !std::isnan(row[j]);
    }
    if (!complete) continue;
    std::copy(row, row + d, values->data() + static_cast<std::int64_t>(kept.rows.size()) * d);
    kept.rows.push_back(i);
  }
  if (kept.rows.empty()) {
    throw Error(ErrorCode::bad_data, name + " has a missing value in every row, so that none would be left");
  }
  const auto rows = static_cast<std::int64_t>(kept.rows.size());
  if (rows == table.view.rows()) {
    kept.table = std::move(table);
    return kept;
  }
  if (table.labels) {
    std::vector<std::int32_t>& codes = table.labels->codes;
    for (std::size_t i = 0; i < kept.rows.size(); ++i) codes[i] = codes[static_cast<std::size_t>(kept.rows[i])];
    codes.resize(kept.rows.size());
  }
  if (table.ids) {
    const RowIds all = *std::exchange(table.ids, RowIds());
    table.ids->name = all.name;
    core::require_memory(ctx, all.bytes() + widened_bytes(table.view), "leaving out rows of " + name);
    table.ids->reserve(rows, static_cast<std::size_t>(all.bytes()));
    for (const std::int64_t row : kept.rows) {
      poll.step();
      table.ids->add(all[row]);
    }
  }
  kept.table = with_rows(std::move(table), values, rows);
  return kept;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
