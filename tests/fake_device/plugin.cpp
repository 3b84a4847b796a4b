// A plug-in for machines without a device: the functions of plugin/abi/plugin.hpp, computed on the host, row by row and
// without ado. It takes the library's word for nothing, so that the half of the CUDA backend that lies in the library
// (src/plugin) is tested everywhere: plans, callbacks, streaming, results, errors.
#include "plugin/abi/plugin.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "core/distance.hpp"
#include "core/table_access.hpp"
#include "dbscan.hpp"
#include "density.hpp"
#include "donors.hpp"
#include "engine.hpp"
#include "graph.hpp"
#include "krylov.hpp"
#include "lle.hpp"
#include "lof.hpp"
#include "overlap.hpp"
#include "reference/fma.hpp"
#include "vicinal/table.hpp"

extern "C" int fakeIsDeviceMemory(const void* at);

namespace vicinal::plugin {
namespace {

struct HostFailed {};

struct Resident {
  Engine* engine = nullptr;
  std::vector<double> rows;
  std::int64_t count = 0;
  std::uint64_t bytes = 0;
};
/// Of trees, only that they are there.
struct Tree {
  Engine* engine = nullptr;
  std::int64_t rows = 0;
};
constexpr std::uint64_t kTreeRowBytes = 4;

/// The device that is to be lost, and at which of its calls from then on; below 0: none.
std::atomic<std::int32_t> lost_device = -1;
std::atomic<std::int64_t> calls_left = 0;
/// The device without a screen; below 0: none.
std::atomic<std::int32_t> device_without_screen = -1;

/// At the beginning of what computes on a device.
void call_on(const Engine& engine) {
  if (engine.device == lost_device && calls_left.fetch_sub(1) <= 1) {
    throw Error(ErrorCode::internal, "CUDA: synchronize: the device is lost");
  }
}

std::uint64_t row_bytes(const Table& table) {
  return static_cast<std::uint64_t>(table.cols * size_of(static_cast<DType>(table.dtype)));
}
std::uint64_t bytes_of(const Table& table) {
  return static_cast<std::uint64_t>(table.rows) * row_bytes(table);
}
bool on_device(std::int32_t memory) {
  return static_cast<Memory>(memory) == Memory::cuda;
}

void require_device_memory(const void* at, const std::string& name) {
  if (fakeIsDeviceMemory(at) == 0) {
    throw Error(ErrorCode::invalid_argument, name + ": its pointer leads elsewhere");
  }
}

std::atomic<std::int64_t> rows_sent = 0;  ///< by the host

/// Rows [begin, end) as float64.
std::vector<double> read(const Table& table, std::int64_t begin, std::int64_t end) {
  std::vector<double> rows(static_cast<std::size_t>((end - begin) * table.cols));
  const auto dtype = static_cast<DType>(table.dtype);
  if (on_device(table.memory)) {
    core::widen_rows(TableView(table.data, dtype, table.rows, table.cols, table.row_stride, table.col_stride), begin,
                     end, rows.data());
    return rows;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin) * row_bytes(table));
  if (table.fill(table.source, begin, end, bytes.data()) != 0) throw HostFailed{};
  rows_sent += end - begin;
  core::widen_rows(TableView(bytes.data(), dtype, end - begin, table.cols, table.cols), 0, end - begin, rows.data());
  return rows;
}

void check_finite(const std::vector<double>& rows, std::int64_t cols, std::int64_t first, const std::string& name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(rows[i])) continue;
    const std::int64_t at = static_cast<std::int64_t>(i) + first * cols;
    throw Error(ErrorCode::bad_data, name + ": row " + std::to_string(at / cols) + ", column " +
                                         std::to_string(at % cols) + " is not a finite number");
  }
}

template <class Work>
void guarded(Status* status, Work work) {
  status->code = kOk;
  const auto fail = [&](std::int32_t code, const char* sentence) {
    status->code = code;
    std::strncpy(status->message, sentence, sizeof status->message - 1);
  };
  try {
    work();
  } catch (const HostFailed&) {
    status->code = kHostFailed;
  } catch (const Error& error) {
    fail(1 + static_cast<std::int32_t>(error.code()), error.what());
  } catch (const std::exception& error) {
    fail(1, error.what());
  }
}

bool has_room(const Engine& engine, std::uint64_t bytes) {
  return engine.has_room(bytes);
}

/// Rows of a tile: of a table that is streamed, so that two fit a quarter of what is left.
std::int64_t tile_rows(const Engine& engine, const Search& search) {
  if (search.resident != nullptr || search.stays != 0) return search.table.rows;
  const std::uint64_t room = (engine.limit - std::min(engine.limit, engine.resident.load())) / 8;
  if (room < row_bytes(search.table) + 4096) {
    throw Error(ErrorCode::over_memory, "the search needs more than " + std::to_string(room) + " bytes");
  }
  return std::min<std::int64_t>(search.table.rows, static_cast<std::int64_t>(room / row_bytes(search.table)));
}

/// What a search takes beside what stays: a copy of the rows that it meets at a time.
std::uint64_t scratch_bytes(const Engine& engine, const Search& search) {
  return static_cast<std::uint64_t>(tile_rows(engine, search)) * row_bytes(search.table);
}
/// What will stay when a search begins, and is not there yet.
std::uint64_t coming_bytes(const Search& search) {
  std::uint64_t bytes = search.resident == nullptr && search.stays != 0 ? bytes_of(search.table) : 0;
  if (static_cast<Method>(search.method) == Method::kdtree && search.tree == nullptr) {
    bytes += static_cast<std::uint64_t>(search.table.rows) * kTreeRowBytes;
  }
  return bytes;
}
std::uint64_t search_bytes(const Engine& engine, const Search& search) {
  const std::uint64_t comes = coming_bytes(search);
  if (static_cast<Method>(search.method) == Method::kdtree && !engine.has_room(comes)) {
    refuse_memory(2 * (comes + engine.resident), engine.limit);
  }
  const std::uint64_t bytes = scratch_bytes(engine, search);
  if (comes + search.held + bytes > engine.left()) refuse_memory(comes + search.held + bytes, engine.left());
  return bytes;
}

