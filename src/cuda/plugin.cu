// The functions of plugin/abi/plugin.hpp: exceptions become statuses, handles become objects. The one symbol
// that the shared object exports is at the end.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "cuda/base/session.hpp"
#include "cuda/graph/graphs.hpp"
#include "cuda/kmeans/clustering.hpp"
#include "cuda/kmeans/room.hpp"
#include "cuda/lle/krylov/krylov.hpp"
#include "cuda/lle/session.hpp"
#include "cuda/lof/lof.hpp"
#include "cuda/nearest/donors.hpp"
#include "cuda/nearest/screen/self_test.hpp"
#include "cuda/nearest/tree/tree.hpp"
#include "cuda/overlap/overlap.hpp"
#include "plugin/abi/plugin.hpp"

#ifndef VICINAL_CUDA_ARCHITECTURES
#define VICINAL_CUDA_ARCHITECTURES "unknown"
#endif

namespace vicinal::cuda {
namespace {

// Their classes stand behind the handles.
using namespace graph;
using namespace kmeans;
using namespace lle;
using namespace lof;
using namespace overlap;

void fail(plugin::Status* status, ErrorCode code, std::string_view sentence) {
  status->code = 1 + static_cast<std::int32_t>(code);
  const std::size_t length = std::min(sentence.size(), sizeof status->message - 1);
  std::memcpy(status->message, sentence.data(), length);
  status->message[length] = '\0';
}

/// Runs `work`; what it throws becomes the status. An error that a kernel left behind does not meet the next call.
template <class Work>
void guarded(plugin::Status* status, Work work) noexcept {
  status->code = plugin::kOk;
  try {
    work();
  } catch (const HostFailure&) {
    status->code = plugin::kHostFailed;
  } catch (const Failure& failure) {
    fail(status, failure.code, failure.sentence);
  } catch (const std::bad_alloc&) {
    fail(status, ErrorCode::over_memory, "CUDA: the host has no memory left for this job");
  } catch (const std::exception& error) {
    fail(status, ErrorCode::internal, error.what());
  } catch (...) {
    fail(status, ErrorCode::internal, "CUDA: an unknown failure");
  }
}

/// The device current on this thread, put back at the end: it is the caller's (contract clause 10).
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept : device_(device), before_(device) {
    static_cast<void>(cudaGetDevice(&before_));
    if (before_ != device_) static_cast<void>(cudaSetDevice(device_));
  }
  ~CurrentDevice() {
    if (before_ != device_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int device_;
  int before_;
};

Session& session_of(void* engine) {
  return *static_cast<Session*>(engine);
}

Host host_of(const plugin::HostCalls* host) {
  return {host->user, host->cancelled, host->report};
}

/// Where the device is older than, or unknown to, what the kernels were compiled for.
__global__ void probe_kernel() {}

void require_architecture(int device, const cudaDeviceProp& properties) {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, probe_kernel) == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Failure{ErrorCode::device_unavailable,
                "cuda:" + std::to_string(device) + " (" + properties.name + ") has compute capability " +
                    std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                    ", but the CUDA plug-in was compiled for " VICINAL_CUDA_ARCHITECTURES};
}

void destroy(Session* session) noexcept {
  if (session->engine.stream != nullptr) static_cast<void>(cudaStreamSynchronize(session->engine.stream));
  if (session->copies != nullptr) {
    static_cast<void>(cudaStreamSynchronize(session->copies));
    static_cast<void>(cudaStreamDestroy(session->copies));
  }
  if (session->engine.stream != nullptr) static_cast<void>(cudaStreamDestroy(session->engine.stream));
  if (session->engine.pool != nullptr) static_cast<void>(cudaMemPoolDestroy(session->engine.pool));
  delete session;
}

void make_pool(Engine& engine) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = engine.device;
  check(cudaMemPoolCreate(&engine.pool, &properties), "create a memory pool");
  // What was freed is kept for the next call, up to the limit.
  std::uint64_t kept = engine.memory_limit;
  check(cudaMemPoolSetAttribute(engine.pool, cudaMemPoolAttrReleaseThreshold, &kept), "set up a memory pool");
}

void open(const plugin::OpenOptions* options, void** engine, plugin::EngineFacts* facts, plugin::Status* status) {
  guarded(status, [&] {
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "count the devices");
    if (options->device < 0 || options->device >= devices) {
      throw Failure{ErrorCode::device_unavailable, "there is no cuda:" + std::to_string(options->device) + ", only " +
                                                       std::to_string(devices) + " CUDA devices"};
    }
    const CurrentDevice current(options->device);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, options->device), "look at the device");
    require_architecture(options->device, properties);
    std::unique_ptr<Session, void (*)(Session*)> session(new Session, destroy);
    Engine& made = session->engine;
    made.device = options->device;
    made.multiprocessors = properties.multiProcessorCount;
    made.compute_capability = properties.major * 10 + properties.minor;
    made.shared_memory = properties.sharedMemPerBlockOptin;
    const char* const path = std::getenv("VICINAL_CUDA_PATH");
    made.portable = made.compute_capability != 90 || (path != nullptr && std::string_view(path) == "portable");
    made.ablation = static_cast<core::Ablation>(options->ablation);
    made.memory_limit = options->memory_limit;
    if (made.memory_limit == 0) {
      std::size_t free = 0;
      std::size_t total = 0;
      check(cudaMemGetInfo(&free, &total), "ask for free device memory");
      made.memory_limit = free / 10 * 8;
    }
    // Streams that wait for the legacy default stream: what a caller has put there is done before we read it.
    check(cudaStreamCreate(&made.stream), "create a stream");
    check(cudaStreamCreate(&session->copies), "create a stream");
    make_pool(made);
    test_sums(made);
    facts->compute_capability = made.compute_capability;
    facts->multiprocessors = made.multiprocessors;
    facts->memory_limit = made.memory_limit;
    facts->matrix_instruction = made.portable ? "mma.sync" : "wgmma";
    facts->accumulation = made.sums.name;
    facts->largest_error = made.sums.error;
    *engine = session.release();
  });
}

