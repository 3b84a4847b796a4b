// A search on the device: groups of queries against the table, which lies there or passes through in tiles (contract
// clause 7: what is planned is what is taken). While one tile is searched by a thread of its own, the caller's thread
// fills the next, so that reading and transfer hide behind computing. Lists stay on the device until they are asked
// for: votes are taken there.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuda/direct.hpp"
#include "cuda/papers/papers.hpp"
#include "cuda/session.hpp"
#include "cuda/vote.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMostGroup = std::int64_t{1} << 22;    // queries
constexpr std::int64_t kMostTile = std::int64_t{1} << 30;     // bytes
constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;      // of device memory for anything
constexpr std::int64_t kLongestList = std::int64_t{1} << 31;  // neighbors of a query

[[noreturn]] void refuse_memory(std::uint64_t needed, std::uint64_t left) {
  throw Failure{ErrorCode::over_memory, "the search needs " + std::to_string(needed) + " bytes of device memory, but " +
                                            std::to_string(left) + " are left within the limit"};
}

bool is_of_a_paper(std::int32_t method) {
  return method > static_cast<std::int32_t>(Method::kdtree);
}

/// Sizes that follow from the search and from what is left of the limit.
struct Layout {
  std::uint64_t left = 0;     ///< bytes the call may take
  std::uint64_t fixed = 0;    ///< bytes for filter, labels, votes' totals
  std::uint64_t query = 0;    ///< bytes of one query and its answer
  std::int64_t group = 0;     ///< queries
  std::int64_t tile = 0;      ///< rows of a streamed table's tile; 0: the table is resident
  std::uint64_t scratch = 0;  ///< bytes for the passes

  Layout(const Session& session, const plugin::Search& call) {
    const Engine& engine = session.engine;
    const auto n = static_cast<std::uint64_t>(call.table.rows);
    const bool resident = call.resident != nullptr || call.stays != 0;
    std::uint64_t held = session.resident_bytes;
    if (call.stays != 0) held += n * static_cast<std::uint64_t>(row_bytes(call.table));
    left = engine.memory_limit - std::min(engine.memory_limit, held);
    if (call.filter != nullptr) fixed += (n + 63) / 64 * 8;
    fixed += static_cast<std::uint64_t>(call.k_distance_count) * 8;
    const auto on_device = [](std::int32_t memory) { return static_cast<Memory>(memory) == Memory::cuda; };
    const bool contiguous = call.queries.col_stride == 1 && call.queries.row_stride == call.queries.cols;
    const bool borrowed = on_device(call.queries.memory) && contiguous;
    if (!borrowed && !(call.self != 0 && resident)) {
      query += static_cast<std::uint64_t>(row_bytes(call.queries));
    }
    if (call.exclude != nullptr) query += 8;
    query += 16;  // size and limit of a list, or a count
    if (call.collect == plugin::kKList && (call.output_count > 0 || !on_device(call.memory))) {
      query += static_cast<std::uint64_t>(call.k) * 16;
    }
    for (std::int64_t o = 0; o < call.output_count; ++o) {
      const plugin::VoteOutput& output = call.outputs[o];
      fixed += n * sizeof(std::int32_t) + vote_bytes(engine, output.classes);
      query += sizeof(std::int32_t);
      if (output.probabilities != nullptr) query += static_cast<std::uint64_t>(output.classes) * sizeof(double);
    }
    const std::uint64_t row = static_cast<std::uint64_t>(row_bytes(call.table));
    const std::uint64_t least = fixed + query + (resident ? 0 : 2 * row) + kLeast;
    if (left < least) refuse_memory(least, left);
    // A quarter for queries and answers, half of the rest for tiles, the remainder for the passes.
    const std::uint64_t free = left - fixed;
    const std::uint64_t share = resident ? free / 2 : free / 4;
    group = static_cast<std::int64_t>(std::clamp<std::uint64_t>(
        share / query, 1, static_cast<std::uint64_t>(std::min(call.queries.rows, kMostGroup))));
    std::uint64_t taken = fixed + static_cast<std::uint64_t>(group) * query;
    if (taken > left) refuse_memory(taken, left);
    if (!resident) {
      const std::uint64_t room = std::min<std::uint64_t>((left - taken) / 4, kMostTile);
      tile = static_cast<std::int64_t>(std::clamp<std::uint64_t>(room / row, 1, n));
      taken += 2 * static_cast<std::uint64_t>(tile) * row;
      if (taken > left) refuse_memory(taken, left);
    }
    scratch = left - taken;
  }