/// For cosine: rows of length 1, made once, not once a pair.
struct Normalized {
  Normalized() = default;
  Normalized(const std::vector<double>& from, std::int64_t d) : rows(from.size()), is_zero(from.size() / d) {
    for (std::size_t i = 0; i < is_zero.size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(d);
      is_zero[i] = !core::normalize_row(from.data() + at, d, rows.data() + at);
    }
  }

  std::vector<double> rows;
  std::vector<bool> is_zero;
};

/// The key of two rows; for cosine of rows that were normalized.
VICINAL_WITH_AND_WITHOUT_FMA
double key_of(Metric metric, double p, const double* x, const double* y, std::int64_t d) {
  switch (metric) {
    case Metric::inner_product:
      return core::inner_product_key(x, y, d);
    case Metric::manhattan:
      return core::manhattan_key(x, y, d);
    case Metric::chebyshev:
      return core::chebyshev_key(x, y, d);
    case Metric::minkowski:
      return core::minkowski_key(x, y, d, p);
    case Metric::hamming:
      return core::hamming_key(x, y, d);
    case Metric::cosine:
      return core::cosine_key_normalized(x, false, y, false, d);
    default:
      return core::euclidean_key(x, y, d);
  }
}

using Found = std::vector<std::pair<double, std::int64_t>>;

class Run {
 public:
  Run(Engine& engine, const HostCalls& host, const Search& search) : engine_(engine), host_(host), search_(search) {}

  void run() {
    const bool in_tree = static_cast<Method>(search_.method) == Method::kdtree;
    if (in_tree != (search_.tree != nullptr)) throw std::runtime_error("a tree and another method, or the reverse");
    if (in_tree && static_cast<const Tree*>(search_.tree)->rows != search_.table.rows) {
      throw std::runtime_error("a tree of another table");
    }
    const Taken scratch(engine_, scratch_bytes(engine_, search_));
    if (on_device(search_.queries.memory)) require_device_memory(search_.queries.data, "queries");
    if (on_device(search_.memory) && search_.collect == kKList && search_.output_count == 0) {
      require_device_memory(search_.ids, "output");
      require_device_memory(search_.distances, "output");
    }
    const std::int64_t n = search_.table.rows;
    const std::int64_t d = search_.table.cols;
    const auto* const resident = static_cast<const Resident*>(search_.resident);
    const bool is_there = search_.self != 0 && resident != nullptr;
    queries_ = is_there ? resident->rows : read(search_.queries, 0, search_.queries.rows);
    if (search_.self == 0) check_finite(queries_, d, search_.first_query, "queries");
    found_.resize(static_cast<std::size_t>(search_.queries.rows));
    const std::int64_t step = tile_rows(engine_, search_);
    for (std::int64_t begin = 0; begin < n; begin += step) {
      const std::int64_t end = std::min(n, begin + step);
      if (search_.resident != nullptr) {
        meet(resident->rows, begin, end);
      } else {
        meet(read(search_.table, begin, end), begin, end);
      }
      host_.report(host_.user, "search", static_cast<double>(end) / static_cast<double>(n));
    }
    hand_over();
  }