void close(void* engine) {
  const CurrentDevice current(session_of(engine).engine.device);
  destroy(&session_of(engine));
}

void prepare(void* engine, const plugin::HostCalls* host, const plugin::Table* table, plugin::Preparation* result,
             plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    prepare_table(session_of(engine), host_of(host), *table, *result);
  });
}

void upload(void* engine, const plugin::HostCalls* /*host*/, const plugin::Table* table,
            const plugin::Preparation* facts, void** resident, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    *resident = upload_table(session_of(engine), *table, facts->centre, facts->largest);
  });
}

void release(void* resident) {
  auto* const table = static_cast<Resident*>(resident);
  Session& session = *table->session;
  const CurrentDevice current(session.engine.device);
  session.resident_bytes -= table->bytes;
  delete table;
}

std::int32_t fits(void* engine, const plugin::Table* table) {
  const auto bytes = static_cast<std::uint64_t>(table->rows) * static_cast<std::uint64_t>(row_bytes(*table));
  return static_cast<Memory>(table->memory) == Memory::cuda || has_room(session_of(engine), bytes) ? 1 : 0;
}

std::int32_t serves(void* engine, const plugin::Search* search) {
  return can_fuse(session_of(engine), *search) ? 1 : 0;
}

std::int32_t serves_in_tree(void* engine, const plugin::Search* search) {
  if (!tree_serves(*search)) return 0;
  return has_room_for_tree(session_of(engine), *search) ? 1 : -1;
}

void make_tree(void* engine, const plugin::HostCalls* host, const void* resident, void** tree, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    *tree = build_tree(session_of(engine), host_of(host), *static_cast<const Resident*>(resident));
  });
}