  /// Everything but the passes.
  [[nodiscard]] std::uint64_t taken() const { return left - scratch; }
};

/// The host's calls, as part of a whole and with a stop of our own.
struct Relay {
  Host host;
  double from = 0;
  double share = 1;
  std::atomic<bool> stopped{false};

  static int cancelled(void* user) {
    auto& relay = *static_cast<Relay*>(user);
    if (relay.stopped.load(std::memory_order_relaxed)) return 1;
    return relay.host.cancelled != nullptr ? relay.host.cancelled(relay.host.user) : 0;
  }
  static void report(void* user, const char* stage, double fraction) {
    auto& relay = *static_cast<Relay*>(user);
    relay.host.progress(stage, relay.from + relay.share * fraction);
  }
};

/// A thread of ours leaves every signal to the threads of the program.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// What comes into `to` from now on waits for what is in `from`.
  void order(cudaStream_t from, cudaStream_t to) {
    check(cudaEventRecord(event_, from), "record an event");
    check(cudaStreamWaitEvent(to, event_), "wait for an event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

template <class T>
void to_device(const Engine& engine, T* to, const T* from, std::int64_t count) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyHostToDevice, engine.stream),
        "copy to the device");
}
template <class T>
void to_host(const Engine& engine, T* to, const T* from, std::int64_t count) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
}

class Run {
 public:
  Run(Session& session, const Host& host, const plugin::Search& call, plugin::Counters& counters)
      : session_(session),
        engine_(session.engine),
        call_(call),
        counters_(counters),
        resident_(static_cast<const Resident*>(call.resident)),
        layout_(session, call),
        queries_ready_(lies_ready(session.engine, call.queries, call.self != 0 ? "table" : "queries")) {
    relay_.host = host;
    engine_.host = {&relay_, &Relay::cancelled, &Relay::report};
    engine_.memory_limit = layout_.scratch;
    search_.self = call.self != 0;
    search_.metric = static_cast<Metric>(call.metric);
    search_.p = call.p;
    if (resident_ != nullptr) {
      search_.table = resident_->rows;
      search_.facts = resident_->table_facts();
    }
    counters_.distinct_rows = call.table.rows;
  }

  void run() {
    if (call_.k >= kLongestList) throw Failure{ErrorCode::invalid_argument, "k: CUDA serves less than 2^31 neighbors"};
    check_outputs();
    const Buffer<std::uint64_t> filter(engine_, call_.filter != nullptr ? (call_.table.rows + 63) / 64 : 0);
    if (call_.filter != nullptr) {
      to_device(engine_, filter.data(), call_.filter, filter.size());
      search_.filter = filter.data();
    }
    if (call_.k_distance_count > 0) {
      k_distances_ = Buffer<double>(engine_, call_.k_distance_count);
      to_device(engine_, k_distances_.data(), call_.k_distances, call_.k_distance_count);
    }
    for (std::int64_t o = 0; o < call_.output_count; ++o) {
      labels_.emplace_back(engine_, call_.table.rows);
      to_device(engine_, labels_.back().data(), call_.outputs[o].labels, call_.table.rows);
    }
    const std::int64_t m = call_.queries.rows;
    for (std::int64_t begin = 0; begin < m; begin += layout_.group) {
      const std::int64_t end = std::min(m, begin + layout_.group);
      relay_.from = static_cast<double>(begin) / static_cast<double>(m);
      relay_.share = static_cast<double>(end - begin) / static_cast<double>(m);
      search_group(begin, end);
    }
    engine_.synchronize();
  }