 private:
  void meet(const std::vector<double>& rows, std::int64_t begin, std::int64_t end) {
    const std::int64_t d = search_.table.cols;
    const auto metric = static_cast<Metric>(search_.metric);
    const bool is_cosine = metric == Metric::cosine;
    const Normalized x = is_cosine ? Normalized(queries_, d) : Normalized();
    const Normalized y = is_cosine ? Normalized(rows, d) : Normalized();
    const double* const xs = (is_cosine ? x.rows : queries_).data();
    const double* const ys = (is_cosine ? y.rows : rows).data();
    for (std::int64_t q = 0; q < search_.queries.rows; ++q) {
      Found& found = found_[static_cast<std::size_t>(q)];
      for (std::int64_t id = begin; id < end; ++id) {
        if (id % 1024 == 0 && host_.cancelled(host_.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
        if (search_.self != 0 && id == q) continue;
        if (search_.same_rows != 0 && search_.first_id + id == search_.first_query + q) continue;
        if (search_.exclude != nullptr && search_.exclude[q] == id) continue;
        if (search_.filter != nullptr && (search_.filter[id / 64] >> (id % 64) & 1) == 0) continue;
        const std::int64_t row = id - begin;
        const bool is_zero = is_cosine && (x.is_zero[q] || y.is_zero[row]);
        const double key = is_zero ? 1 : key_of(metric, search_.p, xs + q * d, ys + row * d, d);
        if (!(std::fabs(key) < std::numeric_limits<double>::infinity())) {
          throw Error(ErrorCode::bad_data, "the distance of query row " + std::to_string(search_.first_query + q) +
                                               " and table row " + std::to_string(search_.first_id + id) +
                                               " overflows float64");
        }
        if (search_.collect != kKList && !(key <= search_.largest_key)) continue;
        found.emplace_back(key, id);
      }
      if (search_.collect == kKList && static_cast<std::int64_t>(found.size()) > search_.k) {
        std::nth_element(found.begin(), found.begin() + search_.k - 1, found.end());
        found.resize(static_cast<std::size_t>(search_.k));
      }
    }
  }

  void hand_over() {
    std::vector<std::int64_t> counts;
    for (std::size_t q = 0; q < found_.size(); ++q) {
      Found& found = found_[q];
      std::sort(found.begin(), found.end());
      for (auto& [key, id] : found) {
        if (search_.keys != 0) break;
        key = core::reported_distance(static_cast<Metric>(search_.metric), key, search_.p);
      }
      counts.push_back(static_cast<std::int64_t>(found.size()));
      if (search_.collect == kCount) search_.counts[q] = counts.back();
      for (std::int64_t o = 0; o < search_.output_count; ++o)
        vote(found, static_cast<std::int64_t>(q), search_.outputs[o]);
    }
    if (search_.collect == kCount || search_.output_count > 0) return;
    std::int64_t* ids = search_.ids;
    double* distances = search_.distances;
    // In two parts, as a device that has little room would.
    const std::size_t half = search_.collect == kRadius ? found_.size() / 2 : 0;
    std::size_t end = 0;
    for (std::size_t begin = 0; begin < found_.size(); begin = end) {
      const std::size_t last = begin < half ? half : found_.size();
      std::int64_t neighbors = counts[end++];
      while (end < last && neighbors + counts[end] <= search_.most_neighbors) neighbors += counts[end++];
      if (search_.collect == kRadius &&
          search_.make_room(search_.user, counts.data() + begin, static_cast<std::int64_t>(end - begin), &ids,
                            &distances) != 0) {
        throw HostFailed{};
      }
      for (std::size_t q = begin; q < end; ++q) {
        for (const auto& [distance, id] : found_[q]) {
          *ids++ = id;
          *distances++ = distance;
        }
      }
    }
  }

  void vote(const Found& found, std::int64_t q, const VoteOutput& output) const {
    std::vector<double> totals(static_cast<std::size_t>(output.classes), 0);
    std::vector<bool> met(totals.size(), false);
    const bool any_zero = !found.empty() && found[0].first < 0x1p-960;
    double sum = 0;
    for (const auto& [distance, id] : found) {
      double weight = 1;
      if (search_.weights == 1) weight = any_zero ? (distance < 0x1p-960 ? 1 : 0) : 1 / distance;
      const auto code = static_cast<std::size_t>(output.labels[id]);
      totals[code] += weight;
      met[code] = true;
      sum += weight;
    }
    std::int32_t best = -1;
    for (std::size_t c = 0; c < totals.size(); ++c) {
      if (met[c] && (best < 0 || totals[c] > totals[static_cast<std::size_t>(best)]))
        best = static_cast<std::int32_t>(c);
      if (output.probabilities != nullptr && totals[c] > 0) {
        output.probabilities[q * output.classes + static_cast<std::int64_t>(c)] = totals[c] / sum;
      }
    }
    output.codes[q] = best;
  }

  Engine& engine_;
  const HostCalls& host_;
  const Search& search_;
  std::vector<double> queries_;
  std::vector<Found> found_;
};

void open(const OpenOptions* options, void** engine, EngineFacts* facts, Status* status) {
  guarded(status, [&] {
    auto made = std::make_unique<Engine>();
    made->device = options->device;
    made->limit = options->memory_limit != 0 ? options->memory_limit : std::uint64_t{1} << 30;
    *facts = {90, 90, 4, made->limit};
    *engine = made.release();
  });
}
void close(void* engine) {
  delete static_cast<Engine*>(engine);
}

Resident* take_in(Engine& engine, const Table& table, const HostCalls& host, double* centre,
                  std::int64_t first_row = 0) {
  if (on_device(table.memory)) require_device_memory(table.data, "table");
  const bool stays = has_room(engine, bytes_of(table));
  auto resident = std::make_unique<Resident>();
  const std::int64_t step = stays ? table.rows : std::max<std::int64_t>(1, table.rows / 7);
  for (std::int64_t begin = 0; begin < table.rows; begin += step) {
    const std::int64_t end = std::min(table.rows, begin + step);
    resident->rows = read(table, begin, end);
    if (host.cancelled(host.user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    check_finite(resident->rows, table.cols, first_row + begin, "table");
    if (centre != nullptr && begin == 0) std::copy_n(resident->rows.data(), table.cols, centre);
    host.report(host.user, "prepare", static_cast<double>(end) / static_cast<double>(table.rows));
  }
  if (!stays) return nullptr;
  resident->engine = &engine;
  resident->count = table.rows;
  resident->bytes = bytes_of(table);
  engine.resident += resident->bytes;
  return resident.release();
}

void prepare(void* engine, const HostCalls* host, const Table* table, Preparation* result, Status* status) {
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    result->resident = take_in(*static_cast<Engine*>(engine), *table, *host, result->centre, result->first_row);
    result->largest = 1e154;  // nothing is known: no key may be left out because of it
  });
}
void upload(void* engine, const HostCalls* host, const Table* table, const Preparation* /*facts*/, void** resident,
            Status* status) {
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    if (!has_room(*static_cast<Engine*>(engine), bytes_of(*table))) return;
    *resident = take_in(*static_cast<Engine*>(engine), *table, *host, nullptr);
  });
}
void release(void* resident) {
  auto* const table = static_cast<Resident*>(resident);
  table->engine->resident -= table->bytes;
  delete table;
}
std::int32_t fits(void* engine, const Table* table) {
  return has_room(*static_cast<Engine*>(engine), bytes_of(*table)) ? 1 : 0;
}
std::int32_t fused_serves(void* engine, const Search* search) {
  if (static_cast<Engine*>(engine)->device == device_without_screen) return 0;
  return search->collect == kKList && search->metric <= static_cast<std::int32_t>(Metric::cosine) && search->k <= 64;
}
std::int32_t few_multiply(void* /*engine*/, const Search* /*search*/) {
  return 0;
}
void plan(void* engine, const Search* search, std::uint64_t* bytes, Status* status) {
  guarded(status, [&] { *bytes = search_bytes(*static_cast<Engine*>(engine), *search); });
}
void nearest(void* engine, const HostCalls* host, const Search* search, Counters* counters, Status* status) {
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    Run(*static_cast<Engine*>(engine), *host, *search).run();
    counters->distinct_rows = search->table.rows;
    if (search->tree != nullptr) counters->survivors = search->table.rows * search->queries.rows;
  });
}

