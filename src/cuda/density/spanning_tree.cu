// See spanning_tree.hpp: the memory, the order of the work, and the edges in order at the end. What threads do in a
// round stands in growth.cuh, searches in in_tree.cu and of_all.cu. O(n k) memory for the lists, and 16 n and some
// 70 n bytes beside them; time as on the CPU: n k a round, of which there are at most log2 n, and the searches.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cuda/base/memory.hpp"
#include "cuda/base/order.hpp"
#include "cuda/density/growth.cuh"
#include "cuda/density/other_rows.hpp"
#include "cuda/density/spanning_tree.hpp"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda {
namespace density {
namespace {

constexpr std::uint64_t kUsualScratch = std::uint64_t{512} << 20;  // more does not make it faster
constexpr std::int64_t kEdgesFetched = std::int64_t{1} << 22;      // at a time

template <class Work>
__global__ void __launch_bounds__(kThreads) each_kernel(const __grid_constant__ Work work, std::int64_t count) {
  const std::int64_t i = own_number();
  if (i < count) work(i);
}

__global__ void number_edges_kernel(const unsigned long long* edges, std::int64_t count, unsigned long long* keys,
                                    std::uint32_t* numbers) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  keys[i] = edges[i];
  numbers[i] = static_cast<std::uint32_t>(i);
}
__global__ void key_edges_kernel(const double* edge_keys, const std::uint32_t* numbers, std::int64_t count,
                                 unsigned long long* keys) {
  const std::int64_t i = own_number();
  if (i < count) keys[i] = place_of(edge_keys[numbers[i]]);
}
__global__ void give_edges_kernel(const double* edge_keys, const unsigned long long* edges,
                                  const std::uint32_t* numbers, std::int64_t count, plugin::TreeEdge* to) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  const std::uint32_t number = numbers[i];
  to[i].key = edge_keys[number];
  to[i].a = first_of(edges[number]);
  to[i].b = second_of(edges[number]);
}

/// Of a row beside its list: what Growth has, but for edges and core keys.
constexpr std::uint64_t kRowBytes = 6 * sizeof(std::uint32_t) + 2 * sizeof(double) + 2 + 2 * sizeof(unsigned long long);
constexpr std::uint64_t kEdgeBytes = sizeof(double) + sizeof(unsigned long long);

struct Needs {
  std::uint64_t lists = 0;
  std::uint64_t rows = 0;     ///< while the tree grows
  std::uint64_t edges = 0;    ///< from the beginning to the end, with core keys
  std::uint64_t at_end = 0;   ///< instead of lists and rows: to put the edges in order
  std::uint64_t scratch = 0;  ///< of searches, at least

  Needs(const plugin::Search& search, const plugin::SpanningTask& task) {
    const auto n = static_cast<std::uint64_t>(search.table.rows);
    const Rows table = {nullptr, static_cast<DType>(search.table.dtype), search.table.rows, search.table.cols};
    const bool in_tree = static_cast<Method>(search.method) == Method::kdtree;
    lists = n * static_cast<std::uint64_t>(search.k) * 16;
    rows = n * kRowBytes + in_order_bytes(search.table.rows);
    if (in_tree) rows += in_tree_bytes(search.table.rows, task.rank > 0);
    edges = n * (kEdgeBytes + (task.rank > 0 ? sizeof(double) : 0));
    at_end = KeyedValues::bytes(search.table.rows) +
             static_cast<std::uint64_t>(std::min(search.table.rows, kEdgesFetched)) * sizeof(plugin::TreeEdge);
    scratch = in_tree ? in_tree_scratch(table.d) : of_all_scratch(table);
  }
  [[nodiscard]] std::uint64_t growing() const { return lists + rows + edges; }
  [[nodiscard]] std::uint64_t least() const { return std::max(growing() + scratch, edges + at_end); }

 private:
  /// What listing flagged rows takes besides.
  static std::uint64_t in_order_bytes(std::int64_t n) { return static_cast<std::uint64_t>(n) / 16 + (1 << 16); }
};

/// The device as `grow` wants it.
class DeviceSpace {
 public:
  DeviceSpace(const Engine& engine, const Growth& growth, std::function<std::unique_ptr<OtherRows>()> make)
      : engine_(engine), growth_(growth), make_(std::move(make)), found_(engine, 1), pace_(engine) {}

