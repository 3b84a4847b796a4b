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
#include <type_traits>
#include <utility>

#include "cuda/base/session.hpp"
#include "cuda/density/dbscan.hpp"
#include "cuda/density/spanning_tree.hpp"
#include "cuda/graph/graphs.hpp"
#include "cuda/kmeans/clustering.hpp"
#include "cuda/kmeans/room.hpp"
#include "cuda/lle/krylov/krylov.hpp"
#include "cuda/lle/session.hpp"
#include "cuda/lof/lof.hpp"
#include "cuda/nearest/donors.hpp"
#include "cuda/nearest/few.hpp"
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

/// How an argument crosses the border: a reference as a pointer, numbers and pointers as they are.
template <class T>
struct Argument {
  using Wire = T;
  static T taken(T value) { return value; }
};
template <class T>
struct Argument<T&> {
  using Wire = T*;
  static T& taken(T* pointer) { return *pointer; }
};
template <>
struct Argument<const Host&> {
  using Wire = const plugin::HostCalls*;
  static Host taken(const plugin::HostCalls* host) { return {host->user, host->cancelled, host->report}; }
};
template <>
struct Argument<const Resident&> {
  using Wire = const void*;
  static const Resident& taken(const void* resident) { return *static_cast<const Resident*>(resident); }
};

/// And a result: through a pointer; an object as a handle of its own.
template <class T>
struct Result {
  using Wire = T*;
  static void give(T value, T* to) { *to = value; }
};
template <class T>
struct Result<T*> {
  using Wire = void**;
  static void give(T* object, void** to) { *to = object; }
};
template <class T>
struct Result<std::unique_ptr<T>> {
  using Wire = void**;
  static void give(std::unique_ptr<T> object, void** to) { *to = object.release(); }
};

/// Of what stands behind a handle.
template <class Object>
const Session& session_of(const Object& object) {
  if constexpr (std::is_same_v<Object, Session>) {
    return object;
  } else if constexpr (requires { object.session(); }) {
    return object.session();
  } else {
    return *object.session;
  }
}

/// Waits until the device reads and writes nothing more of what a call that failed was lent: after an error memory is
/// the caller's again.
void wait_for_all(const Session& session) noexcept {
  static_cast<void>(cudaStreamSynchronize(session.engine.stream));
  static_cast<void>(cudaStreamSynchronize(session.copies));
  static_cast<void>(cudaGetLastError());
}

/// Runs work(object) on the object's device.
template <class Object, class Handle, class Work>
void with_object(Handle* handle, plugin::Status* status, Work work) noexcept {
  guarded(status, [&] {
    auto& object = *static_cast<Object*>(handle);
    const Session& session = session_of(object);
    const CurrentDevice current(session.engine.device);
    try {
      work(object);
    } catch (...) {
      wait_for_all(session);
      throw;
    }
  });
}

/// Of a function or of a method. (std::invoke is constexpr, and nvcc would compile it for the device, too.)
template <auto kCall, class Object, class... Arguments>
decltype(auto) called(Object& object, Arguments&&... arguments) {
  if constexpr (std::is_member_pointer_v<decltype(kCall)>) {
    return (object.*kCall)(std::forward<Arguments>(arguments)...);
  } else {
    return kCall(object, std::forward<Arguments>(arguments)...);
  }
}

/// `kCall`, of an object and arguments, as a function of the border: of a handle and the arguments' wires, and of where
/// the result, if there is one, and the status go.
template <auto kCall, class Returned, class Object, class... Arguments>
struct Entry {
  static void call(void* handle, typename Argument<Arguments>::Wire... arguments,
                   typename Result<Returned>::Wire result, plugin::Status* status) noexcept {
    with_object<Object>(handle, status, [&](Object& object) {
      Result<Returned>::give(called<kCall>(object, Argument<Arguments>::taken(arguments)...), result);
    });
  }
};
template <auto kCall, class Object, class... Arguments>
struct Entry<kCall, void, Object, Arguments...> {
  static void call(void* handle, typename Argument<Arguments>::Wire... arguments, plugin::Status* status) noexcept {
    with_object<Object>(handle, status,
                        [&](Object& object) { called<kCall>(object, Argument<Arguments>::taken(arguments)...); });
  }
};
template <auto kCall, class Returned, class Object, class... Arguments>
constexpr auto entry_of(Returned (* /*call*/)(Object&, Arguments...)) {
  return &Entry<kCall, Returned, Object, Arguments...>::call;
}
template <auto kCall, class Returned, class Object, class... Arguments>
constexpr auto entry_of(Returned (Object::* /*call*/)(Arguments...)) {
  return &Entry<kCall, Returned, Object, Arguments...>::call;
}
template <auto kCall, class Returned, class Object, class... Arguments>
constexpr auto entry_of(Returned (Object::* /*call*/)(Arguments...) const) {
  return &Entry<kCall, Returned, const Object, Arguments...>::call;
}
template <auto kCall>
constexpr auto entry = entry_of<kCall>(kCall);