std::int32_t tree_serves(void* engine, const Search* search) {
  const auto metric = static_cast<Metric>(search->metric);
  if (metric == Metric::inner_product || metric == Metric::cosine || metric == Metric::hamming) return 0;
  if (search->collect == kKList && search->k > 64) return 0;
  if (search->tree != nullptr) return 1;
  if (search->resident == nullptr && search->stays == 0) return -1;
  const std::uint64_t table = search->resident != nullptr ? 0 : bytes_of(search->table);
  const auto tree = static_cast<std::uint64_t>(search->table.rows) * kTreeRowBytes;
  return has_room(*static_cast<Engine*>(engine), table + tree) ? 1 : -1;
}
void build_tree(void* engine, const HostCalls* host, const void* resident, void** tree, Status* status) {
  guarded(status, [&] {
    auto made = std::make_unique<Tree>();
    made->engine = static_cast<Engine*>(engine);
    call_on(*made->engine);
    made->rows = static_cast<const Resident*>(resident)->count;
    const std::uint64_t bytes = static_cast<std::uint64_t>(made->rows) * kTreeRowBytes;
    if (!has_room(*made->engine, bytes)) refuse_memory(bytes, made->engine->left());
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    made->engine->resident += bytes;
    host->report(host->user, "tree", 1);
    *tree = made.release();
  });
}
/// Backwards, so that it shows whether it is used.
void tree_order(const void* tree, std::int64_t* rows, Status* status) {
  guarded(status, [&] {
    const std::int64_t n = static_cast<const Tree*>(tree)->rows;
    for (std::int64_t i = 0; i < n; ++i) rows[i] = n - 1 - i;
  });
}
void release_tree(void* tree) {
  auto* const made = static_cast<Tree*>(tree);
  made->engine->resident -= static_cast<std::uint64_t>(made->rows) * kTreeRowBytes;
  delete made;
}

