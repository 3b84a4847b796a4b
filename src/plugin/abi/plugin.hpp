// The interface of the CUDA plug-in, libvicinal_cuda.so: one table of C functions over plain structs,
// so that neither side needs the other's compiler, runtime or exceptions. Every function that can fail fills a status;
// none throws. Numbers of enums (metric, dtype, memory, method) are those of the public headers. A change to anything
// here changes kPluginVersion.
#pragma once

#include <cstdint>
#include <limits>

namespace vicinal::plugin {

inline constexpr std::uint32_t kPluginVersion = 21;
/// The one symbol the plug-in exports: `extern "C" const Functions* vicinal_cuda_plugin()`.
inline constexpr const char* kPluginSymbol = "vicinal_cuda_plugin";

/// Pinned memory of an engine: two buffers of so many bytes at most, but for a row that is longer.
inline constexpr std::int64_t kStagingBytes = std::int64_t{16} << 20;

inline constexpr std::int32_t kOk = 0;
inline constexpr std::int32_t kHostFailed = -1;  ///< a callback failed: the host knows why

struct Status {
  std::int32_t code = kOk;  ///< kOk, kHostFailed, or 1 + the number of an ErrorCode
  char message[512] = {};   ///< one sentence, ended by 0
};

/// What the caller of a long operation offers. `cancelled` may be called on any thread, `report` only on the caller's.
struct HostCalls {
  void* user = nullptr;
  std::int32_t (*cancelled)(void* user) = nullptr;
  void (*report)(void* user, const char* stage, double fraction) = nullptr;
};

/// A borrowed table.
struct Table {
  const void* data = nullptr;  ///< null for a block source
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;  ///< in elements
  std::int64_t col_stride = 1;
  std::int32_t dtype = 0;
  std::int32_t memory = 0;
  void* source = nullptr;
  /// Copies rows [begin, end) contiguously to host memory: of everything that does not lie in device memory. Called on
  /// the caller's thread only. Not 0: it failed.
  std::int32_t (*fill)(void* source, std::int64_t begin, std::int64_t end, void* rows) = nullptr;
};

struct OpenOptions {
  std::int32_t device = 0;
  std::uint64_t memory_limit = 0;  ///< bytes of device memory; 0: 80 % of what is free
  std::int32_t ablation = 0;       ///< number of an idea that is left out (core/ablation.hpp)
};

struct EngineFacts {
  std::int32_t compute_capability = 0;  ///< 90 for 9.0
  std::int32_t compiled_for = 0;        ///< the same of what its kernels were compiled for: older, where that is PTX
  std::int32_t multiprocessors = 0;
  std::uint64_t memory_limit = 0;
  const char* matrix_instruction = "";  ///< of the screen: "wgmma", "mma.sync"
  const char* accumulation = "";        ///< the model of its sums that held when it was tested; empty: none
  double largest_error = 0;             ///< that the test saw, over the model's bound, or over the widest one's
};

/// What `prepare` finds. Filled by the plug-in.
struct Preparation {
  double* centre = nullptr;  ///< [cols] memory of the host's
  double largest = 0;
  void* resident = nullptr;    ///< the table in device memory; null where it is too large to stay there
  std::int64_t first_row = 0;  ///< given: number of the table's first row in sentences
};

/// Labels of one output and where its votes go, all in host memory.
struct VoteOutput {
  const std::int32_t* labels = nullptr;  ///< [table rows]
  std::int64_t classes = 0;
  std::int32_t* codes = nullptr;    ///< [m]
  double* probabilities = nullptr;  ///< [m, classes], all 0, or null
};

enum Collect : std::int32_t { kKList = 0, kRadius = 1, kCount = 2 };

struct Search {
  Table table;
  void* resident = nullptr;        ///< of that table, or null: it is streamed
  std::int32_t stays = 0;          ///< for what only looks: the table is not resident yet, but will be
  const void* tree = nullptr;      ///< of that table, for kdtree; null for what only looks: it is not built yet
  const double* centre = nullptr;  ///< [cols]
  double largest = 0;
  Table queries;          ///< in self mode the table itself
  std::int32_t self = 0;  ///< query i is table row i and is not its own neighbor
  // Of a shard, as kernels::NearestTask.
  std::int64_t first_id = 0;
  std::int64_t first_query = 0;
  std::int32_t same_rows = 0;
  std::int32_t keys = 0;
  std::int32_t metric = 0;
  double p = 2;
  std::int32_t method = 0;              ///< fused, direct, kdtree, or one of the papers'
  const double* k_distances = nullptr;  ///< of direct_filter: where its thresholds begin, ascending, host
  std::int64_t k_distance_count = 0;
  std::int32_t collect = kKList;
  std::int64_t k = 0;
  double largest_key = 0;                 ///< of radius and count: the largest key within
  const std::uint64_t* filter = nullptr;  ///< [(n + 63) / 64] host, or null
  const std::int64_t* exclude = nullptr;  ///< [m] host, or null

