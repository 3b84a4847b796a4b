// What is kept of the keys a search produces: the second half of the seam "distances x collector".
// A collector is offered (key, table row) pairs in any order and ends with the same answer (contract clauses 2 and 4);
// each query belongs to one thread at a time. Rows are offered as distinct rows: a collector expands them to their
// duplicates' ids.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// Which ids may be neighbors of which query, and the ids behind a distinct row.
class Candidates {
 public:
  explicit Candidates(const kernels::NearestTask& task)
      : task_(task),
        index_(*task.index),
        own_(task.own_row()),
        plain_(!index_.grouped() && task.exclude.empty() && task.filter.empty()) {}

  /// Whether distinct rows are ids, and all but a query itself are eligible.
  [[nodiscard]] bool plain() const noexcept { return plain_; }
  [[nodiscard]] bool is_own(std::int64_t query, std::int64_t id) const noexcept { return id == own_ + query; }

  [[nodiscard]] bool eligible(std::int64_t query, std::int64_t id) const noexcept {
    if (id == own_ + query) return false;
    if (!task_.exclude.empty() && task_.exclude[static_cast<std::size_t>(query)] == id) return false;
    return is_admitted(id);
  }
  /// Whether the filter admits the row.
  [[nodiscard]] bool is_admitted(std::int64_t id) const noexcept {
    if (task_.filter.empty()) return true;
    return (task_.filter[static_cast<std::size_t>(id >> 6)] >> (id & 63) & 1) != 0;
  }
  /// The ids that share a distinct row, ascending.
  /// An ungrouped row is its own only member: the span then borrows the argument, which must outlive it.
  [[nodiscard]] std::span<const std::int64_t> members(const std::int64_t& distinct) const noexcept {
    if (!index_.grouped()) return {&distinct, 1};
    const std::int64_t begin = index_.member_offsets[distinct];
    return {index_.members.data() + begin, static_cast<std::size_t>(index_.member_offsets[distinct + 1] - begin)};
  }
  std::span<const std::int64_t> members(std::int64_t&&) const = delete;
  /// For rows whose members will soon be asked for, at random places: first where they lie, then they themselves.
  void prefetch_group(std::int64_t distinct) const noexcept {
    if (index_.grouped()) __builtin_prefetch(&index_.member_offsets[distinct]);
  }
  void prefetch_members(std::int64_t distinct) const noexcept {
    if (index_.grouped()) __builtin_prefetch(&index_.members[index_.member_offsets[distinct]]);
  }

 private:
  const kernels::NearestTask& task_;
  const kernels::Prepared& index_;
  std::int64_t own_;
  bool plain_;
};

/// The k nearest of what was offered: a max-heap by (key, id) over borrowed arrays of length k.
class NearestHeap {
 public:
  NearestHeap(double* keys, std::int64_t* ids, std::int64_t k, std::int64_t size = 0)
      : keys_(keys), ids_(ids), k_(k), size_(size) {}

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// No key above this can enter; infinity while there is room.
  [[nodiscard]] double limit() const noexcept;
  /// False when (key, id) does not enter.
  bool offer(double key, std::int64_t id) noexcept;
  /// Puts the entries into ascending order; the heap must not be used afterwards.
  void sort() noexcept;

 private:
  void sift_down(std::int64_t i, std::int64_t size) noexcept;

  double* keys_;
  std::int64_t* ids_;
  std::int64_t k_;
  std::int64_t size_;
};

class Collector {
 public:
  virtual ~Collector() = default;
  /// Queries [begin, end) come next; the former ones are finished.
  virtual void begin(std::int64_t begin, std::int64_t end) = 0;
  /// A key above this cannot change the answer for the query; may be infinity. Minus infinity: no row can.
  [[nodiscard]] virtual double limit(std::int64_t query) const = 0;
  /// Whether it knows of rows, before their keys are computed, that they cannot change an answer: then `wants` says so.
  [[nodiscard]] virtual bool is_selective() const { return false; }
  [[nodiscard]] virtual bool wants(std::int64_t /*query*/, std::int64_t /*distinct*/) const { return true; }
  virtual void offer(std::int64_t query, double key, std::int64_t distinct) = 0;
  /// Turns what was collected for query `begin + i` into its final order and distances; any thread, one query each.
  virtual void finish(std::int64_t query) = 0;
  /// Takes over what another collector of the same task and range was offered (it saw other rows of the table).
  virtual void absorb(const Collector& other) = 0;
  /// After every query of the range is finished, on the calling thread.
  virtual void end() {}
};

/// The collector a task asks for, writing into `result`. `bytes`: memory in use, shared by all collectors of a search;
/// those whose answers grow add to it and hold it against the limit.
std::unique_ptr<Collector> make_collector(const Context& ctx, const kernels::NearestTask& task,
                                          const Candidates& candidates, kernels::NearestResult& result,
                                          std::atomic<std::uint64_t>& bytes);

}  // namespace vicinal::cpu