const char* cluster_screens(void* /*engine*/, const Clustering* /*task*/) {
  return "float32";
}
constexpr std::int64_t kMinPart = 100;
/// Twice the table, or half of what is left for parts of it; and where k-means++ has room, its keys.
ClusterRoom room_for(const Engine& device, const Clustering& task) {
  const std::uint64_t left = device.limit - std::min(device.limit, device.resident.load());
  const std::uint64_t seeding = static_cast<std::uint64_t>((task.trials + 1) * task.table.rows * 8);
  ClusterRoom room{bytes_of(task.table) * 2, task.table.rows, 1};
  const bool streams = !on_device(task.table.memory);
  if (streams && room.bytes > left) {
    room.part = std::max(kMinPart, static_cast<std::int64_t>(left / 4 / row_bytes(task.table)));
    room.bytes = static_cast<std::uint64_t>(room.part) * row_bytes(task.table) * 2;
  }
  room.seeds = streams && (room.part < task.table.rows || room.bytes + seeding > left) ? 0 : 1;
  if (room.seeds != 0) room.bytes += seeding;
  if (room.bytes > left) {
    throw Error(ErrorCode::over_memory,
                "kmeans: needs " + std::to_string(room.bytes) + " bytes of the device's memory");
  }
  return room;
}
void cluster_bytes(void* engine, const Clustering* task, ClusterRoom* room, Status* status) {
  guarded(status, [&] { *room = room_for(*static_cast<Engine*>(engine), *task); });
}
void cluster(void* engine, const HostCalls* host, const Clustering* task, void** clustering, Status* status) {
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    const ClusterRoom room = room_for(*static_cast<Engine*>(engine), *task);
    if (on_device(task->table.memory)) require_device_memory(task->table.data, "table");
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    std::vector<double> weights;
    if (task->weights != nullptr) weights.assign(task->weights, task->weights + task->table.rows);
    *clustering = std::make_unique<FakeClustering>(read(task->table, 0, task->table.rows), task->table.cols,
                                                   std::move(weights), task->clusters, task->sums != 0, room.part,
                                                   task->first_row, *static_cast<Engine*>(engine))
                      .release();
  });
}
FakeClustering& known_of(void* clustering) {
  return *static_cast<FakeClustering*>(clustering);
}
FakeClustering& fake_of(void* clustering) {
  call_on(known_of(clustering).engine);
  return known_of(clustering);
}
void release_clustering(void* clustering) {
  delete &known_of(clustering);
}
/// Where the rows pass through, they are read again and must be what they were.
FakeClustering& pass(void* clustering, const Table& table) {
  FakeClustering& made = fake_of(clustering);
  for (std::int64_t begin = 0; begin < table.rows && made.part < table.rows; begin += made.part) {
    const std::vector<double> part = read(table, begin, std::min(begin + made.part, table.rows));
    if (std::memcmp(part.data(), made.values().data() + begin * table.cols, part.size() * sizeof(double)) != 0) {
      throw Error(ErrorCode::internal, "kmeans: not the table that it was");
    }
  }
  return made;
}
void cluster_start(void* clustering, const double* centres, std::int64_t k, Status* status) {
  guarded(status, [&] {
    FakeClustering& made = fake_of(clustering);
    made.k = k;
    made.lloyd().start({centres, static_cast<std::size_t>(k * made.cols())});
  });
}
void cluster_recentre(void* clustering, const double* centres, Status* status) {
  guarded(status, [&] {
    FakeClustering& made = fake_of(clustering);
    made.lloyd().recentre({centres, static_cast<std::size_t>(made.k * made.cols())});
  });
}
void cluster_step(void* clustering, const HostCalls* /*host*/, const Table* table, std::int32_t work, ClusterStep* step,
                  Status* status) {
  guarded(status, [&] {
    FakeClustering& made = (work & kAssign) != 0 ? pass(clustering, *table) : fake_of(clustering);
    kernels::LloydStep done;
    if ((work & kAssign) != 0) {
      done = (work & (kMeans | kMeansUnlessEmpty)) != 0 ? made.lloyd().step((work & kMeansUnlessEmpty) != 0)
                                                        : made.lloyd().assign();
    } else {
      done.shift = made.lloyd().means();
      done.moved = true;
    }
    const std::int64_t rechecked = made.lloyd().counts().rechecked;
    *step = {done.changed, done.empty, rechecked - made.rechecked, done.shift, done.moved ? 1 : 0};
    made.rechecked = rechecked;
  });
}
void cluster_move(void* clustering, const Table* table, std::int64_t row, std::int32_t cluster, Status* status) {
  guarded(status, [&] { pass(clustering, *table).lloyd().move(row, cluster); });
}
void cluster_state(void* clustering, const HostCalls* /*host*/, const Table* table, const ClusterState* state,
                   Status* status) {
  guarded(status, [&] {
    const bool asks_keys = state->keys != nullptr || state->inertia != nullptr || state->inertia_limbs != nullptr;
    FakeClustering& made = asks_keys ? pass(clustering, *table) : fake_of(clustering);
    const auto k = static_cast<std::size_t>(made.k);
    const auto n = static_cast<std::size_t>(made.rows());
    if (state->centres != nullptr) made.lloyd().centres({state->centres, k * static_cast<std::size_t>(made.cols())});
    if (state->sizes != nullptr) made.lloyd().sizes({state->sizes, k});
    if (state->labels != nullptr) {
      made.lloyd().labels({state->labels, n});
      ++FakeClustering::label_copies;
    }
    if (state->keys != nullptr) made.lloyd().keys({state->keys, n});
    if (state->inertia != nullptr) *state->inertia = made.lloyd().inertia();
    if (state->inertia_limbs != nullptr) made.inertia_limbs(state->inertia_limbs);
  });
}
void cluster_ranges(void* clustering, TermRange* columns, Status* status) {
  guarded(status, [&] { fake_of(clustering).ranges(columns); });
}
void cluster_share(void* clustering, const SumLayout* layout, Status* status) {
  guarded(status, [&] { fake_of(clustering).share(*layout); });
}
void cluster_parts(void* clustering, std::int64_t** parts, Status* status) {
  guarded(status, [&] { *parts = fake_of(clustering).parts(); });
}
void cluster_means(void* clustering, const std::int64_t* parts, double* shift, Status* status) {
  guarded(status, [&] { *shift = fake_of(clustering).means_of(parts); });
}
void cluster_rows(void* clustering, const Table* table, const std::int64_t* rows, std::int64_t count, double* values,
                  Status* status) {
  guarded(status, [&] {
    FakeClustering& made = pass(clustering, *table);
    made.lloyd().rows({rows, static_cast<std::size_t>(count)}, {values, static_cast<std::size_t>(count * made.cols())});
  });
}
std::int32_t seeds(void* clustering, std::int64_t /*trials*/) {
  const FakeClustering& made = known_of(clustering);
  return made.part < made.rows() ? 0 : 1;
}
void seed(void* clustering, std::int64_t trials, Status* status) {
  guarded(status, [&] {
    FakeClustering& made = fake_of(clustering);
    made.seeding() = trials >= 0 ? made.lloyd().seeding(trials) : nullptr;
  });
}
void seed_draw(void* clustering, const double* draws, std::int64_t count, std::int64_t* rows, Status* status) {
  guarded(status, [&] {
    const auto size = static_cast<std::size_t>(count);
    fake_of(clustering).seeding()->draw({draws, size}, {rows, size});
  });
}
void seed_choose(void* clustering, const double* draws, std::int64_t trials, std::int64_t count, std::int64_t* rows,
                 Status* status) {
  guarded(status, [&] {
    const auto size = static_cast<std::size_t>(count);
    fake_of(clustering).seeding()->choose({draws, size * static_cast<std::size_t>(trials)}, {rows, size});
  });
}
void seed_meet(void* clustering, const std::int64_t* rows, std::int64_t count, Status* status) {
  guarded(status, [&] { fake_of(clustering).seeding()->meet({rows, static_cast<std::size_t>(count)}); });
}
void seed_state(void* clustering, double* total, std::int32_t* winners, Status* status) {
  guarded(status, [&] {
    FakeClustering& made = fake_of(clustering);
    *total = made.seeding()->total();
    if (winners != nullptr) made.seeding()->winners({winners, static_cast<std::size_t>(made.rows())});
  });
}

void require_room(const Engine& engine, const Outliers& task) {
  const std::uint64_t left = engine.limit - std::min(engine.limit, engine.resident.load());
  if (fake_bytes(task) > left) {
    throw Error(ErrorCode::over_memory, "lof needs more than " + std::to_string(left) + " bytes");
  }
}

void lof_bytes(void* engine, const Outliers* task, std::uint64_t* bytes, Status* status) {
  guarded(status, [&] {
    require_room(*static_cast<Engine*>(engine), *task);
    *bytes = fake_bytes(*task);
  });
}