  template <class Work>
  void each(std::int64_t count, const Work& work) {
    if (count == 0) return;
    each_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine_.stream>>>(work, count);
    check_launch("grow a spanning tree");
    pace_.step();
  }
  [[nodiscard]] std::int64_t list(std::int64_t count) {
    list_flagged(engine_, growth_.flags, count, growth_.numbers, found_.data());
    std::int64_t found = 0;
    to_host(engine_, &found, found_.data(), 1);
    engine_.synchronize();
    return found;
  }
  void clear(std::uint32_t* at) { check(cudaMemsetAsync(at, 0, sizeof *at, engine_.stream), "clear device memory"); }
  [[nodiscard]] std::int64_t fetch(const std::uint32_t* at) {
    std::uint32_t number = 0;
    to_host(engine_, &number, at, 1);
    engine_.synchronize();
    return number;
  }
  void relabel() {
    if (!others_) others_ = make_();
    others_->relabel();
  }
  void search(std::int64_t count) {
    if (count > 0) others_->search(count);
  }
  void grown(std::int64_t edges) {
    engine_.host.progress("tree", static_cast<double>(edges) / static_cast<double>(growth_.n - 1));
  }

 private:
  const Engine& engine_;
  const Growth& growth_;
  std::function<std::unique_ptr<OtherRows>()> make_;
  std::unique_ptr<OtherRows> others_;
  Buffer<std::int64_t> found_;
  Pace pace_;
};

/// The arrays of a Growth beside lists, cores and edges.
struct RowState {
  Buffer<std::uint32_t> numbers[6];
  Buffer<double> floor;
  Buffer<double> other_key;
  Buffer<std::uint8_t> known;
  Buffer<std::uint8_t> flags;
  Buffer<unsigned long long> best;
  Buffer<unsigned long long> pair;
  Buffer<unsigned long long> largest;
  Buffer<std::uint32_t> count;

  RowState(const Engine& engine, std::int64_t n)
      : floor(engine, n),
        other_key(engine, n),
        known(engine, n),
        flags(engine, n),
        best(engine, n),
        pair(engine, n),
        largest(engine, 1),
        count(engine, 1) {
    for (Buffer<std::uint32_t>& each : numbers) each = Buffer<std::uint32_t>(engine, n);
  }
  void give(Growth& growth) const {
    growth.parent = numbers[0].data();
    growth.label = numbers[1].data();
    growth.sizes = numbers[2].data();
    growth.next = numbers[3].data();
    growth.other = numbers[4].data();
    growth.numbers = numbers[5].data();
    growth.floor = floor.data();
    growth.other_key = other_key.data();
    growth.known = known.data();
    growth.flags = flags.data();
    growth.best = best.data();
    growth.pair = pair.data();
    growth.largest = largest.data();
    growth.count = count.data();
  }
};

class SpanningRun {
 public:
  SpanningRun(Session& session, const Host& host, const plugin::Search& search, plugin::SpanningTask& task)
      : session_(session),
        engine_(session.engine),
        call_(search),
        task_(task),
        n_(search.table.rows),
        needs_(search, task),
        resident_(static_cast<const Resident*>(search.resident)) {
    engine_.host = host;
  }

