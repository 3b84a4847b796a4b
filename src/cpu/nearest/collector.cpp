// Collectors: k list, radius (CSR) and count. See collector.hpp.
#include "cpu/nearest/collector.hpp"

#include <algorithm>
#include <utility>

#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/order.hpp"
#include "core/poll.hpp"
#include "formulas/nearest/radius.hpp"

namespace vicinal::cpu {
namespace {

class KList final : public Collector {
 public:
  KList(const kernels::NearestTask& task, const Candidates& candidates, kernels::NearestResult& result)
      : task_(task), candidates_(candidates), result_(result) {}

  void begin(std::int64_t begin, std::int64_t end) override {
    begin_ = begin;
    sizes_.assign(static_cast<std::size_t>(end - begin), 0);
  }
  double limit(std::int64_t query) const override { return std::min(heap(query).limit(), task_.max_key_of(query)); }
  void offer(std::int64_t query, double key, std::int64_t distinct) override {
    if (key > task_.max_key_of(query)) return;
    NearestHeap list = heap(query);
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query, id)) continue;
      if (!list.offer(key, id)) break;  // ids ascend: no later one enters either
    }
    sizes_[query - begin_] = list.size();
  }
  void absorb(const Collector& other) override {
    const auto& part = static_cast<const KList&>(other);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int64_t query = begin_ + static_cast<std::int64_t>(i);
      NearestHeap list = heap(query);
      for (std::int64_t at = query * task_.k; at < query * task_.k + part.sizes_[i]; ++at) {
        list.offer(part.result_.distances[at], part.result_.ids[at]);
      }
      sizes_[i] = list.size();
    }
  }
  void finish(std::int64_t query) override {
    heap(query).sort();
    const std::int64_t end = query * task_.k + sizes_[query - begin_];
    for (std::int64_t i = query * task_.k; i < end; ++i) result_.distances[i] = task_.reported(result_.distances[i]);
    if (end < (query + 1) * task_.k) result_.ids[end] = -1;
  }

 private:
  NearestHeap heap(std::int64_t query) const {
    return {result_.distances.data() + query * task_.k, result_.ids.data() + query * task_.k, task_.k,
            sizes_[query - begin_]};
  }

  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  kernels::NearestResult& result_;
  std::int64_t begin_ = 0;
  std::vector<std::int64_t> sizes_;
};

/// The largest keys within the radii of queries [begin, end).
class Limits {
 public:
  explicit Limits(const kernels::NearestTask& task)
      : task_(task), all_(core::largest_key_within(task.metric, task.radius, task.p)) {}

  void begin(const Context& ctx, std::int64_t begin, std::int64_t end) {
    if (task_.radii.empty()) return;
    begin_ = begin;
    each_.resize(static_cast<std::size_t>(end - begin));
    for (std::size_t i = 0; i < each_.size(); ++i) {
      if (i % kAtATime == 0) ctx.check_cancelled();
      const double radius = task_.radii[static_cast<std::size_t>(begin) + i];
      each_[i] = core::largest_key_within(task_.metric, radius, task_.p);
    }
  }
  [[nodiscard]] double of(std::int64_t query) const noexcept {
    return each_.empty() ? all_ : each_[static_cast<std::size_t>(query - begin_)];
  }

 private:
  static constexpr std::size_t kAtATime = 1024;  // which takes some ten milliseconds with powers

  const kernels::NearestTask& task_;
  double all_;
  std::int64_t begin_ = 0;
  std::vector<double> each_;
};

class Radius final : public Collector {
 public:
  Radius(const Context& ctx, const kernels::NearestTask& task, const Candidates& candidates,
         kernels::NearestResult& result, std::atomic<std::uint64_t>& bytes)
      : ctx_(ctx), task_(task), candidates_(candidates), result_(result), bytes_(bytes), limits_(task) {
    result_.offsets.assign(1, 0);
    if (result.handover == nullptr) result_.offsets.reserve(static_cast<std::size_t>(task.queries.rows()) + 1);
  }
  ~Radius() override { forget_found(); }
  Radius(const Radius&) = delete;
  Radius& operator=(const Radius&) = delete;