void find_lists(Engine& engine, const HostCalls& host, Search search, std::int64_t entries,
                std::vector<std::int64_t>& ids, std::vector<double>& distances, Counters& counters) {
  ids.resize(static_cast<std::size_t>(entries));
  distances.resize(ids.size());
  search.ids = ids.data();
  search.distances = distances.data();
  Run(engine, host, search).run();
  counters.distinct_rows = search.table.rows;
  if (search.tree != nullptr) counters.survivors = search.table.rows * search.queries.rows;
}

void lof_rows(void* engine, const HostCalls* host, const Search* search, Outliers* task, Counters* counters,
              void** rows, Status* status) {
  guarded(status, [&] {
    Engine& on = *static_cast<Engine*>(engine);
    call_on(on);
    require_room(on, *task);
    auto made = std::make_unique<FakeLofRows>(*task, on);
    find_lists(on, *host, *search, task->rows * task->stride, made->ids, made->distances, *counters);
    made->k_distances(*task);
    *rows = made.release();
  });
}
void release_lof_rows(void* rows) {
  delete static_cast<FakeLofRows*>(rows);
}
void lof_densities(void* rows, const double* k_distances, double* densities, Status* status) {
  guarded(status, [&] {
    const auto& made = *static_cast<FakeLofRows*>(rows);
    call_on(made.engine);
    made.densities(k_distances, densities);
  });
}
void lof_scores(void* rows, const double* densities, std::int64_t first_row, double* scores, Status* status) {
  guarded(status, [&] {
    const auto& made = *static_cast<FakeLofRows*>(rows);
    call_on(made.engine);
    made.scores(densities, first_row, scores);
  });
}

void lof(void* engine, const HostCalls* host, const Search* search, Outliers* task, Counters* counters,
         Status* status) {
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    require_room(*static_cast<Engine*>(engine), *task);
    if ((search != nullptr) != (task->ids == nullptr)) throw std::runtime_error("lists and a search, or neither");
    std::vector<std::int64_t> ids;
    std::vector<double> distances;
    if (search != nullptr) {
      find_lists(*static_cast<Engine*>(engine), *host, *search, task->rows * task->stride, ids, distances, *counters);
      task->ids = ids.data();
      task->distances = distances.data();
    }
    fake_scores(*task, task->table.rows > 0 ? read(task->table, 0, task->table.rows) : std::vector<double>());
  });
}

/// Density clustering takes `bytes` beside a table that stays on the device.
std::uint64_t require_density_room(const Engine& on, const Search& search, std::uint64_t bytes, const char* operation) {
  const std::uint64_t left = on.left();
  const bool stays = search.resident != nullptr || search.stays != 0;
  const std::uint64_t needed = bytes + (stays ? coming_bytes(search) : 2 * bytes_of(search.table));
  if (needed <= left && stays) return bytes;
  throw Error(ErrorCode::over_memory, std::string(operation) + ": needs " + std::to_string(needed) + " bytes, but " +
                                          std::to_string(left) + " are left");
}
/// The keys of pairs of a table that is on the device.
class PairKeys {
 public:
  explicit PairKeys(const Search& search)
      : metric_(static_cast<Metric>(search.metric)),
        p_(search.p),
        d_(search.table.cols),
        rows_(static_cast<const Resident*>(search.resident)->rows) {
    if (metric_ == Metric::cosine) unit_ = Normalized(rows_, d_);
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    const bool is_cosine = metric_ == Metric::cosine;
    if (is_cosine && (unit_.is_zero[static_cast<std::size_t>(i)] || unit_.is_zero[static_cast<std::size_t>(j)])) {
      return 1;
    }
    const double* const values = (is_cosine ? unit_.rows : rows_).data();
    return key_of(metric_, p_, values + i * d_, values + j * d_, d_);
  }

 private:
  Metric metric_;
  double p_;
  std::int64_t d_;
  const std::vector<double>& rows_;
  Normalized unit_;
};

void dbscan_bytes(void* engine, const Search* search, const DbscanTask* task, std::uint64_t* bytes, Status* status) {
  guarded(status, [&] {
    *bytes = require_density_room(*static_cast<Engine*>(engine), *search, fake_bytes(*search, *task), "dbscan");
  });
}
void dbscan(void* engine, const HostCalls* host, const Search* search, DbscanTask* task, Counters* counters,
            Status* status) {
  guarded(status, [&] {
    const Engine& on = *static_cast<Engine*>(engine);
    call_on(on);
    require_density_room(on, *search, fake_bytes(*search, *task), "dbscan");
    if (search->resident == nullptr) throw std::runtime_error("the table is not on the device");
    const bool in_tree = static_cast<Method>(search->method) == Method::kdtree;
    if (in_tree != (search->tree != nullptr)) throw std::runtime_error("a tree and another method, or the reverse");
    if ((task->has_weights != 0) != (task->weights != nullptr))
      throw std::runtime_error("weights are not where they are");
    counters->distinct_rows = search->table.rows;
    FakeClusters(search->table.rows, *host, PairKeys(*search), *task).run();
  });
}