  // Where answers go. A k list: ids and distances [m, k] in `memory`, or votes instead where there are outputs.
  std::int64_t* ids = nullptr;
  double* distances = nullptr;
  std::int32_t memory = 0;
  std::uint64_t held = 0;  ///< bytes of device memory that the caller holds during the search
  const VoteOutput* outputs = nullptr;
  std::int64_t output_count = 0;
  std::int32_t weights = 0;        ///< 0 uniform, 1 by distance
  std::int64_t* counts = nullptr;  ///< count: [m] host
  /// Radius: the next `queries` queries have so many neighbors each; gives room for all of them. Not 0: it failed.
  std::int32_t (*make_room)(void* user, const std::int64_t* counts, std::int64_t queries, std::int64_t** ids,
                            double** distances) = nullptr;
  void* user = nullptr;  ///< of make_room
  /// Radius: neighbors of several queries that the host has room for at once.
  std::int64_t most_neighbors = std::numeric_limits<std::int64_t>::max();
};

/// As SearchStats.
struct Counters {
  std::int64_t distinct_rows = 0;
  std::int64_t survivors = 0;
  std::int64_t escalated = 0;
  std::int64_t uncertified = 0;
  double selection_seconds = 0;
};

/// Rows to cluster, as kernels::ClusterTask.
struct Clustering {
  Table table;
  const double* weights = nullptr;  ///< [rows] host, or null: 1 each
  std::int64_t clusters = 0;
  std::int32_t sums = 1;       ///< 0: none; kSumsOfShard: of rows that are some of a table's
  std::int64_t trials = -1;    ///< for `cluster_bytes`: of a seeding; below 0: there is none
  std::int64_t first_row = 0;  ///< number of the table's first row in sentences
};
inline constexpr std::int32_t kSumsOfShard = 2;

/// What a column's values and terms, of weights times values, are like.
struct TermRange {
  double largest = 0;        ///< |value|
  double largest_term = 0;   ///< |term|
  std::int32_t last = 4096;  ///< place of the last bit of a term that is not 0, counted from 2^-1074
};
/// How sums are kept as integers (formulas/kmeans/limbs.hpp).
struct SumLayout {
  std::int32_t limbs = 0;
  std::int32_t bits = 0;
  const std::int32_t* bases = nullptr;  ///< [columns], and one of the weights where there are some
};
inline constexpr std::int64_t kInertiaLimbs = 68;  ///< of 32 bits, the first one from 2^-1074

/// What a clustering would take of a device.
struct ClusterRoom {
  std::uint64_t bytes = 0;  ///< its table included unless that lies there
  std::int64_t part = 0;    ///< rows there at a time; fewer than all: they pass through at each call that needs them
  std::int32_t seeds = 1;   ///< whether k-means++ has room there, too
};

enum ClusterWork : std::int32_t { kAssign = 1, kMeans = 2, kMeansUnlessEmpty = 4 };

/// As kernels::LloydStep.
struct ClusterStep {
  std::int64_t changed = 0;
  std::int64_t empty = 0;
  std::int64_t rechecked = 0;  ///< rows that keys decided
  double shift = 0;
  std::int32_t moved = 0;
};

/// Where to put what is asked of a clustering, in host memory; null: it is not asked.
struct ClusterState {
  double* centres = nullptr;              ///< [k, d]
  std::int64_t* sizes = nullptr;          ///< [k]
  std::int32_t* labels = nullptr;         ///< [n]
  double* keys = nullptr;                 ///< [n] of each row and its label's center
  double* inertia = nullptr;              ///< [1]
  std::int64_t* inertia_limbs = nullptr;  ///< [kInertiaLimbs] of which it is rounded, carries not taken out
};

/// Neighborhoods and what is made of them, as kernels::LofTask; all memory is the host's.
struct Outliers {
  std::int32_t score = 0;
  std::int32_t duplicates = 0;
  std::int32_t across = 0;
  const std::int64_t* ids = nullptr;  ///< null: k lists that a search is to find
  const double* distances = nullptr;
  const std::int64_t* offsets = nullptr;  ///< [rows + 1], or null: k lists, row i at i * stride
  const std::int64_t* weights = nullptr;  ///< like ids, or null
  std::int64_t entries = 0;               ///< of ids: of k lists rows * stride
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::int64_t stride = 0;
  std::int64_t k_from = 0;
  std::int64_t ks = 1;
  Table table;  ///< for scores that need it; else it has no rows
  std::int32_t metric = 0;
  double p = 2;
  std::int64_t known_rows = 0;                ///< 0: the neighborhoods are of a table within itself
  const double* known_k_distances = nullptr;  ///< [known_rows, ks]
  const double* known_densities = nullptr;    ///< [known_rows, ks], or null
  const double* known_caps = nullptr;         ///< [ks], or null

