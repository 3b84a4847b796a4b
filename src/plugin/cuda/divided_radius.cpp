// Lists within a radius on several devices. The queries are cut into chunks, which the devices take in turns; a device
// hands the lists of a batch over and goes on with the next, while those before it are awaited. The calling thread puts
// batches into the order of the queries, so that no more than two a device are held besides the result.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "backend/backend.hpp"
#include "core/memory.hpp"
#include "plugin/cuda/divided_nearest.hpp"

namespace vicinal::plugin {
namespace {

using kernels::NearestTask;

constexpr std::int64_t kChunks = 8;                            // of a device
constexpr std::uint64_t kUsualRoom = std::uint64_t{32} << 20;  // of a batch, unless one list needs more

/// Bytes that the lists of one query may take.
std::uint64_t longest_list(const NearestTask& task) {
  return static_cast<std::uint64_t>(task.index->table.rows()) * kNeighborBytes;
}

/// The room of a device's batch where all lists stay.
std::uint64_t usual_room(const NearestTask& task) {
  const auto m = static_cast<std::uint64_t>(task.queries.rows());
  const std::uint64_t one = longest_list(task);
  return m > kUsualRoom / one ? std::max(one, kUsualRoom) : m * one;
}

struct Batch {
  std::int64_t first = 0;  ///< query
  std::vector<std::int64_t> ids;
  std::vector<double> distances;
  std::vector<std::int64_t> offsets;
};

/// The batches of all chunks, on their way to the calling thread.
class Lanes {
 public:
  Lanes(Crew& crew, std::int64_t chunks, std::int64_t devices)
      : crew_(crew),
        chunks_(static_cast<std::size_t>(chunks)),
        waiting_(static_cast<std::size_t>(devices), false),
        refused_(chunks) {}

  /// Thrown on a device's thread whose chunk comes after one that was refused.
  struct OutOfUse {};

  /// By a device's thread: waits until its batch before was taken.
  void give(const Context& ctx, std::int64_t device, std::int64_t chunk, Batch batch) {
    const auto own = static_cast<std::size_t>(device);
    {
      std::unique_lock lock(mutex_);
      while (waiting_[own] && chunk < refused_) {
        taken_.wait_for(lock, std::chrono::milliseconds(5));
        ctx.check_cancelled();
      }
      if (chunk > refused_) throw OutOfUse{};
      waiting_[own] = true;
      Chunk& to = chunks_[static_cast<std::size_t>(chunk)];
      to.device = own;
      to.batches.push_back(std::move(batch));
    }
    crew_.wake();
  }
  void end(std::int64_t chunk) {
    {
      const std::lock_guard lock(mutex_);
      chunks_[static_cast<std::size_t>(chunk)].ended = true;
    }
    crew_.wake();
  }
  /// By a device's thread: what is wrong with the data of a chunk. Those before it go on, for their queries come first.
  void refuse(std::int64_t chunk, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (chunk > refused_) return;
    refused_ = chunk;
    error_ = std::move(error);
  }
  /// Whether no chunk before this one was refused.
  [[nodiscard]] bool wants(std::int64_t chunk) {
    const std::lock_guard lock(mutex_);
    return chunk < refused_;
  }
  /// Of the first chunk that was refused; null if there is none. Once all have ended.
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }
  /// Calls visit(batch) for those whose turn it is.
  template <class Visit>
  void take(const Visit& visit) {
    std::unique_lock lock(mutex_);
    while (current_ < chunks_.size()) {
      Chunk& from = chunks_[current_];
      if (from.batches.empty()) {
        if (!from.ended) return;
        ++current_;
        continue;
      }
      Batch batch = std::move(from.batches.front());
      from.batches.pop_front();
      lock.unlock();
      visit(batch);
      lock.lock();
      waiting_[from.device] = false;
      taken_.notify_all();
    }
  }

 private:
  struct Chunk {
    std::size_t device = 0;
    std::deque<Batch> batches;
    bool ended = false;
  };

  Crew& crew_;
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<Chunk> chunks_;
  std::vector<bool> waiting_;  // whether a device's batch has not been taken yet
  std::size_t current_ = 0;
  std::int64_t refused_;  // the first chunk that was
  std::exception_ptr error_;
};

/// Where the lists go: to the caller batch by batch, or all of them to the result.
class Lists {
 public:
  Lists(const Context& ctx, kernels::NearestResult& result, std::uint64_t scratch)
      : ctx_(ctx), result_(result), bytes_(scratch) {
    result_.offsets.assign(1, 0);
  }

