// See lof.hpp. Passes over the rows, each row by one worker alone: k-distances, local values (densities), scores. A
// range of k keeps the accumulators of every k side by side, so that its inner loops run over k. O(n k) time, and O(n k
// ks) of a range; reversed neighborhoods (inflo) are gathered by counting.
#include "cpu/lof/lof.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/lof/neighbor_pairs.hpp"

namespace vicinal::cpu {
namespace {

using core::kLanes;
using core::Neighborhood;
using kernels::LofResult;
using kernels::LofTask;

/// Rows that have a row in their neighborhood, ascending.
struct Reversed {
  std::vector<std::int64_t> offsets;  // [n + 1]
  std::vector<std::uint32_t> rows;

  [[nodiscard]] std::span<const std::uint32_t> of(std::int64_t row) const {
    const std::int64_t begin = offsets[static_cast<std::size_t>(row)];
    return {rows.data() + begin, static_cast<std::size_t>(offsets[static_cast<std::size_t>(row) + 1] - begin)};
  }
};

Reversed reversed(const core::Neighborhoods& near) {
  Reversed made;
  made.offsets.assign(static_cast<std::size_t>(near.rows) + 1, 0);
  for (std::int64_t p = 0; p < near.rows; ++p) {
    const Neighborhood own(near, p);
    for (std::int64_t i = 0; i < own.size; ++i) ++made.offsets[static_cast<std::size_t>(own.ids[i]) + 1];
  }
  for (std::size_t i = 1; i < made.offsets.size(); ++i) made.offsets[i] += made.offsets[i - 1];
  made.rows.resize(static_cast<std::size_t>(made.offsets.back()));
  std::vector<std::int64_t> next(made.offsets.begin(), made.offsets.end() - 1);
  for (std::int64_t p = 0; p < near.rows; ++p) {
    const Neighborhood own(near, p);
    for (std::int64_t i = 0; i < own.size; ++i) {
      made.rows[static_cast<std::size_t>(next[static_cast<std::size_t>(own.ids[i])]++)] = static_cast<std::uint32_t>(p);
    }
  }
  return made;
}

/// `others`, ascending, have the row in their neighborhoods; those in the row's own are passed over.
double inflo_score(Duplicates duplicates, const Neighborhood& near, double own, const double* local,
                   std::span<const std::uint32_t> others) {
  double a[kLanes] = {};
  std::int64_t column = 0;
  for (; column < near.size; ++column) a[column % kLanes] += local[near.ids[column]];
  for (const std::uint32_t other : others) {
    if (std::find(near.ids, near.ids + near.size, std::int64_t{other}) != near.ids + near.size) continue;
    a[column++ % kLanes] += local[other];
  }
  return core::density_ratio(duplicates, core::sum_of_lanes(a) / static_cast<double>(column), own);
}

class Run {
 public:
  Run(const Context& ctx, const LofTask& task, LofResult& result)
      : ctx_(ctx), task_(task), result_(result), ks_(task.ks()) {}

  void run() {
    result_.copied = count_copied();
    if (task_.k_from > 0) return run_range();
    find_k_distances();
    if (core::compares_neighbors(task_.score)) find_local();
    find_scores();
    if (!task_.keep) return;
    result_.k_distances = std::move(k_distances_);
    result_.densities = std::move(local_);
  }

 private:
  double& score(std::int64_t p) { return result_.scores[static_cast<std::size_t>(p)]; }

  void find_scores() {
    if (task_.score == OutlierScore::ldof) {
      const WideRows rows(ctx_, task_.table, task_.metric, task_.p);
      return for_each_row([&](std::int64_t p, const Neighborhood& near) { score(p) = ldof_score(near, rows); });
    }
    if (task_.score == OutlierScore::inflo) {
      const Reversed others = reversed(task_.near);
      return for_each_row([&](std::int64_t p, const Neighborhood& near) {
        score(p) = inflo_score(task_.duplicates, near, local_[static_cast<std::size_t>(p)], known_local_, others.of(p));
      });
    }
    for_each_row([&](std::int64_t p, const Neighborhood& near) {
      const double own = local_.empty() ? 0 : local_[static_cast<std::size_t>(p)];
      score(p) = core::row_score(task_.score, task_.duplicates, near, own, known_local_);
    });
  }