  double* scores = nullptr;       ///< [rows]
  double* k_distances = nullptr;  ///< [rows, ks], or null
  double* densities = nullptr;    ///< [rows, ks], or null
  double* caps = nullptr;         ///< [ks], or null
  std::int64_t copied = 0;        ///< filled
  double seconds = 0;             ///< filled: after the search
};

/// Rows that lack values, those that have them, and what such a search takes (donors.hpp).
struct DonorSearch;
struct DonorRoom;

/// What is made of a table's lists (density.hpp).
struct SpanningTask;
/// Clusters of a table (dbscan.hpp).
struct DbscanTask;

/// Edges of a bipartite graph, and where labels go (graph.hpp).
struct Bipartite;
/// Two maps whose features are to be joined (overlap.hpp).
struct OverlapJoin;

/// A basis beside a sparse matrix, what is done with it, and products alone (krylov.hpp).
struct KrylovTask;
struct KrylovStep;
struct SpmvTask;

/// An embedding, and what is done with it (lle.hpp).
struct LleTask;
struct LleTaken;
struct LleBlocks;
struct LleParts;
struct LleFactor;
struct LleStep;

/// An engine is one device with what a context holds there; not for two threads at once.
struct Functions {
  std::uint32_t version = kPluginVersion;
  std::uint32_t bytes = sizeof(Functions);  ///< of this table
  const char* architectures = nullptr;      ///< compiled for, such as "90a"
  std::int32_t runtime_version = 0;         ///< of CUDA, such as 13000: a driver must be for the same major version

  void (*open)(const OpenOptions* options, void** engine, EngineFacts* facts, Status* status) = nullptr;
  void (*close)(void* engine) = nullptr;
  /// Refuses NaN and infinity by row and column; keeps the table on the device where it fits.
  void (*prepare)(void* engine, const HostCalls* host, const Table* table, Preparation* result,
                  Status* status) = nullptr;
  /// Takes a table that was prepared elsewhere; `resident` stays null where it does not fit.
  void (*upload)(void* engine, const HostCalls* host, const Table* table, const Preparation* facts, void** resident,
                 Status* status) = nullptr;
  void (*release)(void* resident) = nullptr;
  /// Whether `prepare` or `upload` would find room for the table now.
  std::int32_t (*fits)(void* engine, const Table* table) = nullptr;
  /// Whether method fused serves such a search, and fits the device.
  std::int32_t (*fused_serves)(void* engine, const Search* search) = nullptr;
  /// Whether method direct, of few queries, finds the pairs that may be near by products of tf32.
  std::int32_t (*few_multiply)(void* engine, const Search* search) = nullptr;
  /// Bytes of device memory a search takes beyond what stays there. Fails where they are not to be had.
  void (*plan)(void* engine, const Search* search, std::uint64_t* bytes, Status* status) = nullptr;
  void (*nearest)(void* engine, const HostCalls* host, const Search* search, Counters* counters,
                  Status* status) = nullptr;