void spanning_bytes(void* engine, const Search* search, const SpanningTask* task, std::uint64_t* bytes,
                    Status* status) {
  guarded(status, [&] {
    const Engine& on = *static_cast<Engine*>(engine);
    const SpanningNeeds needs(*search, *task);
    Search lists = *search;
    lists.held = needs.lists;
    const bool stays = search->resident != nullptr || search->stays != 0;
    const std::uint64_t listing = stays ? needs.lists + search_bytes(on, lists) : 0;
    *bytes = require_density_room(on, *search, std::max(listing, needs.after_lists()), "spanning tree");
  });
}
void spanning_tree(void* engine, const HostCalls* host, const Search* search, SpanningTask* task, Counters* counters,
                   Status* status) {
  std::uint64_t bytes = 0;
  spanning_bytes(engine, search, task, &bytes, status);
  if (status->code != kOk) return;
  guarded(status, [&] {
    call_on(*static_cast<Engine*>(engine));
    if (search->keys == 0 || search->self == 0) throw std::runtime_error("not the keys of a table within itself");
    Engine& on = *static_cast<Engine*>(engine);
    const SpanningNeeds needs(*search, *task);
    const std::int64_t n = search->table.rows;
    std::vector<std::int64_t> ids;
    std::vector<double> keys;
    std::optional<Taken> lists(std::in_place, on, needs.lists);
    find_lists(on, *host, *search, n * search->k, ids, keys, *counters);
    const Taken edges(on, needs.edges);
    std::optional<Taken> rows(std::in_place, on, needs.rows);
    const PairKey key = PairKeys(*search);
    std::vector<std::uint32_t> order;
    order.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = n; search->tree != nullptr && i-- > 0;) order.push_back(static_cast<std::uint32_t>(i));
    fake_tree(ids, keys, n, search->k, std::move(order), *host, key, *task);
    rows.reset();
    lists.reset();
    const Taken at_end(on, needs.at_end);
  });
}

DonorRoom require_room(const Engine& engine, const DonorSearch& task) {
  const DonorRoom room = fake_room(task);
  if (room.device > engine.limit) {
    throw Error(ErrorCode::over_memory, "donors need more than " + std::to_string(engine.limit) + " bytes");
  }
  return room;
}

void donor_bytes(void* engine, const DonorSearch* task, DonorRoom* room, Status* status) {
  guarded(status, [&] { *room = require_room(*static_cast<Engine*>(engine), *task); });
}

void find_donors(void* engine, const HostCalls* host, const DonorSearch* task, Status* status) {
  guarded(status, [&] {
    static_cast<void>(require_room(*static_cast<Engine*>(engine), *task));
    const std::vector<double> donors = read(task->donors, 0, task->donors.rows);
    if (!fake_donors(*task, donors, read(task->rows, 0, task->rows.rows), *host)) throw HostFailed{};
  });
}

void label_bytes(void* engine, const Bipartite* task, std::uint64_t* bytes, Status* status) {
  guarded(status, [&] {
    *bytes = fake_bytes(*task);
    const std::uint64_t limit = static_cast<Engine*>(engine)->limit;
    if (*bytes > limit)
      throw Error(ErrorCode::over_memory, "labels need more than " + std::to_string(limit) + " bytes");
  });
}

/// The most columns of an embedding here: few, so that a test meets it.
std::int64_t lle_widest(void* /*engine*/) {
  return 16;
}

void lle_bytes(void* engine, const LleTask* task, std::uint64_t* bytes, Status* status) {
  guarded(status, [&] {
    *bytes = static_cast<std::uint64_t>(task->table.rows * (task->k + 1)) * 60;
    const std::uint64_t limit = static_cast<Engine*>(engine)->limit;
    if (*bytes > limit) {
      throw Error(ErrorCode::over_memory, "lle: needs " + std::to_string(*bytes) + " bytes of device memory, but " +
                                              std::to_string(limit) + " are left within the limit");
    }
  });
}

void lle(void* engine, const HostCalls* host, LleTask* task, void** made, Status* status) {
  std::uint64_t bytes = 0;
  lle_bytes(engine, task, &bytes, status);
  if (status->code != kOk) return;
  guarded(status, [&] {
    host->report(host->user, "weights", 0);
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    const auto* const resident = static_cast<const Resident*>(task->resident);
    *made =
        std::make_unique<FakeLle>(*task, resident != nullptr ? resident->rows : read(task->table, 0, task->table.rows),
                                  static_cast<Engine*>(engine)->limit)
            .release();
  });
}

void release_lle(void* lle) {
  delete static_cast<FakeLle*>(lle);
}

void lle_take(void* lle, LleTaken* piece, Status* status) {
  guarded(status, [&] { static_cast<FakeLle*>(lle)->take(*piece); });
}

void lle_fetch(void* lle, const LleBlocks* blocks, Status* status) {
  guarded(status, [&] { static_cast<FakeLle*>(lle)->fetch(*blocks); });
}

void lle_dissect(void* lle, const HostCalls* /*host*/, LleParts* parts, Status* status) {
  guarded(status, [&] { static_cast<FakeLle*>(lle)->dissect(*parts); });
}

void lle_factor(void* lle, const HostCalls* host, LleFactor* task, Status* status) {
  guarded(status, [&] {
    static_cast<FakeLle*>(lle)->factor(*task);
    host->report(host->user, "factor", 1);
  });
}

void lle_step(void* lle, const HostCalls* host, const LleStep* step, Status* status) {
  guarded(status, [&] {
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    static_cast<FakeLle*>(lle)->step(*step);
  });
}

void krylov(void* /*engine*/, const KrylovTask* task, void** made, Status* status) {
  guarded(status, [&] { *made = std::make_unique<FakeKrylov>(*task).release(); });
}

void release_krylov(void* space) {
  delete static_cast<FakeKrylov*>(space);
}

void krylov_step(void* space, const HostCalls* host, const KrylovStep* step, Status* status) {
  guarded(status, [&] {
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    static_cast<FakeKrylov*>(space)->step(*step);
  });
}

void spmv(void* /*engine*/, const HostCalls* /*host*/, SpmvTask* task, Status* status) {
  guarded(status, [&] { fake_product(*task); });
}

void label(void* /*engine*/, const HostCalls* /*host*/, Bipartite* task, Status* status) {
  guarded(status, [&] {
    const auto fetch = [](const Table& table) {
      std::vector<std::byte> ids(bytes_of(table));
      if (table.rows > 0 && table.fill(table.source, 0, table.rows, ids.data()) != 0) throw HostFailed{};
      return ids;
    };
    fake_labels(*task, fetch(task->a), fetch(task->b));
  });
}