  void take(Batch& batch) {
    if (result_.handover != nullptr) {
      result_.ids.swap(batch.ids);
      result_.distances.swap(batch.distances);
      result_.offsets.swap(batch.offsets);
      result_.handover->take(batch.first);
      std::vector<std::int64_t>().swap(result_.ids);
      std::vector<double>().swap(result_.distances);
      result_.offsets.assign(1, 0);
      return;
    }
    const std::int64_t before = result_.offsets.back();
    append(batch.ids, result_.ids);
    append(batch.distances, result_.distances);
    for (std::size_t q = 1; q < batch.offsets.size(); ++q) result_.offsets.push_back(before + batch.offsets[q]);
  }

 private:
  template <class T>
  void append(const std::vector<T>& values, std::vector<T>& to) {
    const std::size_t total = to.size() + values.size();
    if (to.capacity() < total) {
      const std::uint64_t before = to.capacity() * sizeof(T);
      const std::size_t capacity = std::max(total, to.capacity() + to.capacity() / 2);
      // Old and new stand side by side while it moves.
      core::require_memory(ctx_, bytes_ + capacity * sizeof(T), "radius: the neighbors found so far");
      to.reserve(capacity);
      bytes_ += capacity * sizeof(T) - before;
    }
    to.insert(to.end(), values.begin(), values.end());
  }

  const Context& ctx_;
  kernels::NearestResult& result_;
  std::uint64_t bytes_;
};

}  // namespace

std::uint64_t within_divided_bytes(const Crew& crew, const NearestTask& task) {
  // With a Handover there is room for them.
  return task.in_batches ? 0 : 2 * static_cast<std::uint64_t>(crew.size()) * usual_room(task);
}

void find_within_divided(const Context& ctx, Crew& crew, const DividedNearest& nearest, const NearestTask& task,
                         kernels::NearestResult& result) {
  std::int64_t devices = std::min(crew.size(), task.queries.rows());
  std::uint64_t room = usual_room(task);
  if (result.handover != nullptr) {
    // Each device has a batch that it fills, and one that waits. Where there is little room, fewer devices work.
    const std::uint64_t each = 2 * longest_list(task);
    devices = std::clamp<std::int64_t>(static_cast<std::int64_t>(result.handover->room / each), 1, devices);
    room = result.handover->room / static_cast<std::uint64_t>(2 * devices);
    if (room < longest_list(task)) {
      SearchPart whole;
      DividedNearest::take_queries(task, 0, task.queries.rows(), 0, whole);
      return nearest.of(0).search(ctx, whole.task, result);
    }
  }
  const std::vector<std::int64_t> cuts = equal_cuts(task.queries.rows(), devices * kChunks, 1);
  const std::int64_t chunks = std::ssize(cuts) - 1;
  Lanes lanes(crew, chunks, devices);
  Lists lists(ctx, result, task.bytes_beside + nearest.host_bytes(ctx, task) + cuts.back() * 8);
  std::vector<SearchStats> counted(static_cast<std::size_t>(devices));
  const auto work = [&](std::int64_t device) {
    for (std::int64_t chunk = device; chunk < chunks && lanes.wants(chunk); chunk += devices) {
      const auto at = static_cast<std::size_t>(chunk);
      SearchPart part;
      DividedNearest::take_queries(task, cuts[at], cuts[at + 1], device, part);
      part.task.in_batches = true;
      Batch batch;
      std::vector<std::int64_t> unused;
      const kernels::Handover handover{room, [&](std::int64_t first) {
                                         Batch full;
                                         full.first = part.begin + first;
                                         full.ids.swap(batch.ids);
                                         full.distances.swap(batch.distances);
                                         full.offsets = batch.offsets;  // which are counted after this
                                         lanes.give(crew.context(device), device, chunk, std::move(full));
                                       }};
      kernels::NearestResult own{
          batch.ids, batch.distances, batch.offsets, unused, counted[static_cast<std::size_t>(device)], &handover};
      try {
        nearest.of(device).search(crew.context(device), part.task, own);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_data) throw;
        return lanes.refuse(chunk, std::current_exception());
      } catch (const Lanes::OutOfUse&) {
        return;
      }
      lanes.end(chunk);
    }
  };
  crew.run("radius", ctx, devices, work, [&] { lanes.take([&](Batch& batch) { lists.take(batch); }); });
  if (lanes.error()) {
    kernels::cpu_backend().nearest().check_queries(ctx, task);  // which one device does before it compares
    std::rethrow_exception(lanes.error());
  }
  for (const SearchStats& from : counted) add_stats(from, result.stats);
  result.stats.distinct_rows = task.index->table.rows();
}

}  // namespace vicinal::plugin