void order_of_tree(const void* tree, std::int64_t* rows, plugin::Status* status) {
  guarded(status, [&] {
    const auto& made = *static_cast<const DeviceTree*>(tree);
    const CurrentDevice current(made.session->engine.device);
    fetch_order(made, rows);
  });
}

void release_tree(void* tree) {
  auto* const made = static_cast<DeviceTree*>(tree);
  Session& session = *made->session;
  const CurrentDevice current(session.engine.device);
  session.resident_bytes -= made->bytes;
  delete made;
}

void plan(void* engine, const plugin::Search* search, std::uint64_t* bytes, plugin::Status* status) {
  guarded(status, [&] { *bytes = nearest_bytes(session_of(engine), *search); });
}

void search(void* engine, const plugin::HostCalls* host, const plugin::Search* search, plugin::Counters* counters,
            plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    nearest(session_of(engine), host_of(host), *search, *counters);
  });
}

Clustering& clustering_of(void* clustering) {
  return *static_cast<Clustering*>(clustering);
}

/// Runs work(clustering) on its device.
template <class Work>
void with_clustering(void* clustering, plugin::Status* status, Work work) noexcept {
  guarded(status, [&] {
    Clustering& made = clustering_of(clustering);
    const CurrentDevice current(made.session().engine.device);
    work(made);
  });
}

const char* cluster_screens(void* engine, const plugin::Clustering* task) {
  return clustering_screens(session_of(engine).engine, *task);
}

void cluster_bytes(void* engine, const plugin::Clustering* task, plugin::ClusterRoom* room, plugin::Status* status) {
  guarded(status, [&] { *room = clustering_room(session_of(engine), *task); });
}

void cluster(void* engine, const plugin::HostCalls* host, const plugin::Clustering* task, void** clustering,
             plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    host_of(host).check_cancelled();
    *clustering = std::make_unique<Clustering>(session_of(engine), host_of(host), *task).release();
  });
}

void release_clustering(void* clustering) {
  const CurrentDevice current(clustering_of(clustering).session().engine.device);
  delete &clustering_of(clustering);
}

void cluster_start(void* clustering, const double* centres, std::int64_t k, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.start(centres, k); });
}

void cluster_recentre(void* clustering, const double* centres, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.recentre(centres); });
}

void cluster_step(void* clustering, const plugin::HostCalls* host, const plugin::Table* table, std::int32_t work,
                  plugin::ClusterStep* step, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { *step = made.step(host_of(host), *table, work); });
}

void cluster_move(void* clustering, const plugin::Table* table, std::int64_t row, std::int32_t cluster,
                  plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.move(*table, row, cluster); });
}

void cluster_state(void* clustering, const plugin::HostCalls* host, const plugin::Table* table,
                   const plugin::ClusterState* state, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.state(host_of(host), *table, *state); });
}

void cluster_rows(void* clustering, const plugin::Table* table, const std::int64_t* rows, std::int64_t count,
                  double* values, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.rows(*table, rows, count, values); });
}

std::int32_t seeds(void* clustering, std::int64_t trials) {
  return clustering_of(clustering).seeds(trials) ? 1 : 0;
}

void seed(void* clustering, std::int64_t trials, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.seed(trials); });
}

void seed_draw(void* clustering, const double* draws, std::int64_t count, std::int64_t* rows, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.seeding().draw(draws, count, rows); });
}

void seed_choose(void* clustering, const double* draws, std::int64_t trials, std::int64_t count, std::int64_t* rows,
                 plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.seeding().choose(draws, trials, count, rows); });
}

void seed_meet(void* clustering, const std::int64_t* rows, std::int64_t count, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { made.meet(rows, count); });
}

void seed_state(void* clustering, double* total, std::int32_t* winners, plugin::Status* status) {
  with_clustering(clustering, status, [&](Clustering& made) { *total = made.seeding().state(winners); });
}