  void begin(std::int64_t begin, std::int64_t end) override {
    if (result_.handover != nullptr) {  // a round that did not fit may have left something
      forget_found();
      forget_lists();
    }
    begin_ = begin;
    found_.resize(static_cast<std::size_t>(end - begin));
    limits_.begin(ctx_, begin, end);
  }
  double limit(std::int64_t query) const override { return limits_.of(query); }
  void offer(std::int64_t query, double key, std::int64_t distinct) override {
    if (!(key <= limits_.of(query))) return;
    Found& found = found_[query - begin_];
    for (const std::int64_t id : candidates_.members(distinct)) {
      if (!candidates_.eligible(query, id)) continue;
      if (found.size() == found.capacity()) make_room(found, std::max<std::size_t>(16, 2 * found.size()));
      found.emplace_back(key, id);
    }
  }
  void absorb(const Collector& other) override {
    const auto& part = static_cast<const Radius&>(other);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      ctx_.check_cancelled();
      const Found& more = part.found_[i];
      if (found_[i].capacity() < found_[i].size() + more.size()) make_room(found_[i], found_[i].size() + more.size());
      found_[i].insert(found_[i].end(), more.begin(), more.end());
    }
  }
  void finish(std::int64_t query) override {
    Found& found = found_[query - begin_];
    core::Poll poll(ctx_);
    // Pairs (key, id): the total order, or that of the ids.
    const auto comes_before = [by_id = task_.by_id](const Neighbor& a, const Neighbor& b) {
      return by_id ? a.second < b.second : a < b;
    };
    if (found.size() < kLongList) {
      std::sort(found.begin(), found.end(), comes_before);
    } else {
      std::sort(found.begin(), found.end(), [&](const Neighbor& a, const Neighbor& b) {
        poll.step();
        return comes_before(a, b);
      });
    }
    for (auto& [key, id] : found) {
      poll.step();
      key = task_.reported(key);
    }
  }
  void end() override {
    std::int64_t total = result_.offsets.back();
    for (const Found& found : found_) total += static_cast<std::int64_t>(found.size());
    grow(result_.ids, total);
    grow(result_.distances, total);
    core::Poll poll(ctx_);
    for (Found& found : found_) {
      ctx_.check_cancelled();
      for (const auto& [distance, id] : found) {
        poll.step();
        result_.distances.push_back(distance);
        result_.ids.push_back(id);
      }
      result_.offsets.push_back(static_cast<std::int64_t>(result_.ids.size()));
      release(found);
    }
    if (result_.handover == nullptr) return;
    result_.handover->take(begin_);
    forget_lists();
  }

 private:
  using Neighbor = std::pair<double, std::int64_t>;
  using Found = std::vector<Neighbor>;

  static constexpr std::size_t kLongList = 131072;  // that takes tens of milliseconds to sort

  // How many neighbors a radius catches is not known beforehand: each growth is held against the room of a batch, or
  // where all are kept against the limit.
  void take(std::uint64_t added) {
    const std::uint64_t bytes = bytes_.fetch_add(added, std::memory_order_relaxed) + added;
    if (result_.handover == nullptr) {
      core::require_memory(ctx_, bytes, "radius: the neighbors found so far");
    } else if (bytes > result_.handover->room) {
      bytes_.fetch_sub(added, std::memory_order_relaxed);
      throw kernels::NoRoom{};
    }
  }
  template <class T>
  void release(std::vector<T>& values) {
    bytes_.fetch_sub(values.capacity() * sizeof(T), std::memory_order_relaxed);
    std::vector<T>().swap(values);  // `= {}` would keep the memory
  }
  void forget_found() {
    for (Found& found : found_) release(found);
  }
  void forget_lists() {
    release(result_.ids);
    release(result_.distances);
    result_.offsets.assign(1, 0);
  }
  void make_room(Found& found, std::size_t capacity) {
    take((capacity - found.capacity()) * sizeof(Found::value_type));
    found.reserve(capacity);
  }
  template <class T>
  void grow(std::vector<T>& values, std::int64_t total) {
    const auto needed = static_cast<std::size_t>(total);
    if (values.capacity() >= needed) return;
    const std::uint64_t before = values.capacity() * sizeof(T);
    const std::size_t capacity = std::max(needed, values.capacity() + values.capacity() / 2);
    take(capacity * sizeof(T));  // old and new stand side by side while it moves
    values.reserve(capacity);
    bytes_.fetch_sub(before, std::memory_order_relaxed);
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  kernels::NearestResult& result_;
  std::atomic<std::uint64_t>& bytes_;
  Limits limits_;
  std::int64_t begin_ = 0;
  std::vector<Found> found_;
};

