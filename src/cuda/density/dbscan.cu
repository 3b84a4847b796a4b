// See dbscan.hpp: memory, the order of the searches, numbers of clusters, answers to the host. Clusters are numbered by
// their smallest core rows: a flag for each of those, and a running sum over the flags by id.
#include <algorithm>
#include <memory>

#include "cuda/base/memory.hpp"
#include "cuda/base/order.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/density/dbscan.hpp"
#include "cuda/density/forest.cuh"

namespace vicinal::cuda::dbscan {
namespace {

constexpr std::int64_t kPart = std::int64_t{1} << 23;  // labels handed over between two looks at the cancel token
constexpr std::uint64_t kScanBytes = std::uint64_t{1} << 20;  // of a running sum, and for what is small

__global__ void plant_kernel(unsigned* parent, std::int64_t count) {
  const std::int64_t place = own_number();
  if (place < count) parent[place] = static_cast<unsigned>(place);
}

/// Writes no place but a thread's own.
__global__ void flatten_kernel(unsigned* parent, std::int64_t count) {
  const std::int64_t place = own_number();
  if (place >= count) return;
  unsigned root = static_cast<unsigned>(place);
  for (unsigned above = __ldcg(parent + root); above != root; above = __ldcg(parent + root)) root = above;
  parent[place] = root;
}

/// Of each root the smallest id of a core row in its component. Warps whose rows are in one component agree first.
__global__ void smallest_kernel(const unsigned* parent, const std::uint8_t* core, const std::uint32_t* order,
                                std::int64_t count, unsigned* smallest) {
  const std::int64_t place = own_number();
  const bool mine = place < count && core[place] != 0;
  const unsigned root = mine ? parent[place] : kNone;
  const unsigned id = mine ? order[place] : kNone;
  const unsigned common = least_of_warp(root);
  const unsigned least = least_of_warp(id);
  const bool agree = __all_sync(kWholeWarp, !mine || root == common) != 0;
  if (agree) {
    if (threadIdx.x % 32 == 0 && common != kNone) atomicMin(smallest + common, least);
  } else if (mine && id < __ldcg(smallest + root)) {
    atomicMin(smallest + root, id);
  }
}

/// A 1 for each component, at the id of its smallest core row.
__global__ void flag_kernel(const unsigned* parent, const std::uint8_t* core, const unsigned* smallest,
                            std::int64_t count, std::uint32_t* flags) {
  const std::int64_t place = own_number();
  if (place >= count || core[place] == 0 || parent[place] != place) return;
  flags[smallest != nullptr ? smallest[place] : place] = 1;
}

__global__ void number_kernel(const unsigned* parent, const std::uint8_t* core, const unsigned* smallest,
                              const std::uint32_t* sums, std::int64_t count, unsigned* labels) {
  const std::int64_t place = own_number();
  if (place >= count) return;
  unsigned label = kNone;
  if (core[place] != 0) {
    const unsigned root = parent[place];
    label = sums[smallest != nullptr ? smallest[root] : root] - 1;
  }
  labels[place] = label;
}

/// To the order of ids.
__global__ void scatter_kernel(const unsigned* labels, const std::uint8_t* core, const std::uint32_t* order,
                               std::int64_t count, std::uint32_t* to_labels, std::uint8_t* to_core) {
  const std::int64_t place = own_number();
  if (place >= count) return;
  to_labels[order[place]] = labels[place];
  to_core[order[place]] = core[place];
}

__global__ void widen_labels_kernel(const unsigned* labels, std::int64_t count, std::int64_t* wide) {
  const std::int64_t i = own_number();
  if (i < count) wide[i] = labels[i] == kNone ? -1 : static_cast<std::int64_t>(labels[i]);
}

/// Labels of core rows; how many clusters there are.
std::int64_t number_clusters(const Engine& engine, PlacedRows& rows) {
  const std::int64_t n = rows.count;
  const unsigned blocks = blocks_for(n, kThreads);
  flatten(engine, rows.parent.data(), n);
  const Buffer<unsigned> smallest(engine, rows.order != nullptr ? n : 0);
  if (rows.order != nullptr) {
    check(cudaMemsetAsync(smallest.data(), 0xff, smallest.bytes(), engine.stream), "clear device memory");
    smallest_kernel<<<blocks, kThreads, 0, engine.stream>>>(rows.parent.data(), rows.core.data(), rows.order, n,
                                                            smallest.data());
    check_launch("find the first core rows");
  }
  const Buffer<std::uint32_t> sums(engine, n);
  sums.zero();
  flag_kernel<<<blocks, kThreads, 0, engine.stream>>>(rows.parent.data(), rows.core.data(), smallest.data(), n,
                                                      sums.data());
  check_launch("flag the first core rows");
  running_sum(engine, sums.data(), n);
  number_kernel<<<blocks, kThreads, 0, engine.stream>>>(rows.parent.data(), rows.core.data(), smallest.data(),
                                                        sums.data(), n, rows.labels.data());
  check_launch("number the clusters");
  std::uint32_t clusters = 0;
  to_host(engine, &clusters, sums.data() + n - 1, 1);
  engine.synchronize();
  return clusters;
}

void hand_over(const Engine& engine, const PlacedRows& rows, plugin::DbscanTask& task) {
  const std::int64_t n = rows.count;
  const bool moved = rows.order != nullptr;
  const Buffer<std::uint32_t> labels(engine, moved ? n : 0);
  const Buffer<std::uint8_t> core(engine, moved ? n : 0);
  if (moved) {
    scatter_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine.stream>>>(rows.labels.data(), rows.core.data(),
                                                                            rows.order, n, labels.data(), core.data());
    check_launch("order labels");
  }
  const unsigned* const from = moved ? labels.data() : rows.labels.data();
  const Buffer<std::int64_t> wide(engine, std::min(kPart, n));
  for (std::int64_t begin = 0; begin < n; begin += kPart) {
    const std::int64_t part = std::min(kPart, n - begin);
    widen_labels_kernel<<<blocks_for(part, kThreads), kThreads, 0, engine.stream>>>(from + begin, part, wide.data());
    check_launch("widen labels");
    to_host(engine, task.labels + begin, wide.data(), part);
    to_host(engine, task.core + begin, (moved ? core.data() : rows.core.data()) + begin, part);
    engine.synchronize();
    engine.host.check_cancelled();
  }
}

bool is_in_tree(const plugin::Search& search) {
  return static_cast<Method>(search.method) == Method::kdtree;
}

/// Bytes of everything but the searches' own.
std::uint64_t common_bytes(const plugin::Search& search, const plugin::DbscanTask& task) {
  const std::int64_t n = search.table.rows;
  const std::uint64_t numbers = static_cast<std::uint64_t>(n) * (2 * sizeof(std::uint32_t) + 1);
  const std::uint64_t widened = static_cast<std::uint64_t>(std::min(kPart, n)) * sizeof(std::int64_t);
  return PlacedRows::bytes(n) + Rule::bytes(task, n) + numbers + widened + kScanBytes;
}

void refuse_places(std::int64_t rows) {
  if (rows <= kMaxPlaces) return;
  throw Failure{ErrorCode::invalid_argument, "dbscan: a CUDA device serves at most " + std::to_string(kMaxPlaces) +
                                                 " rows, not " + std::to_string(rows) + "; use a context of the CPU"};
}

[[noreturn]] void refuse_table(const plugin::Search& search, std::uint64_t left) {
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(search.table.rows) * static_cast<std::uint64_t>(row_bytes(search.table));
  throw Failure{ErrorCode::over_memory, "dbscan: the table, " + std::to_string(bytes) +
                                            " bytes, must stay in device memory, of which half of the limit may be "
                                            "taken by tables; " +
                                            std::to_string(left) + " bytes are left within the limit"};
}

/// Bytes the call may take, with the table and its tree there.
std::uint64_t left_for(const Session& session, const plugin::Search& search) {
  std::uint64_t held = session.resident_bytes;
  const plugin::Table& table = search.table;
  if (search.resident == nullptr) {
    if (search.stays == 0) refuse_table(search, left_of_limit(session));
    held += copy_bytes(table);
  }
  if (is_in_tree(search) && search.tree == nullptr) {
    held += tree_bytes(table.rows, table.cols, static_cast<DType>(table.dtype));
  }
  return session.engine.memory_limit - std::min(session.engine.memory_limit, held);
}

}  // namespace

PlacedRows::PlacedRows(const Engine& engine, std::int64_t rows, const std::uint32_t* ids)
    : count(rows), order(ids), core(engine, rows), parent(engine, rows), labels(engine, rows) {
  core.zero();
  plant(engine, parent.data(), rows);
}

std::uint64_t PlacedRows::bytes(std::int64_t rows) {
  return static_cast<std::uint64_t>(rows) * (1 + 2 * sizeof(unsigned));
}

Rule::Rule(const Engine& engine, const plugin::DbscanTask& task, std::int64_t rows)
    : limit(task.limit), min_samples(task.min_samples) {
  if (task.weights == nullptr) return;
  digits = core::weight_digits({task.weights, static_cast<std::size_t>(rows)}, static_cast<double>(task.min_samples));
  weights = uploaded(engine, task.weights, rows);
  least = uploaded(engine, digits.least.data(), static_cast<std::int64_t>(digits.least.size()));
  engine.synchronize();
}

std::uint64_t Rule::bytes(const plugin::DbscanTask& task, std::int64_t rows) {
  return task.has_weights == 0 ? 0 : static_cast<std::uint64_t>(rows) * sizeof(double);
}

void plant(const Engine& engine, unsigned* parent, std::int64_t count) {
  plant_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine.stream>>>(parent, count);
  check_launch("begin with rows alone");
}

void flatten(const Engine& engine, unsigned* parent, std::int64_t count) {
  flatten_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine.stream>>>(parent, count);
  check_launch("flatten");
}

std::uint64_t dbscan_bytes(const Session& session, const plugin::Search& search, const plugin::DbscanTask& task) {
  refuse_places(search.table.rows);
  const std::uint64_t left = left_for(session, search);
  const std::uint64_t common = common_bytes(search, task);
  const std::uint64_t free = left - std::min(left, common);
  const std::uint64_t bytes = common + (is_in_tree(search) ? tree_walk_bytes(search.table.rows, task.has_weights != 0)
                                                           : list_bytes(session.engine, search, free));
  if (bytes > left) refuse_memory(bytes, left);
  return bytes;
}

void find_clusters(Session& session, const Host& host, const plugin::Search& search, plugin::DbscanTask& task,
                   plugin::Counters& counters) {
  static_cast<void>(dbscan_bytes(session, search, task));
  if (search.resident == nullptr) refuse_table(search, left_of_limit(session));
  const auto& table = *static_cast<const Resident*>(search.resident);
  const auto* const tree = static_cast<const DeviceTree*>(search.tree);
  Engine engine = session.engine;
  engine.host = host;
  engine.memory_limit = left_for(session, search) - common_bytes(search, task);  // of the searches
  PlacedRows rows(engine, search.table.rows, tree != nullptr ? tree->view.order : nullptr);
  const Rule rule(engine, task, search.table.rows);
  counters.distinct_rows = search.table.rows;
  const std::unique_ptr<Searches> searches = tree != nullptr
                                                 ? walk_tree(engine, tree->view, search, rule, rows)
                                                 : list_neighbors(engine, table, search, rule, rows, counters);
  searches->find_core_rows();
  searches->join_core_rows();
  task.clusters = number_clusters(engine, rows);
  if (task.clusters > 0) searches->label_border_rows();
  hand_over(engine, rows, task);
}

}  // namespace vicinal::cuda::dbscan