/// A new object behind a handle.
template <class Object, class... Arguments>
std::unique_ptr<Object> make(Session& session, Arguments... arguments) {
  return std::make_unique<Object>(session, arguments...);
}

/// Deletes what a handle stands for, on its device.
template <class Object>
void release(void* handle) {
  auto* const object = static_cast<Object*>(handle);
  const CurrentDevice current(session_of(*object).engine.device);
  delete object;
}
/// The same of what the session counts among what stays on the device.
template <class Object>
void release_resident(void* handle) {
  const auto* const object = static_cast<const Object*>(handle);
  object->session->resident_bytes -= object->bytes;
  release<Object>(handle);
}

/// Where the device is older than, or unknown to, what the kernels were compiled for.
__global__ void probe_kernel() {}

/// What the kernels were compiled for that the device runs: of 7.5, where the driver compiles their PTX for 8.0, 75.
int required_architecture(int device, const cudaDeviceProp& properties) {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, probe_kernel) == cudaSuccess) return attributes.ptxVersion;
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
    const int compiled_for = required_architecture(options->device, properties);
    std::unique_ptr<Session, void (*)(Session*)> session(new Session, destroy);
    Engine& made = session->engine;
    made.device = options->device;
    made.multiprocessors = properties.multiProcessorCount;
    made.compute_capability = properties.major * 10 + properties.minor;
    made.compiled_for = compiled_for;
    made.shared_memory = properties.sharedMemPerBlockOptin;
    const char* const path = std::getenv("VICINAL_CUDA_PATH");
    made.portable = made.compiled_for != 90 || (path != nullptr && std::string_view(path) == "portable");
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
    facts->compiled_for = made.compiled_for;
    facts->multiprocessors = made.multiprocessors;
    facts->memory_limit = made.memory_limit;
    facts->matrix_instruction = made.portable ? "mma.sync" : "wgmma";
    facts->accumulation = made.sums.name;
    facts->largest_error = made.sums.error;
    *engine = session.release();
  });
}

void close(void* engine) {
  auto* const session = static_cast<Session*>(engine);
  const CurrentDevice current(session->engine.device);
  destroy(session);
}

Resident* upload(Session& session, const Host& /*host*/, const plugin::Table& table, const plugin::Preparation& facts) {
  return upload_table(session, table, facts.centre, facts.largest);
}

std::int32_t fits(void* engine, const plugin::Table* table) {
  return has_room(*static_cast<const Session*>(engine), copy_bytes(*table)) ? 1 : 0;
}

std::int32_t fused_serves(void* engine, const plugin::Search* search) {
  return can_fuse(*static_cast<const Session*>(engine), *search) ? 1 : 0;
}

std::int32_t few_multiply(void* engine, const plugin::Search* search) {
  const bool stays = search->resident != nullptr || search->stays != 0;
  const Rows table = {nullptr, static_cast<DType>(search->table.dtype), search->table.rows, search->table.cols};
  return stays && cuda::few_multiply(static_cast<const Session*>(engine)->engine, table, search->queries.rows) ? 1 : 0;
}

std::int32_t tree_serves(void* engine, const plugin::Search* search) {
  if (!cuda::tree_serves(*search)) return 0;
  return has_room_for_tree(*static_cast<const Session*>(engine), *search) ? 1 : -1;
}

void tree_order(const void* tree, std::int64_t* rows, plugin::Status* status) {
  with_object<const DeviceTree>(tree, status, [&](const DeviceTree& made) { fetch_order(made, rows); });
}

const char* cluster_screens(void* engine, const plugin::Clustering* task) {
  return clustering_screens(static_cast<const Session*>(engine)->engine, *task);
}

std::unique_ptr<Clustering> cluster(Session& session, const Host& host, const plugin::Clustering& task) {
  host.check_cancelled();
  return std::make_unique<Clustering>(session, host, task);
}

void cluster_parts(void* clustering, std::int64_t** parts, plugin::Status* status) {
  with_object<Clustering>(clustering, status, [&](Clustering& made) { made.parts(*parts); });
}

std::int32_t seeds(void* clustering, std::int64_t trials) {
  return static_cast<const Clustering*>(clustering)->seeds(trials) ? 1 : 0;
}