class Count final : public Collector {
 public:
  Count(const Context& ctx, const kernels::NearestTask& task, const Candidates& candidates,
        kernels::NearestResult& result)
      : ctx_(ctx), candidates_(candidates), result_(result), limits_(task) {}

  void begin(std::int64_t begin, std::int64_t end) override { limits_.begin(ctx_, begin, end); }
  double limit(std::int64_t query) const override { return limits_.of(query); }
  void offer(std::int64_t query, double key, std::int64_t distinct) override {
    if (!(key <= limits_.of(query))) return;
    for (const std::int64_t id : candidates_.members(distinct)) {
      result_.counts[query] += candidates_.eligible(query, id) ? 1 : 0;
    }
  }
  void absorb(const Collector& other) override {
    const auto& counts = static_cast<const Count&>(other).result_.counts;
    for (std::size_t i = 0; i < counts.size(); ++i) result_.counts[i] += counts[i];
  }
  void finish(std::int64_t /*query*/) override {}

 private:
  const Context& ctx_;
  const Candidates& candidates_;
  kernels::NearestResult& result_;
  Limits limits_;
};

}  // namespace

double NearestHeap::limit() const noexcept {
  return size_ < k_ ? kInfinity : keys_[0];
}

bool NearestHeap::offer(double key, std::int64_t id) noexcept {
  if (size_ < k_) {
    std::int64_t i = size_++;
    while (i > 0) {
      const std::int64_t parent = (i - 1) / 2;
      if (!core::nearer(keys_[parent], ids_[parent], key, id)) break;
      keys_[i] = keys_[parent];
      ids_[i] = ids_[parent];
      i = parent;
    }
    keys_[i] = key;
    ids_[i] = id;
    return true;
  }
  if (!core::nearer(key, id, keys_[0], ids_[0])) return false;
  keys_[0] = key;
  ids_[0] = id;
  sift_down(0, size_);
  return true;
}

void NearestHeap::sort() noexcept {
  for (std::int64_t last = size_ - 1; last > 0; --last) {
    std::swap(keys_[0], keys_[last]);
    std::swap(ids_[0], ids_[last]);
    sift_down(0, last);
  }
}

void NearestHeap::sift_down(std::int64_t i, std::int64_t size) noexcept {
  const double key = keys_[i];
  const std::int64_t id = ids_[i];
  for (std::int64_t child = 2 * i + 1; child < size; child = 2 * i + 1) {
    if (child + 1 < size && core::nearer(keys_[child], ids_[child], keys_[child + 1], ids_[child + 1])) ++child;
    if (!core::nearer(key, id, keys_[child], ids_[child])) break;
    keys_[i] = keys_[child];
    ids_[i] = ids_[child];
    i = child;
  }
  keys_[i] = key;
  ids_[i] = id;
}

std::unique_ptr<Collector> make_collector(const Context& ctx, const kernels::NearestTask& task,
                                          const Candidates& candidates, kernels::NearestResult& result,
                                          std::atomic<std::uint64_t>& bytes) {
  switch (task.collect) {
    case kernels::Collect::k_list:
      return std::make_unique<KList>(task, candidates, result);
    case kernels::Collect::radius:
      return std::make_unique<Radius>(ctx, task, candidates, result, bytes);
    case kernels::Collect::count:
      break;
  }
  return std::make_unique<Count>(ctx, task, candidates, result);
}

}  // namespace vicinal::cpu
