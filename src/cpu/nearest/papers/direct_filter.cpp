// Selection by filtering (the LOF paper). A threshold is chosen from the table's own k-distances, every key is compared
// with it and marked in a string of bits, and the marks are counted: too many, and it moves to the middle of the lower
// half of the sequence, too few, of the upper half; beyond the ends it shrinks or grows by ever longer steps. What is
// marked in the end, at most kMaxPass k keys, goes through a heap. Changed here: keys are float64, so that the marks
// decide nothing wrongly; and each pass also notes the last key below the threshold and the first above it, so that
// masses of equal keys, which leave no threshold that lets k to kMaxPass k pass, are seen at once and all taken. Cost:
// n comparisons a threshold, usually two to four.
#include <algorithm>
#include <bit>

#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/papers/selection.hpp"
#include "formulas/nearest/threshold_search.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr std::int64_t kSampledRows = 1024;

// Marks the keys not above a threshold, [(n + 63) / 64] words.
core::Passed mark(std::span<const double> keys, double threshold, std::vector<std::int64_t>& marks) {
  marks.resize((keys.size() + 63) / 64);
  core::Passed passed;
  for (std::size_t word = 0; word < marks.size(); ++word) {
    std::uint64_t bits = 0;
    const std::size_t end = std::min(keys.size(), 64 * word + 64);
    for (std::size_t j = 64 * word; j < end; ++j) {
      const bool passes = keys[j] <= threshold;
      bits |= static_cast<std::uint64_t>(passes ? 1 : 0) << (j % 64);
      passed.last = std::max(passed.last, passes ? keys[j] : -kInfinity);
      passed.above = std::min(passed.above, passes ? kInfinity : keys[j]);
    }
    marks[word] = static_cast<std::int64_t>(bits);
    passed.count += std::popcount(bits);
  }
  return passed;
}

}  // namespace

void select_by_filter(std::span<const double> keys, std::span<const double> sequence, Scratch& scratch, List list) {
  core::ThresholdSearch search(sequence.data(), static_cast<std::int64_t>(sequence.size()));
  std::vector<std::int64_t>& marks = scratch.chosen;
  for (;;) {
    const core::Passed passed = mark(keys, search.threshold(), marks);
    if (passed.count >= list.k && passed.count <= kMaxPass * list.k) break;
    if (search.move(passed, passed.count > list.k)) continue;
    mark(keys, search.threshold(), marks);
    break;
  }
  NearestHeap heap = list.heap();
  for (std::size_t word = 0; word < marks.size(); ++word) {
    for (auto bits = static_cast<std::uint64_t>(marks[word]); bits != 0; bits &= bits - 1) {
      const std::size_t row = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      heap.offer(keys[row], static_cast<std::int64_t>(row));
    }
  }
  heap.sort();
}

std::vector<double> k_distances(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  const std::int64_t n = table.rows();
  const std::int64_t count = std::min(n, kSampledRows);
  const std::int64_t step = n / count;
  std::vector<std::int64_t> own(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) own[static_cast<std::size_t>(i)] = i * step;
  kernels::NearestTask sample = task;
  sample.self = false;
  sample.same_rows = false;
  sample.queries =
      TableView(table.data(), table.dtype(), count, table.cols(), step * table.row_stride(), table.col_stride());
  sample.filter = {};
  sample.exclude = own;
  const std::int64_t k = std::min(task.k, n - 1);
  if (k == 0) return {};
  Workspace work(ctx, sample, {});
  work.load(0, count);
  std::vector<std::vector<double>> scratch(static_cast<std::size_t>(ctx.threads()));
  std::vector<double> sequence(static_cast<std::size_t>(count));
  core::parallel_for(ctx, count, [&](std::int64_t i, int worker) {
    std::vector<double>& keys = scratch[static_cast<std::size_t>(worker)];
    keys.resize(static_cast<std::size_t>(n));
    work.keys_of_tile(i, 1, 0, n, keys.data());
    std::nth_element(keys.begin(), keys.begin() + (k - 1), keys.end());
    sequence[static_cast<std::size_t>(i)] = keys[static_cast<std::size_t>(k - 1)];
  });
  std::sort(sequence.begin(), sequence.end());
  return sequence;
}

}  // namespace vicinal::cpu::papers