  void run(const Host& host, plugin::Counters& counters) {
    std::optional<Lists> lists(std::in_place, engine_, n_ * call_.k);
    find_lists(host, *lists, counters);
    const auto start = std::chrono::steady_clock::now();
    const Buffer<double> cores(engine_, task_.rank > 0 ? n_ : 0);
    const Buffer<double> edge_keys(engine_, n_);
    const Buffer<unsigned long long> edges(engine_, n_);
    {
      const RowState state(engine_, n_);
      Growth growth{};
      growth.n = n_;
      growth.k = call_.k;
      growth.ids = lists->ids.data();
      growth.keys = lists->keys.data();
      growth.cores = task_.rank > 0 ? cores.data() : nullptr;
      growth.divisor = task_.divisor;
      growth.edge_keys = edge_keys.data();
      growth.edges = edges.data();
      state.give(growth);
      grow_tree(growth, cores);
    }
    lists.reset();
    hand_over(edge_keys, edges);
    task_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  struct Lists {
    Buffer<std::int64_t> ids;
    Buffer<double> keys;

    Lists(const Engine& engine, std::int64_t entries) : ids(engine, entries), keys(engine, entries) {}
  };

  /// What is held counts as resident meanwhile.
  void find_lists(const Host& host, const Lists& lists, plugin::Counters& counters) {
    plugin::Search search = call_;
    search.ids = lists.ids.data();
    search.distances = lists.keys.data();
    search.memory = static_cast<std::int32_t>(Memory::cuda);
    struct Held {
      Session& session;
      std::uint64_t bytes;
      Held(Session& of, std::uint64_t held) : session(of), bytes(held) { session.resident_bytes += bytes; }
      ~Held() { session.resident_bytes -= bytes; }
    } const held(session_, needs_.lists);
    nearest(session_, host, search, counters);
  }

  void grow_tree(Growth& growth, const Buffer<double>& cores) {
    Search search;
    search.table = resident_->rows;
    search.metric = static_cast<Metric>(call_.metric);
    search.p = call_.p;
    const auto* const tree = static_cast<const DeviceTree*>(call_.tree);
    if (tree != nullptr) growth.order = tree->view.order;
    const std::uint64_t left = left_of_limit(session_);
    const std::uint64_t scratch = std::min(kUsualScratch, left - std::min(left, needs_.growing()));
    DeviceSpace space(engine_, growth, [&] {
      return tree != nullptr ? other_rows_in_tree(engine_, tree->view, search, growth, scratch)
                             : other_rows_of_all(engine_, search, growth, scratch);
    });
    if (task_.rank > 0) {
      space.each(n_, TakeCores{growth.keys, growth.k, task_.rank, cores.data()});
      to_host(engine_, task_.core_keys, cores.data(), n_);
    }
    if (!grow(space, growth)) throw Failure{ErrorCode::internal, "spanning tree: a round joined no components"};
  }

  /// In the order of edges: first by their rows, then, which keeps that order, by key.
  void hand_over(const Buffer<double>& edge_keys, const Buffer<unsigned long long>& edges) {
    const std::int64_t count = n_ - 1;
    const unsigned blocks = blocks_for(count, kThreads);
    KeyedValues pairs(engine_, count);
    number_edges_kernel<<<blocks, kThreads, 0, engine_.stream>>>(edges.data(), count, pairs.keys[0].data(),
                                                                 pairs.values[0].data());
    check_launch("number edges");
    sort_by_key(engine_, pairs, count, 64);
    key_edges_kernel<<<blocks, kThreads, 0, engine_.stream>>>(edge_keys.data(), pairs.values[0].data(), count,
                                                              pairs.keys[0].data());
    check_launch("key edges");
    sort_by_key(engine_, pairs, count, 64);
    engine_.synchronize();
    engine_.host.check_cancelled();
    const std::int64_t step = std::min(count, kEdgesFetched);
    const Buffer<plugin::TreeEdge> part(engine_, step);
    for (std::int64_t first = 0; first < count; first += step) {
      const std::int64_t size = std::min(step, count - first);
      give_edges_kernel<<<blocks_for(size, kThreads), kThreads, 0, engine_.stream>>>(
          edge_keys.data(), edges.data(), pairs.values[0].data() + first, size, part.data());
      check_launch("give edges");
      to_host(engine_, task_.edges + first, part.data(), size);
      engine_.synchronize();
      engine_.host.check_cancelled();
    }
  }

  Session& session_;
  Engine engine_;
  const plugin::Search& call_;
  plugin::SpanningTask& task_;
  std::int64_t n_;
  Needs needs_;
  const Resident* resident_;
};

}  // namespace
}  // namespace density

std::uint64_t spanning_bytes(const Session& session, const plugin::Search& search, const plugin::SpanningTask& task) {
  if (search.table.rows > density::kMostRows) {
    throw Failure{ErrorCode::invalid_argument, "table: has " + std::to_string(search.table.rows) +
                                                   " rows, but a spanning tree on a device has at most " +
                                                   std::to_string(density::kMostRows)};
  }
  const density::Needs needs(search, task);
  const std::uint64_t left = left_of_limit(session);
  const auto table =
      static_cast<std::uint64_t>(search.table.rows) * static_cast<std::uint64_t>(row_bytes(search.table));
  const bool lies_there = static_cast<Memory>(search.table.memory) == Memory::cuda;
  // It stays there only where half of the limit is left.
  if (search.resident == nullptr && search.stays == 0) refuse_memory(std::max(2 * table, table + needs.least()), left);
  const std::uint64_t comes = search.resident == nullptr && !lies_there ? table : 0;
  if (comes + needs.least() > left) refuse_memory(comes + needs.least(), left);
  return std::min(left - comes, std::max(needs.growing() + density::kUsualScratch, needs.least()));
}

void span_table(Session& session, const Host& host, const plugin::Search& search, plugin::SpanningTask& task,
                plugin::Counters& counters) {
  static_cast<void>(spanning_bytes(session, search, task));
  density::SpanningRun(session, host, search, task).run(host, counters);
}

}  // namespace vicinal::cuda
