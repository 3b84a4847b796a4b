// Where the points of a search for k lists in a kd-tree go.
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"
#include "core/distance.hpp"
#include "cpu/nearest/collector.hpp"

namespace vicinal::cpu {

/// `limit` as a collector has it, and offers of distinct rows. Short lists are kept sorted, on the stack: shifting some
/// entries costs less than the branches of a heap that nothing predicts, and the result's own memory is cold until the
/// list is written there.
class ListSink {
 public:
  static constexpr bool kTakesBoxes = false;
  static constexpr std::int64_t kMaxSorted = 32;
  ListSink(const kernels::NearestTask& task, const Candidates& candidates, kernels::NearestResult& result,
           std::int64_t query)
      : task_(task),
        candidates_(candidates),
        query_(query),
        k_(task.k),
        keys_(result.distances.data() + query * k_),
        ids_(result.ids.data() + query * k_),
        max_key_(task.max_key_of(query)),
        limit_(max_key_),
        heap_(keys_, ids_, k_) {}

  [[nodiscard]] double limit() const { return k_ > kMaxSorted ? std::min(heap_.limit(), max_key_) : limit_; }
  void offer(double key, std::int64_t distinct) {
    if (key > max_key_) return;  // where every point is looked at
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query_, id)) continue;
      if (!(k_ > kMaxSorted ? heap_.offer(key, id) : insert(key, id))) break;  // ids ascend: no later one enters either
    }
  }
  void finish() {
    if (k_ > kMaxSorted) heap_.sort();
    for (std::int64_t i = 0; i < size_; ++i) {
      keys_[i] = sorted_keys_[i];
      ids_[i] = sorted_ids_[i];
    }
    const std::int64_t size = k_ > kMaxSorted ? heap_.size() : size_;
    for (std::int64_t i = 0; i < size; ++i) keys_[i] = task_.reported(keys_[i]);
    if (size < k_) ids_[size] = -1;
  }

 private:
  bool insert(double key, std::int64_t id) {
    std::int64_t i = size_;
    if (size_ < k_) {
      ++size_;
    } else {
      --i;  // the last one leaves
      if (!core::nearer(key, id, sorted_keys_[i], sorted_ids_[i])) return false;
    }
    for (; i > 0 && core::nearer(key, id, sorted_keys_[i - 1], sorted_ids_[i - 1]); --i) {
      sorted_keys_[i] = sorted_keys_[i - 1];
      sorted_ids_[i] = sorted_ids_[i - 1];
    }
    sorted_keys_[i] = key;
    sorted_ids_[i] = id;
    if (size_ == k_) limit_ = sorted_keys_[size_ - 1];
    return true;
  }

  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  std::int64_t query_;
  std::int64_t k_;
  double* keys_;
  std::int64_t* ids_;
  std::int64_t size_ = 0;
  double max_key_;
  double limit_;
  NearestHeap heap_;
  double sorted_keys_[kMaxSorted] = {};
  std::int64_t sorted_ids_[kMaxSorted] = {};
};

}  // namespace vicinal::cpu