void seed_draw(Clustering& clustering, const double* draws, std::int64_t count, std::int64_t* rows) {
  clustering.seeding().draw(draws, count, rows);
}

void seed_choose(Clustering& clustering, const double* draws, std::int64_t trials, std::int64_t count,
                 std::int64_t* rows) {
  clustering.seeding().choose(draws, trials, count, rows);
}

void seed_state(Clustering& clustering, double& total, std::int32_t* winners) {
  total = clustering.seeding().state(winners);
}

std::int64_t widest(void* engine) {
  return lle_widest(*static_cast<const Session*>(engine));
}

plugin::Functions table_of_functions() {
  plugin::Functions functions;
  functions.architectures = VICINAL_CUDA_ARCHITECTURES;
  functions.runtime_version = CUDART_VERSION;
  functions.open = open;
  functions.close = close;
  functions.prepare = entry<prepare_table>;
  functions.upload = entry<upload>;
  functions.release = release_resident<Resident>;
  functions.fits = fits;
  functions.fused_serves = fused_serves;
  functions.few_multiply = few_multiply;
  functions.plan = entry<nearest_bytes>;
  functions.nearest = entry<nearest>;
  functions.tree_serves = tree_serves;
  functions.build_tree = entry<build_tree>;
  functions.tree_order = tree_order;
  functions.release_tree = release_resident<DeviceTree>;
  functions.cluster_screens = cluster_screens;
  functions.cluster_bytes = entry<clustering_room>;
  functions.cluster = entry<cluster>;
  functions.release_clustering = release<Clustering>;
  functions.cluster_start = entry<&Clustering::start>;
  functions.cluster_recentre = entry<&Clustering::recentre>;
  functions.cluster_step = entry<&Clustering::step>;
  functions.cluster_move = entry<&Clustering::move>;
  functions.cluster_state = entry<&Clustering::state>;
  functions.cluster_ranges = entry<&Clustering::ranges>;
  functions.cluster_share = entry<&Clustering::share>;
  functions.cluster_parts = cluster_parts;
  functions.cluster_means = entry<&Clustering::means_of>;
  functions.cluster_rows = entry<&Clustering::rows>;
  functions.seeds = seeds;
  functions.seed = entry<&Clustering::seed>;
  functions.seed_draw = entry<seed_draw>;
  functions.seed_choose = entry<seed_choose>;
  functions.seed_meet = entry<&Clustering::meet>;
  functions.seed_state = entry<seed_state>;
  functions.lof = entry<score_outliers>;
  functions.lof_bytes = entry<outlier_bytes>;
  functions.lof_rows =
      entry<make<OutlierRows, const Host&, const plugin::Search&, plugin::Outliers&, plugin::Counters&>>;
  functions.release_lof_rows = release<OutlierRows>;
  functions.lof_densities = entry<&OutlierRows::densities>;
  functions.lof_scores = entry<&OutlierRows::scores>;
  functions.spanning_tree = entry<span_table>;
  functions.spanning_bytes = entry<spanning_bytes>;
  functions.dbscan = entry<dbscan::find_clusters>;
  functions.dbscan_bytes = entry<dbscan::dbscan_bytes>;
  functions.find_donors = entry<find_donors>;
  functions.donor_bytes = entry<donor_bytes>;
  functions.label = entry<label_members>;
  functions.label_bytes = entry<graph_bytes>;
  functions.join_polygons = entry<join_layers>;
  functions.lle_bytes = entry<lle_bytes>;
  functions.lle_widest = widest;
  functions.lle = entry<make<LleSession, const Host&, plugin::LleTask&>>;
  functions.release_lle = release<LleSession>;
  functions.lle_take = entry<&LleSession::take>;
  functions.lle_fetch = entry<&LleSession::fetch>;
  functions.lle_dissect = entry<&LleSession::dissect>;
  functions.lle_factor = entry<&LleSession::factor>;
  functions.lle_step = entry<&LleSession::step>;
  functions.krylov = entry<make<DeviceKrylov, const plugin::KrylovTask&>>;
  functions.release_krylov = release<DeviceKrylov>;
  functions.krylov_step = entry<&DeviceKrylov::step>;
  functions.spmv = entry<time_spmv>;
  return functions;
}

}  // namespace
}  // namespace vicinal::cuda

extern "C" __attribute__((visibility("default"))) const vicinal::plugin::Functions* vicinal_cuda_plugin() {
  static const vicinal::plugin::Functions kFunctions = vicinal::cuda::table_of_functions();
  return &kFunctions;
}