 private:
  /// The caller's memory for answers, when it is the device's.
  void check_outputs() const {
    if (call_.collect != plugin::kKList || call_.output_count > 0) return;
    if (static_cast<Memory>(call_.memory) != Memory::cuda) return;
    for (const void* data : {static_cast<const void*>(call_.ids), static_cast<const void*>(call_.distances)}) {
      plugin::Table answer;
      answer.data = data;
      answer.memory = call_.memory;
      static_cast<void>(lies_ready(engine_, answer, "output"));
    }
  }

  void search_group(std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    const std::int64_t bytes = row_bytes(call_.queries);
    search_.first_query = begin;
    search_.queries = {nullptr, static_cast<DType>(call_.queries.dtype), count, call_.queries.cols};
    Buffer<std::byte> copy;
    if (search_.self && resident_ != nullptr) {
      search_.queries.data = static_cast<const std::byte*>(resident_->rows.data) + begin * bytes;
    } else if (queries_ready_) {
      search_.queries.data = static_cast<const std::byte*>(call_.queries.data) + begin * bytes;
    } else {
      copy = Buffer<std::byte>(engine_, count * bytes);
      upload_rows(session_, call_.queries, begin, end, copy.data(), engine_.stream);
      search_.queries.data = copy.data();
    }
    if (!search_.self) check_finite(engine_, search_.queries, begin, "queries");
    const Buffer<std::int64_t> exclude(engine_, call_.exclude != nullptr ? count : 0);
    if (call_.exclude != nullptr) {
      to_device(engine_, exclude.data(), call_.exclude + begin, count);
      search_.exclude = exclude.data();
    }
    if (call_.collect == plugin::kKList) {
      find_lists(begin, count);
    } else {
      find_within(begin, count);
    }
  }

  void find_lists(std::int64_t begin, std::int64_t count) {
    const std::int64_t k = call_.k;
    const bool votes = call_.output_count > 0;
    const bool in_place = !votes && static_cast<Memory>(call_.memory) == Memory::cuda;
    const Buffer<std::int64_t> own_ids(engine_, in_place ? 0 : count * k);
    const Buffer<double> own_distances(engine_, in_place ? 0 : count * k);
    const KLists lists = {k, in_place ? call_.ids + begin * k : own_ids.data(),
                          in_place ? call_.distances + begin * k : own_distances.data()};
    const bool fused = static_cast<Method>(call_.method) == Method::fused;
    if ((fused || is_of_a_paper(call_.method)) && resident_ == nullptr) {
      throw Failure{ErrorCode::over_memory,
                    "method: it needs the table in device memory, where there is no room left for it within the limit; "
                    "direct does not"};
    }
    if (is_of_a_paper(call_.method)) {
      PaperStats found;
      paper_k_lists(engine_,
                    {&search_, static_cast<Method>(call_.method), lists, k_distances_.data(), call_.k_distance_count},
                    found);
      counters_.survivors += found.ranked;
      counters_.selection_seconds += found.selection_seconds;
    } else if (fused) {
      Counters found;
      fused_k_lists(engine_, search_, lists, found);
      counters_.survivors += found.survivors;
      counters_.escalated += found.escalated;
      counters_.uncertified += found.uncertified;
    } else {
      const Buffer<std::int64_t> sizes(engine_, count);
      const Buffer<double> limits(engine_, count);
      DirectTask task;
      task.lists = {k, lists.distances, lists.ids, sizes.data(), limits.data()};
      clear_lists(engine_, task.lists, count);
      for_each_tile(task, search_);
      finish_lists(engine_, search_.metric, search_.p, lists.distances, lists.ids, nullptr, k, count);
    }
    if (votes) return vote(lists, begin, count);
    if (in_place) return;
    to_host(engine_, call_.ids + begin * k, lists.ids, count * k);
    to_host(engine_, call_.distances + begin * k, lists.distances, count * k);
    engine_.synchronize();
  }