void score_lof(void* engine, const plugin::HostCalls* host, const plugin::Search* search, plugin::Outliers* task,
               plugin::Counters* counters, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    score_outliers(session_of(engine), host_of(host), search, *task, *counters);
  });
}

void lof_bytes(void* engine, const plugin::Outliers* task, std::uint64_t* bytes, plugin::Status* status) {
  guarded(status, [&] { *bytes = outlier_bytes(session_of(engine), *task); });
}

void fill_missing(void* engine, const plugin::HostCalls* host, const plugin::DonorSearch* task,
                  plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    find_donors(session_of(engine), host_of(host), *task);
  });
}

void fill_bytes(void* engine, const plugin::DonorSearch* task, plugin::DonorRoom* room, plugin::Status* status) {
  guarded(status, [&] { *room = donor_bytes(session_of(engine), *task); });
}

void label(void* engine, const plugin::HostCalls* host, plugin::Bipartite* task, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    label_members(session_of(engine), host_of(host), *task);
  });
}

void label_bytes(void* engine, const plugin::Bipartite* task, std::uint64_t* bytes, plugin::Status* status) {
  guarded(status, [&] { *bytes = graph_bytes(session_of(engine), *task); });
}

void join_polygons(void* engine, const plugin::HostCalls* host, plugin::OverlapJoin* task, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    join_layers(session_of(engine), host_of(host), *task);
  });
}

void embedding_bytes(void* engine, const plugin::LleTask* task, std::uint64_t* bytes, plugin::Status* status) {
  guarded(status, [&] { *bytes = lle_bytes(session_of(engine), *task); });
}

std::int64_t embedding_widest(void* engine) {
  return lle_widest(session_of(engine));
}

void embed(void* engine, const plugin::HostCalls* host, plugin::LleTask* task, void** lle, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    *lle = std::make_unique<LleSession>(session_of(engine), host_of(host), *task).release();
  });
}

void release_embedding(void* lle) {
  const CurrentDevice current(static_cast<LleSession*>(lle)->session().engine.device);
  delete static_cast<LleSession*>(lle);
}

/// Runs work(embedding) on its device.
template <class Work>
void with_embedding(void* lle, plugin::Status* status, Work work) noexcept {
  guarded(status, [&] {
    auto& made = *static_cast<LleSession*>(lle);
    const CurrentDevice current(made.session().engine.device);
    work(made);
  });
}

void take_piece(void* lle, plugin::LleTaken* piece, plugin::Status* status) {
  with_embedding(lle, status, [&](LleSession& made) { made.take(*piece); });
}

void fetch_piece(void* lle, const plugin::LleBlocks* blocks, plugin::Status* status) {
  with_embedding(lle, status, [&](LleSession& made) { made.fetch(*blocks); });
}

void dissect_piece(void* lle, const plugin::HostCalls* host, plugin::LleParts* parts, plugin::Status* status) {
  with_embedding(lle, status, [&](LleSession& made) { made.dissect(host_of(host), *parts); });
}

void factor_piece(void* lle, const plugin::HostCalls* host, plugin::LleFactor* task, plugin::Status* status) {
  with_embedding(lle, status, [&](LleSession& made) { made.factor(host_of(host), *task); });
}

void step_piece(void* lle, const plugin::HostCalls* host, const plugin::LleStep* step, plugin::Status* status) {
  with_embedding(lle, status, [&](LleSession& made) { made.step(host_of(host), *step); });
}

void begin_krylov(void* engine, const plugin::KrylovTask* task, void** space, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    *space = std::make_unique<DeviceKrylov>(session_of(engine), *task).release();
  });
}

void release_krylov(void* space) {
  const CurrentDevice current(static_cast<DeviceKrylov*>(space)->session().engine.device);
  delete static_cast<DeviceKrylov*>(space);
}

void step_krylov(void* space, const plugin::HostCalls* host, const plugin::KrylovStep* step, plugin::Status* status) {
  guarded(status, [&] {
    auto& made = *static_cast<DeviceKrylov*>(space);
    const CurrentDevice current(made.session().engine.device);
    made.step(host_of(host), *step);
  });
}