void join_polygons(void* engine, const HostCalls* host, OverlapJoin* task, Status* status) {
  guarded(status, [&] {
    const auto bytes = static_cast<std::uint64_t>(task->a.point_count + task->b.point_count) * sizeof(geo::Point);
    const std::uint64_t limit = static_cast<Engine*>(engine)->limit;
    if (bytes > limit) throw Error(ErrorCode::over_memory, "maps need more than " + std::to_string(limit) + " bytes");
    if (host->cancelled(host->user) != 0) throw Error(ErrorCode::cancelled, "cancelled");
    if (!fake_join(*task)) throw HostFailed{};
  });
}

}  // namespace
}  // namespace vicinal::plugin

// What the tests ask beside the plug-in's functions: clusterings that nobody has released, copies of labels made, and
// rows that the host has sent.
extern "C" __attribute__((visibility("default"))) std::int64_t vicinal_fake_clusterings() {
  return vicinal::plugin::FakeClustering::alive;
}
extern "C" __attribute__((visibility("default"))) std::int64_t vicinal_fake_label_copies() {
  return vicinal::plugin::FakeClustering::label_copies;
}
extern "C" __attribute__((visibility("default"))) std::int64_t vicinal_fake_rows_sent() {
  return vicinal::plugin::rows_sent;
}

/// The most bytes of a device that calls took at a time since this was asked last, beside tables and trees.
extern "C" __attribute__((visibility("default"))) std::int64_t vicinal_fake_most_taken() {
  return static_cast<std::int64_t>(vicinal::plugin::Engine::most_taken.exchange(0));
}

/// The call of a device, counted from 1, at which it is lost; a device below 0: none is.
extern "C" __attribute__((visibility("default"))) void vicinal_fake_lose(std::int32_t device, std::int64_t call) {
  vicinal::plugin::calls_left = call;
  vicinal::plugin::lost_device = device;
}

/// The device that has no screen; a device below 0: all have one. The second argument is as that of the function above.
extern "C" __attribute__((visibility("default"))) void vicinal_fake_without_screen(std::int32_t device,
                                                                                   std::int64_t /*unused*/) {
  vicinal::plugin::device_without_screen = device;
}

extern "C" __attribute__((visibility("default"))) const vicinal::plugin::Functions* vicinal_cuda_plugin() {
  namespace plugin = vicinal::plugin;
  static const plugin::Functions kFunctions = [] {
    plugin::Functions functions;
    functions.architectures = "fake";
    functions.runtime_version = 13000;
    functions.open = plugin::open;
    functions.close = plugin::close;
    functions.prepare = plugin::prepare;
    functions.upload = plugin::upload;
    functions.release = plugin::release;
    functions.fits = plugin::fits;
    functions.fused_serves = plugin::fused_serves;
    functions.few_multiply = plugin::few_multiply;
    functions.plan = plugin::plan;
    functions.nearest = plugin::nearest;
    functions.tree_serves = plugin::tree_serves;
    functions.build_tree = plugin::build_tree;
    functions.tree_order = plugin::tree_order;
    functions.release_tree = plugin::release_tree;
    functions.cluster_screens = plugin::cluster_screens;
    functions.cluster_bytes = plugin::cluster_bytes;
    functions.cluster = plugin::cluster;
    functions.release_clustering = plugin::release_clustering;
    functions.cluster_start = plugin::cluster_start;
    functions.cluster_recentre = plugin::cluster_recentre;
    functions.cluster_step = plugin::cluster_step;
    functions.cluster_move = plugin::cluster_move;
    functions.cluster_state = plugin::cluster_state;
    functions.cluster_rows = plugin::cluster_rows;
    functions.cluster_ranges = plugin::cluster_ranges;
    functions.cluster_share = plugin::cluster_share;
    functions.cluster_parts = plugin::cluster_parts;
    functions.cluster_means = plugin::cluster_means;
    functions.seeds = plugin::seeds;
    functions.seed = plugin::seed;
    functions.seed_draw = plugin::seed_draw;
    functions.seed_choose = plugin::seed_choose;
    functions.seed_meet = plugin::seed_meet;
    functions.seed_state = plugin::seed_state;
    functions.lof = plugin::lof;
    functions.lof_bytes = plugin::lof_bytes;
    functions.lof_rows = plugin::lof_rows;
    functions.release_lof_rows = plugin::release_lof_rows;
    functions.lof_densities = plugin::lof_densities;
    functions.lof_scores = plugin::lof_scores;
    functions.spanning_tree = plugin::spanning_tree;
    functions.spanning_bytes = plugin::spanning_bytes;
    functions.dbscan = plugin::dbscan;
    functions.dbscan_bytes = plugin::dbscan_bytes;
    functions.find_donors = plugin::find_donors;
    functions.donor_bytes = plugin::donor_bytes;
    functions.label = plugin::label;
    functions.label_bytes = plugin::label_bytes;
    functions.join_polygons = plugin::join_polygons;
    functions.lle_bytes = plugin::lle_bytes;
    functions.lle_widest = plugin::lle_widest;
    functions.lle = plugin::lle;
    functions.release_lle = plugin::release_lle;
    functions.lle_take = plugin::lle_take;
    functions.lle_fetch = plugin::lle_fetch;
    functions.lle_dissect = plugin::lle_dissect;
    functions.lle_factor = plugin::lle_factor;
    functions.lle_step = plugin::lle_step;
    functions.krylov = plugin::krylov;
    functions.release_krylov = plugin::release_krylov;
    functions.krylov_step = plugin::krylov_step;
    functions.spmv = plugin::spmv;
    return functions;
  }();
  return &kFunctions;
}
