// lle_quality: neighbors of the judged rows in the table and in the embedding, and the ranks that each space gives to
// the other's (contract clause 17).
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "backend/lle_ranks.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/lle/check.hpp"
#include "solver/weights.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle_quality.hpp"

namespace vicinal {
namespace {

/// One of the two spaces: what is searched, and the keys of any two rows.
class Space {
 public:
  Space(const Context& ctx, const TableView& table, const LleOptions& how) : ctx_(ctx), index_(ctx, table), how_(how) {}

  [[nodiscard]] std::vector<std::int64_t> penalties(std::span<const kernels::RankTask> tasks) const {
    return kernels::rank_penalties(ctx_, {index_.table(), how_.metric, how_.p}, tasks);
  }

  /// Neighbors [asked, k] of some rows among those that the filter lets through.
  [[nodiscard]] std::vector<std::int64_t> neighbors(std::span<const std::int64_t> asked, std::int64_t k,
                                                    Bitmap filter) const {
    const std::int64_t d = index_.cols();
    std::vector<double> values(asked.size() * static_cast<std::size_t>(d));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      core::widen_rows(index_.table(), asked[i], asked[i] + 1, values.data() + i * static_cast<std::size_t>(d));
    }
    const TableView queries(values.data(), static_cast<std::int64_t>(asked.size()), d);
    return knn(ctx_, index_, queries, {.k = k, .metric = how_.metric, .p = how_.p, .filter = filter, .exclude = asked})
        .ids;
  }

 private:
  const Context& ctx_;
  Index index_;
  LleOptions how_;
};

std::vector<std::int64_t> evenly_spread(std::int64_t n, std::int64_t most) {
  const std::int64_t count = most == 0 ? n : std::min(n, most);
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(n / count * i + n % count * i / count);
  return rows;
}

/// One minus the share that the penalties are of the most that there can be, in the mean over rows.
void judge_ranks(const Space& given, const Space& made, const Lle& fitted, LleQuality& found) {
  const auto n = static_cast<std::int64_t>(fitted.piece.size());
  std::map<std::int64_t, std::vector<std::int64_t>> asked_of;
  for (const std::int64_t i : found.rows) asked_of[fitted.piece[i]].push_back(i);
  std::map<std::int64_t, std::vector<std::int64_t>> rows_of;
  for (std::int64_t i = 0; i < n; ++i) {
    if (asked_of.count(fitted.piece[i]) != 0) rows_of[fitted.piece[i]].push_back(i);
  }
  struct Judged {
    double most;                          ///< that the penalties of a piece can come to
    std::vector<std::int64_t> near_made;  ///< [asked, k]
    std::vector<std::int64_t> near_given;
  };
  std::vector<Judged> judged;
  judged.reserve(asked_of.size());
  std::vector<kernels::RankTask> by_given;  // tasks of each space: neighbors in the other one
  std::vector<kernels::RankTask> by_made;
  for (const auto& [piece, asked] : asked_of) {
    const std::vector<std::int64_t>& rows = rows_of[piece];
    const auto size = static_cast<std::int64_t>(rows.size());
    const std::int64_t k = std::min(found.k, (size - 1) / 2);
    std::vector<std::uint64_t> filter;
    if (size < n) {
      filter.assign(static_cast<std::size_t>((n + 63) / 64), 0);
      for (const std::int64_t i : rows) filter[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    const double most = static_cast<double>(k) * static_cast<double>(2 * size - 3 * k - 1) / 2;
    judged.push_back({most, made.neighbors(asked, k, filter), given.neighbors(asked, k, filter)});
    by_given.push_back({rows, asked, judged.back().near_made, k});
    by_made.push_back({rows, asked, judged.back().near_given, k});
  }
  const std::vector<std::int64_t> untrue_of = given.penalties(by_given);
  const std::vector<std::int64_t> torn_of = made.penalties(by_made);
  double untrue = 0;
  double torn = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    untrue += static_cast<double>(untrue_of[i]) / judged[i].most;
    torn += static_cast<double>(torn_of[i]) / judged[i].most;
  }
  found.trustworthiness = 1 - untrue / static_cast<double>(found.rows.size());
  found.continuity = 1 - torn / static_cast<double>(found.rows.size());
}

void judge_weights(const Context& ctx, const Space& given, const TableView& table, const LleOptions& how,
                   LleQuality& found) {
  const std::int64_t d = table.cols();
  const std::vector<std::int64_t> near = given.neighbors(found.rows, how.k, {});
  found.conditions.resize(found.rows.size());
  core::parallel_for(ctx, static_cast<std::int64_t>(found.rows.size()), [&](std::int64_t i, int /*worker*/) {
    solver::WeightRoom room;
    room.row.resize(static_cast<std::size_t>(d));
    room.neighbors.resize(static_cast<std::size_t>(how.k * d));
    core::widen_rows(table, found.rows[i], found.rows[i] + 1, room.row.data());
    for (std::int64_t j = 0; j < how.k; ++j) {
      const std::int64_t id = near[i * how.k + j];
      core::widen_rows(table, id, id + 1, room.neighbors.data() + j * d);
    }
    found.conditions[i] = solver::weight_condition(ctx, room, how.k, d, how.reg);
  });
}

}  // namespace

LleQuality lle_quality(const Context& ctx, const TableView& table, const Lle& fitted,
                       const LleQualityOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lle_table(table);
  const std::int64_t n = table.rows();
  ops::check_lle_fitted(fitted, n);
  if (options.k < 0 || options.k > n - 1) {
    refuse(fmt::format("k: is {}, but 1 to {} neighbors of {} rows can be compared, or 0 for the embedding's own",
                       options.k, n - 1, n));
  }
  if (options.rows < 0) refuse(fmt::format("rows: is {}, must be at least 0", options.rows));
  LleQuality found;
  found.k = options.k > 0 ? options.k : fitted.options.k;
  found.rows = evenly_spread(n, options.rows);
  const TableView points(fitted.embedding.data(), n, fitted.options.dim);
  const auto judged = static_cast<std::uint64_t>(found.rows.size());
  const auto k = static_cast<std::uint64_t>(std::max(found.k, fitted.options.k));
  core::require_memory(ctx,
                       ops::bytes_on_host(table) + kernels::rank_bytes(table, fitted.options.metric) +
                           static_cast<std::uint64_t>(n) * 16 +
                           judged * (k * 32 + static_cast<std::uint64_t>(table.cols()) * 8),
                       "lle_quality");
  const ops::RowCopy rows = ops::rows_on_host(ctx, table);
  const Space given(ctx, rows.table, fitted.options);
  const Space made(ctx, points, {});
  judge_ranks(given, made, fitted, found);
  judge_weights(ctx, given, rows.table, fitted.options, found);
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