void sparse_product(void* engine, const plugin::HostCalls* host, plugin::SpmvTask* task, plugin::Status* status) {
  guarded(status, [&] {
    const CurrentDevice current(session_of(engine).engine.device);
    time_spmv(session_of(engine), host_of(host), *task);
  });
}

}  // namespace
}  // namespace vicinal::cuda

extern "C" __attribute__((visibility("default"))) const vicinal::plugin::Functions* vicinal_cuda_plugin() {
  static const vicinal::plugin::Functions kFunctions = [] {
    vicinal::plugin::Functions functions;
    functions.architectures = VICINAL_CUDA_ARCHITECTURES;
    functions.runtime_version = CUDART_VERSION;
    functions.open = vicinal::cuda::open;
    functions.close = vicinal::cuda::close;
    functions.prepare = vicinal::cuda::prepare;
    functions.upload = vicinal::cuda::upload;
    functions.release = vicinal::cuda::release;
    functions.fits = vicinal::cuda::fits;
    functions.fused_serves = vicinal::cuda::serves;
    functions.plan = vicinal::cuda::plan;
    functions.nearest = vicinal::cuda::search;
    functions.tree_serves = vicinal::cuda::serves_in_tree;
    functions.build_tree = vicinal::cuda::make_tree;
    functions.tree_order = vicinal::cuda::order_of_tree;
    functions.release_tree = vicinal::cuda::release_tree;
    functions.cluster_screens = vicinal::cuda::cluster_screens;
    functions.cluster_bytes = vicinal::cuda::cluster_bytes;
    functions.cluster = vicinal::cuda::cluster;
    functions.release_clustering = vicinal::cuda::release_clustering;
    functions.cluster_start = vicinal::cuda::cluster_start;
    functions.cluster_recentre = vicinal::cuda::cluster_recentre;
    functions.cluster_step = vicinal::cuda::cluster_step;
    functions.cluster_move = vicinal::cuda::cluster_move;
    functions.cluster_state = vicinal::cuda::cluster_state;
    functions.cluster_rows = vicinal::cuda::cluster_rows;
    functions.seeds = vicinal::cuda::seeds;
    functions.seed = vicinal::cuda::seed;
    functions.seed_draw = vicinal::cuda::seed_draw;
    functions.seed_choose = vicinal::cuda::seed_choose;
    functions.seed_meet = vicinal::cuda::seed_meet;
    functions.seed_state = vicinal::cuda::seed_state;
    functions.lof = vicinal::cuda::score_lof;
    functions.lof_bytes = vicinal::cuda::lof_bytes;
    functions.find_donors = vicinal::cuda::fill_missing;
    functions.donor_bytes = vicinal::cuda::fill_bytes;
    functions.label = vicinal::cuda::label;
    functions.label_bytes = vicinal::cuda::label_bytes;
    functions.join_polygons = vicinal::cuda::join_polygons;
    functions.lle_bytes = vicinal::cuda::embedding_bytes;
    functions.lle_widest = vicinal::cuda::embedding_widest;
    functions.lle = vicinal::cuda::embed;
    functions.release_lle = vicinal::cuda::release_embedding;
    functions.lle_take = vicinal::cuda::take_piece;
    functions.lle_fetch = vicinal::cuda::fetch_piece;
    functions.lle_dissect = vicinal::cuda::dissect_piece;
    functions.lle_factor = vicinal::cuda::factor_piece;
    functions.lle_step = vicinal::cuda::step_piece;
    functions.krylov = vicinal::cuda::begin_krylov;
    functions.release_krylov = vicinal::cuda::release_krylov;
    functions.krylov_step = vicinal::cuda::step_krylov;
    functions.spmv = vicinal::cuda::sparse_product;
    return functions;
  }();
  return &kFunctions;
}