  void vote(const KLists& lists, std::int64_t begin, std::int64_t count) {
    for (std::int64_t o = 0; o < call_.output_count; ++o) {
      const plugin::VoteOutput& output = call_.outputs[o];
      const bool shares = output.probabilities != nullptr;
      const Buffer<std::int32_t> codes(engine_, count);
      const Buffer<double> probabilities(engine_, shares ? count * output.classes : 0);
      if (shares) probabilities.zero();
      vote_on_lists(engine_, lists.ids, lists.distances, count, lists.k, call_.weights != 0,
                    {labels_[static_cast<std::size_t>(o)].data(), output.classes, codes.data(), probabilities.data()});
      to_host(engine_, output.codes + begin, codes.data(), count);
      if (shares) {
        to_host(engine_, output.probabilities + begin * output.classes, probabilities.data(), count * output.classes);
      }
    }
    engine_.synchronize();
  }

  /// Radius and count: how many there are first; then, with room for just so many, which.
  void find_within(std::int64_t begin, std::int64_t count) {
    const Buffer<unsigned long long> found(engine_, count);
    found.zero();
    DirectTask task;
    task.largest_key = call_.largest_key;
    task.counts = found.data();
    for_each_tile(task, search_);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(count));
    static_assert(sizeof(std::int64_t) == sizeof(unsigned long long));
    check(cudaMemcpyAsync(counts.data(), found.data(), found.bytes(), cudaMemcpyDeviceToHost, engine_.stream),
          "copy from the device");
    engine_.synchronize();
    if (call_.collect == plugin::kCount) {
      std::copy(counts.begin(), counts.end(), call_.counts + begin);
      return;
    }
    const auto most = static_cast<std::int64_t>(layout_.scratch / 2 / 16);
    for (std::int64_t first = 0; first < count;) {
      std::int64_t last = first;
      std::int64_t total = 0;
      while (last < count && total + counts[static_cast<std::size_t>(last)] <= most) {
        total += counts[static_cast<std::size_t>(last++)];
      }
      if (last == first) {
        refuse_memory(static_cast<std::uint64_t>(counts[static_cast<std::size_t>(first)]) * 32, layout_.scratch);
      }
      keep_within({counts.data() + first, static_cast<std::size_t>(last - first)}, first, total);
      first = last;
    }
  }

  /// The neighbors of some queries of the group, `total` of them.
  void keep_within(std::span<const std::int64_t> counts, std::int64_t first, std::int64_t total) {
    const auto queries = static_cast<std::int64_t>(counts.size());
    std::int64_t* host_ids = nullptr;
    double* host_distances = nullptr;
    if (call_.make_room(call_.user, counts.data(), queries, &host_ids, &host_distances) != 0) throw HostFailure{};
    if (total == 0) return;
    std::vector<std::int64_t> host_offsets(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), host_offsets.begin() + 1);
    const Buffer<std::int64_t> offsets(engine_, queries + 1);
    to_device(engine_, offsets.data(), host_offsets.data(), queries + 1);
    const Buffer<unsigned long long> found(engine_, queries);
    found.zero();
    const Buffer<double> keys(engine_, total);
    const Buffer<std::int64_t> ids(engine_, total);
    Search part = search_;
    part.queries.n = queries;
    part.queries.data = static_cast<const std::byte*>(search_.queries.data) + first * row_bytes(call_.queries);
    part.first_query += first;
    if (part.exclude != nullptr) part.exclude += first;
    DirectTask task;
    task.largest_key = call_.largest_key;
    task.counts = found.data();
    task.keys = keys.data();
    task.ids = ids.data();
    task.offsets = offsets.data();
    const std::uint64_t limit = engine_.memory_limit;
    engine_.memory_limit = limit / 2;
    for_each_tile(task, part);
    engine_.memory_limit = limit;
    finish_lists(engine_, part.metric, part.p, keys.data(), ids.data(), offsets.data(), 0, queries);
    to_host(engine_, host_ids, ids.data(), total);
    to_host(engine_, host_distances, keys.data(), total);
    engine_.synchronize();
  }

  /// A pass over the whole table.
  void for_each_tile(DirectTask task, const Search& search) {
    if (resident_ == nullptr) return stream_tiles(task, search);
    task.search = &search;
    direct_pass(engine_, task);
  }

  /// Two tiles in turns: one is searched while the other is filled.
  void stream_tiles(const DirectTask& task, const Search& search) {
    const std::int64_t n = call_.table.rows;
    const std::int64_t bytes = row_bytes(call_.table);
    const Buffer<std::byte> tiles[2] = {{engine_, layout_.tile * bytes},
                                        {engine_, layout_.tile < n ? layout_.tile * bytes : 0}};
    Event event;
    event.order(engine_.stream, session_.copies);
    const auto fill = [&](std::int64_t begin, int turn) {
      upload_rows(session_, call_.table, begin, std::min(n, begin + layout_.tile), tiles[turn].data(), session_.copies);
    };
    struct CopiesDone {  // before the tiles are given back
      cudaStream_t copies;
      ~CopiesDone() { static_cast<void>(cudaStreamSynchronize(copies)); }
    } const done{session_.copies};
    fill(0, 0);
    int turn = 0;
    for (std::int64_t begin = 0; begin < n; begin += layout_.tile, turn = 1 - turn) {
      event.order(session_.copies, engine_.stream);
      Search tile = search;
      tile.first_row = begin;
      tile.table = {tiles[turn].data(), static_cast<DType>(call_.table.dtype), std::min(n - begin, layout_.tile),
                    call_.table.cols};
      const std::int64_t next = begin + layout_.tile;
      search_beside(task, tile, [&] {
        if (next < n) fill(next, 1 - turn);
      });
      engine_.host.progress("search", static_cast<double>(std::min(n, next)) / static_cast<double>(n));
    }
  }

  /// Searches a tile on another thread while this one does what only the caller's thread may.
  template <class Work>
  void search_beside(DirectTask task, const Search& tile, Work work) {
    task.search = &tile;
    Engine engine = engine_;
    engine.host.report = nullptr;
    std::exception_ptr search_error;
    std::exception_ptr work_error;
    std::thread searcher;
    {
      const SignalsBlocked blocked;
      searcher = std::thread([&] {
        try {
          check(cudaSetDevice(engine.device), "choose the device");
          direct_pass(engine, task);
        } catch (...) {
          search_error = std::current_exception();
        }
      });
    }
    try {
      work();
    } catch (...) {
      work_error = std::current_exception();
      relay_.stopped = true;
    }
    searcher.join();
    if (work_error) std::rethrow_exception(work_error);
    if (search_error) std::rethrow_exception(search_error);
  }

  Session& session_;
  Engine engine_;
  const plugin::Search& call_;
  plugin::Counters& counters_;
  const Resident* resident_;
  Layout layout_;
  bool queries_ready_;
  Relay relay_;
  Search search_;
  std::vector<Buffer<std::int32_t>> labels_;
  Buffer<double> k_distances_;
};

}  // namespace

void nearest(Session& session, const Host& host, const plugin::Search& search, plugin::Counters& counters) {
  Run(session, host, search, counters).run();
}

std::uint64_t nearest_bytes(const Session& session, const plugin::Search& call) {
  const Layout layout(session, call);
  Search search;
  search.metric = static_cast<Metric>(call.metric);
  search.table = {nullptr, static_cast<DType>(call.table.dtype), call.table.rows, call.table.cols};
  if (static_cast<Method>(call.method) == Method::fused) {
    return layout.taken() + fused_bytes(session.engine, search, layout.group, call.k, layout.scratch);
  }
  if (is_of_a_paper(call.method)) {
    const PaperTask paper{&search, static_cast<Method>(call.method), {call.k, nullptr, nullptr}};
    return layout.taken() + paper_bytes(paper, layout.group, layout.scratch);
  }
  DirectTask task;
  task.search = &search;
  task.lists.k = call.collect == plugin::kKList ? call.k : 0;
  const std::int64_t rows = layout.tile > 0 ? layout.tile : call.table.rows;
  return layout.taken() + direct_bytes(task, rows, layout.group, layout.scratch);
}

}  // namespace vicinal::cuda
