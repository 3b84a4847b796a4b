// Selections that go over a row of n float64 keys, infinity where there is no candidate. Each belongs to a paper
// (docs/papers.md); each leaves the k nearest by (key, id) in a list, in order (contract clause 2).
#pragma once

#include <cstdint>
#include <span>

#include "cpu/nearest/papers/workspace.hpp"

namespace vicinal::cpu::papers {

/// A list kept in order: what enters is moved up past what is farther away. Garcia, Debreuve and Barlaud (2008), one
/// thread a query. Cost: n comparisons, and up to k moves for each key that enters.
class SortedList {
 public:
  explicit SortedList(List list) : list_(list) {}
  /// The keys of rows first, first + 1, ...
  void insert(std::span<const double> keys, std::int64_t first);

 private:
  List list_;
  std::int64_t size_ = 0;
};

/// One heap that many lanes share. Kato and Hosino (2010), one block a query.
void select_by_block_heap(std::span<const double> keys, List list);

/// A threshold moved until from k to kMaxPass k keys pass it, then a heap of those. Tian, Hua and Lu (2015), the LOF
/// paper. `sequence`: where thresholds are looked for first, ascending.
void select_by_filter(std::span<const double> keys, std::span<const double> sequence, Scratch& scratch, List list);
inline constexpr std::int64_t kMaxPass = 3;

/// Keys of the k-th neighbors of rows evenly spread over the table, ascending: the filter's sequence, made once a
/// table.
std::vector<double> k_distances(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu::papers