  /// Calls visit(row, neighborhood) for all rows; `visit(row, neighborhood, worker)` where it asks for the worker.
  template <class Visit>
  void for_each_row(const Visit& visit) {
    const std::int64_t rows = task_.near.rows;
    const std::int64_t work = std::max<std::int64_t>(1, task_.near.k * (core::needs_table(task_.score) ? 64 : ks_));
    const std::int64_t rows_of_task = std::clamp<std::int64_t>(65536 / work, 16, 4096);
    core::parallel_for(ctx_, (rows + rows_of_task - 1) / rows_of_task, [&](std::int64_t number, int worker) {
      const std::int64_t end = std::min(rows, (number + 1) * rows_of_task);
      for (std::int64_t p = number * rows_of_task; p < end; ++p) {
        if constexpr (std::is_invocable_v<Visit, std::int64_t, const Neighborhood&, int>) {
          visit(p, Neighborhood(task_.near, p), worker);
        } else {
          visit(p, Neighborhood(task_.near, p));
        }
      }
    });
  }

  std::int64_t count_copied() {
    std::atomic<std::int64_t> copied = 0;
    for_each_row([&](std::int64_t /*p*/, const Neighborhood& near) {
      if (near.k_distance() == 0) copied.fetch_add(1, std::memory_order_relaxed);
    });
    return copied;
  }

  void find_k_distances() {
    if (task_.model != nullptr) {
      known_k_distances_ = task_.model->k_distances.data();
      return;
    }
    k_distances_.resize(static_cast<std::size_t>(task_.near.rows));
    for_each_row([&](std::int64_t p, const Neighborhood& near) {
      k_distances_[static_cast<std::size_t>(p)] = near.k_distance();
    });
    known_k_distances_ = k_distances_.data();
  }

  void find_local() {
    local_.resize(static_cast<std::size_t>(task_.near.rows));
    if (core::is_chain(task_.score)) {
      const WideRows rows(ctx_, task_.table, task_.metric, task_.p);
      std::vector<ChainScratch> scratch(static_cast<std::size_t>(ctx_.threads()));
      for_each_row([&](std::int64_t p, const Neighborhood& near, int worker) {
        local_[static_cast<std::size_t>(p)] = chaining_distance(near, rows, task_.score == OutlierScore::cof_pyod,
                                                                scratch[static_cast<std::size_t>(worker)]);
      });
    } else {
      for_each_row([&](std::int64_t p, const Neighborhood& near) {
        local_[static_cast<std::size_t>(p)] =
            core::local_value(task_.score, task_.duplicates, near, known_k_distances_);
      });
    }
    cap(local_);
    known_local_ = task_.model != nullptr ? task_.model->densities.data() : local_.data();
  }

  /// Puts the caps in the place of densities without bound: [rows, ks].
  void cap(std::vector<double>& densities) {
    if (task_.duplicates != Duplicates::cap || !core::has_densities(task_.score)) return;
    const auto ks = static_cast<std::size_t>(ks_);
    std::vector<double> caps(ks, 0);
    if (task_.model != nullptr) {
      std::copy(task_.model->caps.begin(), task_.model->caps.end(), caps.begin());
    } else {
      for (std::size_t i = 0; i < densities.size(); ++i) {
        if (densities[i] < kInfinity) caps[i % ks] = std::max(caps[i % ks], densities[i]);
      }
      for (double& most : caps) most = most > 0 ? 2 * most : 1;
      result_.caps = caps;
    }
    for (std::size_t i = 0; i < densities.size(); ++i) {
      if (!(densities[i] < kInfinity)) densities[i] = caps[i % ks];
    }
  }

