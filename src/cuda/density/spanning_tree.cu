// See spanning_tree.hpp: the memory, the order of the work, and the edges in order at the end. What threads do in a
// round stands in growth.cuh, searches in in_tree.cu and of_all.cu. Few rows need one where rows lie close together;
// but once a component is a group far from others, all its rows do: a tree then leaves out nearly all pairs, so that
// one is made for it where the lists were found without; some rows show whether it pays. Memory: 16 n k bytes
// for the lists and some 100 n beside them. Time as on the CPU: n k a round, of which there are at most log2 n, and the
// searches.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

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
constexpr std::int64_t kTreeColumns = 64;                          // in more, boxes leave next to nothing out
constexpr double kTreeWork = 1e11;     // columns of pairs, some 30 ms, above which a tree is made
constexpr std::int64_t kTried = 4096;  // rows that show whether the tree pays
constexpr std::uint64_t kTreeScratch = std::uint64_t{64} << 20;
constexpr std::int64_t kTreeShare = 16;  // it does where no more than such a share of the rows is touched

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
  std::uint64_t tree = 0;     ///< of a tree that is made where it pays, and there is room; 0: it would not

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
    if (in_tree || table.d > kTreeColumns || !tree_serves(search)) return;
    tree = tree_bytes(table.n, table.d, table.dtype) + tree_build_bytes(table.n) +
           in_tree_bytes(table.n, task.rank > 0) + kTreeScratch;
  }
  [[nodiscard]] std::uint64_t growing() const { return lists + rows + edges; }
  [[nodiscard]] std::uint64_t least() const { return std::max(growing() + scratch, edges + at_end); }

 private:
  /// What listing flagged rows takes besides.
  static std::uint64_t in_order_bytes(std::int64_t n) { return static_cast<std::uint64_t>(n) / 16 + (1 << 16); }
};

/// The search that fills the lists, which are there meanwhile.
plugin::Search search_of_lists(plugin::Search search, const Needs& needs) {
  search.memory = static_cast<std::int32_t>(Memory::cuda);
  search.held = needs.lists;
  return search;
}

/// The engines of a tree's searches: one, or a tree that is made when there is much to search for, beside all rows.
class Searches {
 public:
  /// `tree`: of the table, or null. `growth` gets the order of a tree that is made, if `scratch` has room for it.
  Searches(Session& session, const Engine& engine, const Search& search, const Resident& table, const DeviceTree* tree,
           Growth& growth, const Needs& needs, std::uint64_t scratch)
      : session_(session),
        engine_(engine),
        search_(search),
        table_(table),
        tree_(tree),
        growth_(growth),
        needs_(needs),
        scratch_(scratch),
        may_make_tree_(tree == nullptr && needs.tree > 0 && needs.tree + needs.scratch <= scratch &&
                       has_room(session, needs.tree)) {}

  /// Before places are listed: `growth` may get an order.
  void relabel(std::int64_t uncertain) {
    if (tree_ != nullptr && !in_tree_) {
      in_tree_ = other_rows_in_tree(engine_, tree_->view, search_, growth_, std::min(scratch_, kUsualScratch));
    }
    const double work =
        static_cast<double>(uncertain) * static_cast<double>(growth_.n) * static_cast<double>(search_.table.d + 8);
    if (may_make_tree_ && work > kTreeWork) make_tree();
    if (in_tree_) in_tree_->relabel();
  }
  void search(std::int64_t count) {
    if (count == 0) return;
    if (tree_ != nullptr) return in_tree_->search(0, count);
    std::int64_t first = 0;
    if (in_tree_) {
      first = std::min(count, kTried);
      in_tree_->search(0, first);
      if (in_tree_->touched() <= first * (growth_.n / kTreeShare)) {
        if (first < count) in_tree_->search(first, count - first);
        return;
      }
    }
    if (first == count) return;
    if (!of_all_) {
      const std::uint64_t left = may_make_tree_ || made_ ? scratch_ - needs_.tree : scratch_;
      of_all_ = other_rows_of_all(engine_, search_, growth_, std::min(left, kUsualScratch));
    }
    of_all_->search(first, count - first);
  }

 private:
  struct Release {
    void operator()(DeviceTree* tree) const {
      tree->session->resident_bytes -= tree->bytes;
      delete tree;
    }
  };

  void make_tree() {
    may_make_tree_ = false;
    made_.reset(build_tree(session_, engine_.host, table_));
    growth_.order = made_->view.order;
    of_all_.reset();  // it knows no order
    in_tree_ = other_rows_in_tree(engine_, made_->view, search_, growth_, kTreeScratch);
  }

  Session& session_;
  const Engine& engine_;
  const Search& search_;
  const Resident& table_;
  const DeviceTree* tree_;
  Growth& growth_;
  const Needs& needs_;
  std::uint64_t scratch_;
  bool may_make_tree_;
  std::unique_ptr<DeviceTree, Release> made_;
  std::unique_ptr<OtherRows> in_tree_;
  std::unique_ptr<OtherRows> of_all_;
};

/// The device as `grow` wants it.
class DeviceSpace {
 public:
  DeviceSpace(const Engine& engine, const Growth& growth, Searches& searches)
      : engine_(engine), growth_(growth), searches_(searches), found_(engine, 1), pace_(engine) {}

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
  void relabel(std::int64_t uncertain) { searches_.relabel(uncertain); }
  void search(std::int64_t count) { searches_.search(count); }
  void grown(std::int64_t edges) {
    engine_.host.progress("tree", static_cast<double>(edges) / static_cast<double>(growth_.n - 1));
  }

 private:
  const Engine& engine_;
  const Growth& growth_;
  Searches& searches_;
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

  void find_lists(const Host& host, const Lists& lists, plugin::Counters& counters) {
    plugin::Search search = search_of_lists(call_, needs_);
    search.ids = lists.ids.data();
    search.distances = lists.keys.data();
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
    Searches searches(session_, engine_, search, *resident_, tree, growth, needs_,
                      left - std::min(left, needs_.growing()));
    DeviceSpace space(engine_, growth, searches);
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
  // It stays there only where half of the limit is left.
  if (search.resident == nullptr && search.stays == 0) refuse_memory(std::max(2 * table, table + needs.least()), left);
  std::uint64_t comes = search.resident == nullptr ? copy_bytes(search.table) : 0;
  if (static_cast<Method>(search.method) == Method::kdtree && search.tree == nullptr) {
    comes += tree_bytes(search.table.rows, search.table.cols, static_cast<DType>(search.table.dtype));
  }
  if (comes + needs.least() > left) refuse_memory(comes + needs.least(), left);
  // The lists are found before the tree grows, so that the searches of both do not take memory at the same time.
  const std::uint64_t listing = needs.lists + nearest_bytes(session, density::search_of_lists(search, needs));
  const std::uint64_t growing = std::max(needs.growing() + density::kUsualScratch + needs.tree, needs.least());
  return std::max(listing, std::min(left - comes, growing));
}

void span_table(Session& session, const Host& host, const plugin::Search& search, plugin::SpanningTask& task,
                plugin::Counters& counters) {
  static_cast<void>(spanning_bytes(session, search, task));
  density::SpanningRun(session, host, search, task).run(host, counters);
}

}  // namespace vicinal::cuda
