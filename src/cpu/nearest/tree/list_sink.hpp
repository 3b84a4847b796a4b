// Where the points of a search for k lists in a kd-tree go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "backend/nearest.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "cpu/nearest/collector.hpp"
#include "simd/tree_kernels.hpp"

namespace vicinal::cpu {

/// Takes offers of distinct rows for one query and keeps the k nearest; `limit` is that of a Collector. Short lists are
/// kept sorted in the sink itself, and the result's own memory, which is cold, is written once, as list `place`.
class ListSink {
 public:
  static constexpr bool kTakesBoxes = false;
  static constexpr std::int64_t kMaxSorted = 32;
  ListSink(const kernels::NearestTask& task, const Candidates& candidates, InsertFn insert_entry,
           kernels::NearestResult& result, std::int64_t query, std::int64_t place)
      : task_(task),
        candidates_(candidates),
        insert_(insert_entry),
        query_(query),
        k_(task.k),
        keys_(result.distances.data() + place * k_),
        ids_(result.ids.data() + place * k_),
        max_key_(task.max_key_of(query)),
        limit_(max_key_),
        heap_(keys_, ids_, k_) {
    if (k_ > kMaxSorted) return;
    sorted_keys_[kFirst - 1] = -kInfinity;
    std::fill_n(sorted_keys_ + kFirst, k_, kInfinity);
    std::fill_n(sorted_ids_ + kFirst, k_, kNone);
  }

  [[nodiscard]] double limit() const { return k_ > kMaxSorted ? std::min(heap_.limit(), max_key_) : limit_; }
  void offer(double key, std::int64_t distinct) {
    if (key > max_key_) return;  // where every point is looked at
    if (candidates_.plain()) {
      if (!candidates_.is_own(query_, distinct)) k_ > kMaxSorted ? heap_.offer(key, distinct) : insert(key, distinct);
      return;
    }
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query_, id)) continue;
      if (!(k_ > kMaxSorted ? heap_.offer(key, id) : insert(key, id))) break;  // ids ascend: no later one enters either
    }
  }
  void finish() {
    std::int64_t size = heap_.size();
    if (k_ > kMaxSorted) {
      heap_.sort();
    } else {
      size = k_;
      while (size > 0 && sorted_ids_[kFirst + size - 1] == kNone) --size;
      std::copy_n(sorted_keys_ + kFirst, size, keys_);
      std::copy_n(sorted_ids_ + kFirst, size, ids_);
    }
    for (std::int64_t i = 0; i < size; ++i) keys_[i] = task_.reported(keys_[i]);
    if (size < k_) ids_[size] = -1;
  }

 private:
  static constexpr std::int64_t kFirst =
      8;  // index of the first entry; before it is the minus infinity that `insert_` needs
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  bool insert(double key, std::int64_t id) {
    double* const keys = sorted_keys_ + kFirst;
    std::int64_t* const ids = sorted_ids_ + kFirst;
    if (!core::nearer(key, id, keys[k_ - 1], ids[k_ - 1])) return false;
    insert_(key, id, keys, ids, k_);
    limit_ = std::min(keys[k_ - 1], max_key_);
    return true;
  }

  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  InsertFn insert_;
  std::int64_t query_;
  std::int64_t k_;
  double* keys_;
  std::int64_t* ids_;
  double max_key_;
  double limit_;
  NearestHeap heap_;
  alignas(64) double sorted_keys_[kFirst + kMaxSorted] = {};
  alignas(64) std::int64_t sorted_ids_[kFirst + kMaxSorted] = {};
};

}  // namespace vicinal::cpu