  /// Whether method kdtree serves such a search: 1; 0: it does not; -1: there is no room for the tree.
  std::int32_t (*tree_serves)(void* engine, const Search* search) = nullptr;
  /// A kd-tree of a resident table. It keeps what it needs of it.
  void (*build_tree)(void* engine, const HostCalls* host, const void* resident, void** tree, Status* status) = nullptr;
  /// The rows in the order of the tree's leaves: [n] memory of the host's.
  void (*tree_order)(const void* tree, std::int64_t* rows, Status* status) = nullptr;
  void (*release_tree)(void* tree) = nullptr;

  /// The names of the screens that label the rows of such a task, coarse to fine.
  const char* (*cluster_screens)(void* engine, const Clustering* task) = nullptr;
  /// What a clustering would take. Fails where that is not to be had.
  void (*cluster_bytes)(void* engine, const Clustering* task, ClusterRoom* room, Status* status) = nullptr;
  /// Takes the rows in: refuses what is not finite and magnitudes of 2^500 and more by row and column. Calls with a
  /// `table` are given the same one again.
  void (*cluster)(void* engine, const HostCalls* host, const Clustering* task, void** clustering,
                  Status* status) = nullptr;
  void (*release_clustering)(void* clustering) = nullptr;
  /// Forgets labels and sums and takes centers [k, d].
  void (*cluster_start)(void* clustering, const double* centres, std::int64_t k, Status* status) = nullptr;
  /// Takes other centers and keeps labels and sums.
  void (*cluster_recentre)(void* clustering, const double* centres, Status* status) = nullptr;
  /// `work`: ClusterWork, of which one or two.
  void (*cluster_step)(void* clustering, const HostCalls* host, const Table* table, std::int32_t work,
                       ClusterStep* step, Status* status) = nullptr;
  void (*cluster_move)(void* clustering, const Table* table, std::int64_t row, std::int32_t cluster,
                       Status* status) = nullptr;
  void (*cluster_state)(void* clustering, const HostCalls* host, const Table* table, const ClusterState* state,
                        Status* status) = nullptr;
  // Of some of a table's rows (kSumsOfShard): what their columns are like; then how the sums of all shards are kept,
  // before labels are asked; and after an assignment the sums.
  void (*cluster_ranges)(void* clustering, TermRange* columns, Status* status) = nullptr;
  void (*cluster_share)(void* clustering, const SumLayout* layout, Status* status) = nullptr;
  /// [k, limbs, columns] sums, and [k] sizes behind them, in host memory that is the clustering's: until it is
  /// released.
  void (*cluster_parts)(void* clustering, std::int64_t** parts, Status* status) = nullptr;
  /// The means of such sums, of all shards, become the centers.
  void (*cluster_means)(void* clustering, const std::int64_t* parts, double* shift, Status* status) = nullptr;
  /// Rows, widened: values[count, d].
  void (*cluster_rows)(void* clustering, const Table* table, const std::int64_t* rows, std::int64_t count,
                       double* values, Status* status) = nullptr;
  /// Whether k-means++ with so many rows an attempt has room on the device, which must hold all rows.
  std::int32_t (*seeds)(void* clustering, std::int64_t trials) = nullptr;
  /// First centers (kernels::Seeding), one at a time: begins anew, with at most so many draws for one; below 0: ends.
  void (*seed)(void* clustering, std::int64_t trials, Status* status) = nullptr;
  void (*seed_draw)(void* clustering, const double* draws, std::int64_t count, std::int64_t* rows,
                    Status* status) = nullptr;
  /// draws[count, trials], rows[count].
  void (*seed_choose)(void* clustering, const double* draws, std::int64_t trials, std::int64_t count,
                      std::int64_t* rows, Status* status) = nullptr;
  void (*seed_meet)(void* clustering, const std::int64_t* rows, std::int64_t count, Status* status) = nullptr;
  /// The total; and winners[n], unless null.
  void (*seed_state)(void* clustering, double* total, std::int32_t* winners, Status* status) = nullptr;

  /// Scores neighborhoods; `search`, where it is not null, finds them first, and its lists stay on the device.
  void (*lof)(void* engine, const HostCalls* host, const Search* search, Outliers* task, Counters* counters,
              Status* status) = nullptr;
  /// Bytes of device memory that takes, neighborhoods included, beyond what the search takes. Fails where they are not
  /// to be had.
  void (*lof_bytes)(void* engine, const Outliers* task, std::uint64_t* bytes, Status* status) = nullptr;