  /// Adds term(known values of the neighbor)[j] of the neighbors that count for each k to accumulators, and takes
  /// out(j, mean).
  template <class Term, class Out>
  void sums_by_k(const Neighborhood& near, std::vector<double>& a, const Term& term, const Out& out) const {
    std::fill(a.begin(), a.end(), 0.0);
    for (std::int64_t i = 0; i < near.size; ++i) {
      double* const lane = a.data() + i % kLanes * ks_;
      // The k's that rank i counts for are those above i.
      term(i, std::max<std::int64_t>(0, i + 1 - task_.k_from), lane);
    }
    for (std::int64_t j = 0; j < ks_; ++j) {
      double lanes[kLanes];
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = a[static_cast<std::size_t>(l * ks_ + j)];
      out(j, core::sum_of_lanes(lanes) / static_cast<double>(task_.k_from + j));
    }
  }

  void run_range() {
    const core::Neighborhoods& near = task_.near;
    const std::int64_t first = task_.k_from - 1;
    // The k-distances of row o begin at known[o * stride].
    const bool own = task_.model == nullptr;
    const double* const known = own ? near.distances + first : task_.model->k_distances.data();
    const std::int64_t stride = own ? near.stride : ks_;
    std::vector<double> local(static_cast<std::size_t>(near.rows * ks_));
    std::vector<std::vector<double>> lanes(static_cast<std::size_t>(ctx_.threads()),
                                           std::vector<double>(static_cast<std::size_t>(kLanes * ks_)));
    const double added = core::added_reach(task_.duplicates);
    for_each_row([&](std::int64_t p, const Neighborhood& list, int worker) {
      const auto reach = [&](std::int64_t i, std::int64_t from, double* a) {
        const double distance = list.distances[i];
        const double* const k_distances = known + list.ids[i] * stride;
        for (std::int64_t j = from; j < ks_; ++j) a[j] += core::larger(distance, k_distances[j]);
      };
      sums_by_k(list, lanes[static_cast<std::size_t>(worker)], reach, [&](std::int64_t j, double mean) {
        local[static_cast<std::size_t>(p * ks_ + j)] = 1 / (mean + added);
      });
    });
    cap(local);
    const double* const known_local = own ? local.data() : task_.model->densities.data();
    for_each_row([&](std::int64_t p, const Neighborhood& list, int worker) {
      const auto density = [&](std::int64_t i, std::int64_t from, double* a) {
        const double* const densities = known_local + list.ids[i] * ks_;
        for (std::int64_t j = from; j < ks_; ++j) a[j] += densities[j];
      };
      core::AcrossKs across(task_.across);
      sums_by_k(list, lanes[static_cast<std::size_t>(worker)], density, [&](std::int64_t j, double mean) {
        across.take(core::density_ratio(task_.duplicates, mean, local[static_cast<std::size_t>(p * ks_ + j)]));
      });
      score(p) = across.result();
    });
    if (!task_.keep) return;
    result_.k_distances.resize(local.size());
    for_each_row([&](std::int64_t p, const Neighborhood& list) {
      std::copy_n(list.distances + first, ks_, result_.k_distances.begin() + p * ks_);
    });
    result_.densities = std::move(local);
  }

  const Context& ctx_;
  const LofTask& task_;
  LofResult& result_;
  std::int64_t ks_;
  std::vector<double> k_distances_;            // of the rows
  std::vector<double> local_;                  // of the rows
  const double* known_k_distances_ = nullptr;  // of the table's rows
  const double* known_local_ = nullptr;        // of the table's rows
};

}  // namespace

void lof(const Context& ctx, const LofTask& task, LofResult& result) {
  Run(ctx, task, result).run();
}

std::uint64_t lof_scratch(const Context& ctx, const LofTask& task) {
  const auto rows = static_cast<std::uint64_t>(task.near.rows);
  const auto ks = static_cast<std::uint64_t>(task.ks());
  const auto k = static_cast<std::uint64_t>(task.near.k);
  std::uint64_t bytes = 2 * rows * ks * sizeof(double);
  bytes += static_cast<std::uint64_t>(ctx.threads()) * (ks * kLanes + 2 * k) * sizeof(double);
  if (core::needs_table(task.score)) bytes += WideRows::bytes(task.table, task.metric);
  if (task.score == OutlierScore::inflo) bytes += rows * (2 * sizeof(std::int64_t) + k * sizeof(std::uint32_t));
  return bytes;
}

}  // namespace vicinal::cpu
