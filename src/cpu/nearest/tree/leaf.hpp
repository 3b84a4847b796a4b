// The points of one leaf of a kd-tree are ranked for one query.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/infinity.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cpu {

constexpr std::int64_t kChunkPoints = 256;  // of a leaf ranked in one call

// One query on its way through the tree.
template <class Sink>
struct Visit {
  const double* x;
  std::int64_t query;
  Sink& sink;
  bool all;      // a key may overflow: then every point is looked at, because an overflow is an error (clause 1)
  double limit;  // boxes and points beyond it are of no use
  std::int64_t ranked = 0;
};

class LeafRanks {
 public:
  LeafRanks(const Context& ctx, const kernels::NearestTask& task, const Tree& tree, const TreeKeys& keys,
            const Candidates& candidates)
      : ctx_(ctx), task_(task), tree_(tree), keys_(keys), candidates_(candidates), grouped_(task.index->grouped()) {}

  template <class Sink>
  void rank(const Tree::Child& leaf, Visit<Sink>& now) const {
    const std::int64_t* rows = tree_.shape().order.data() + leaf.first;
    const std::byte* points = tree_.points(leaf.at);
    now.ranked += leaf.size;
    for (std::int64_t first = 0; first < leaf.size; first += kChunkPoints) {
      if (first > 0) ctx_.check_cancelled();
      double keys[kChunkPoints];
      std::int32_t at[kChunkPoints];
      const std::int64_t found = keys_.points(now.x, points + first * tree_.point_bytes(),
                                              std::min(kChunkPoints, leaf.size - first), now.limit, keys, at);
      if constexpr (Sink::kTakesBoxes) {
        if (!now.all && now.sink.takes(found)) continue;
      }
      if (now.all) {
        offer_all(rows + first, keys, at, found, now);
        continue;
      }
      if (grouped_) expect_groups(rows + first, now.limit, keys, at, found);
      for (std::int64_t f = 0; f < found; ++f) {
        if (!(keys[f] <= now.limit)) continue;  // it may have tightened since the keys were compared with it
        now.sink.offer(keys[f], rows[first + at[f]]);
        now.limit = now.sink.limit();
      }
    }
  }

 private:
  // Asks for the members of groups that will be offered. A list that is not full yet is offered the nearest group
  // first, which may fill it: then the others need not be asked for.
  void expect_groups(const std::int64_t* rows, double limit, double* keys, std::int32_t* at, std::int64_t found) const {
    if (limit < kInfinity || found < 2) {
      for (std::int64_t f = 0; f < found; ++f) candidates_.prefetch_group(rows[at[f]]);
      for (std::int64_t f = 0; f < found; ++f) candidates_.prefetch_members(rows[at[f]]);
      return;
    }
    const auto nearest = std::min_element(keys, keys + found) - keys;
    std::swap(keys[0], keys[nearest]);
    std::swap(at[0], at[nearest]);
    candidates_.prefetch_members(rows[at[0]]);
  }

  // Where a key may overflow.
  template <class Sink>
  void offer_all(const std::int64_t* rows, const double* keys, const std::int32_t* at, std::int64_t found,
                 Visit<Sink>& now) const {
    for (std::int64_t f = 0; f < found; ++f) {
      const std::int64_t distinct = rows[at[f]];
      if (!(keys[f] < kInfinity)) {
        refuse_overflow(now.query, distinct);
      } else if (keys[f] <= now.limit) {
        now.sink.offer(keys[f], distinct);
      }
    }
  }

  // Clause 1: an overflow is an error, but only of a pair that could be neighbors.
  void refuse_overflow(std::int64_t query, std::int64_t distinct) const {
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query, id)) continue;
      throw Error(ErrorCode::bad_data, "the distance of query row " + std::to_string(task_.first_query + query) +
                                           " and table row " + std::to_string(task_.first_id + id) +
                                           " overflows float64; scale the data down");
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  const Tree& tree_;
  const TreeKeys& keys_;
  const Candidates& candidates_;
  bool grouped_;  // the table has equal rows
};

}  // namespace vicinal::cpu