  /// Neighborhoods of some of a table's rows, which a search finds and which stay on the device: for scores that are
  /// made of what all rows' neighborhoods say. `known_rows` are those of the table. Fills k-distances, always [rows,
  /// ks], and `copied`.
  void (*lof_rows)(void* engine, const HostCalls* host, const Search* search, Outliers* task, Counters* counters,
                   void** rows, Status* status) = nullptr;
  void (*release_lof_rows)(void* rows) = nullptr;
  /// What the rows say of themselves, [rows, ks], by the k-distances [known_rows, ks] of all; null where the score does
  /// not need them.
  void (*lof_densities)(void* rows, const double* k_distances, double* densities, Status* status) = nullptr;
  /// Scores [rows] by what all rows say, [known_rows, ks]; these begin with row `first_row`.
  void (*lof_scores)(void* rows, const double* densities, std::int64_t first_row, double* scores,
                     Status* status) = nullptr;

  /// The minimum spanning tree of a table on the device; the search's lists stay there.
  void (*spanning_tree)(void* engine, const HostCalls* host, const Search* search, SpanningTask* task,
                        Counters* counters, Status* status) = nullptr;
  /// Bytes of device memory that takes, lists included, beyond what the search takes. Fails where they are not to be
  /// had.
  void (*spanning_bytes)(void* engine, const Search* search, const SpanningTask* task, std::uint64_t* bytes,
                         Status* status) = nullptr;

  /// The clusters of a table on the device. Of `search`: table, tree, metric and method.
  void (*dbscan)(void* engine, const HostCalls* host, const Search* search, DbscanTask* task, Counters* counters,
                 Status* status) = nullptr;
  /// Bytes of device memory that takes beyond the table and the tree. Fails where they are not to be had.
  void (*dbscan_bytes)(void* engine, const Search* search, const DbscanTask* task, std::uint64_t* bytes,
                       Status* status) = nullptr;

  /// Finds the nearest donors of missing values.
  void (*find_donors)(void* engine, const HostCalls* host, const DonorSearch* task, Status* status) = nullptr;
  /// What that takes, donors included. Fails where it is not to be had.
  void (*donor_bytes)(void* engine, const DonorSearch* task, DonorRoom* room, Status* status) = nullptr;

  /// Labels the members of a bipartite graph.
  void (*label)(void* engine, const HostCalls* host, Bipartite* task, Status* status) = nullptr;
  /// Bytes of device memory that takes, edges included. Fails where they are not to be had.
  void (*label_bytes)(void* engine, const Bipartite* task, std::uint64_t* bytes, Status* status) = nullptr;

  /// Finds the pairs of two maps whose boxes meet, and decides most of them; in parts where the device has not room for
  /// all. Fails before it starts where not even a part has.
  void (*join_polygons)(void* engine, const HostCalls* host, OverlapJoin* task, Status* status) = nullptr;
  /// Bytes of device memory an embedding takes until its pieces are factored. Fails where they are not to be had.
  void (*lle_bytes)(void* engine, const LleTask* task, std::uint64_t* bytes, Status* status) = nullptr;
  /// The most columns an embedding may have.
  std::int64_t (*lle_widest)(void* engine) = nullptr;
  /// Begins one: the blocks of all rows.
  void (*lle)(void* engine, const HostCalls* host, LleTask* task, void** lle, Status* status) = nullptr;
  void (*release_lle)(void* lle) = nullptr;
  void (*lle_take)(void* lle, LleTaken* piece, Status* status) = nullptr;
  void (*lle_fetch)(void* lle, const LleBlocks* blocks, Status* status) = nullptr;
  void (*lle_dissect)(void* lle, const HostCalls* host, LleParts* parts, Status* status) = nullptr;
  void (*lle_factor)(void* lle, const HostCalls* host, LleFactor* task, Status* status) = nullptr;
  void (*lle_step)(void* lle, const HostCalls* host, const LleStep* step, Status* status) = nullptr;

  /// Takes the matrix over, and makes room for a basis. Fails where there is none.
  void (*krylov)(void* engine, const KrylovTask* task, void** space, Status* status) = nullptr;
  void (*release_krylov)(void* space) = nullptr;
  void (*krylov_step)(void* space, const HostCalls* host, const KrylovStep* step, Status* status) = nullptr;
  /// Times one form of a sparse product.
  void (*spmv)(void* engine, const HostCalls* host, SpmvTask* task, Status* status) = nullptr;
};

}  // namespace vicinal::plugin
