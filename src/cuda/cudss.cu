// See cudss.hpp. The few functions and numbers of its C interface that are used are written out here, so that neither
// building nor loading the plug-in needs the package.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cuda/cudss.hpp"
namespace vicinal::cuda {
namespace {

constexpr const char* kFile = "libcudss.so.1";
constexpr const char* kThreadsFile = "libcudss_mtlayer_gomp.so.1";
constexpr const char* kVariable = "VICINAL_CUDSS";
constexpr int kMajor = 1;  // of the interface below

// Numbers of cuDSS's enums.
enum ConfigNumber { kPivotType = 7, kPivotEpsilon = 9, kDeterministic = 24 };
enum DataNumber { kEntries = 1, kChangedPivots = 2, kInertia = 3, kPermutation = 9, kEstimates = 13, kInterrupt = 23 };
enum PhaseNumber { kReorder = 1 << 0, kSymbolic = 1 << 1, kFactorize = 1 << 2, kSolve = 0x3f << 4 };
enum TypeNumber { kSymmetric = 1, kPositive = 3 };
constexpr int kUpper = 2;
constexpr int kZeroBased = 0;
constexpr int kByColumns = 0;
constexpr int kNoPivoting = 1;
constexpr int kAllocationFailed = 2;
constexpr int kNameLength = 64;

struct MemoryHandler {
  void* context;
  int (*allocate)(void* context, void** data, std::size_t size, cudaStream_t stream);
  int (*release)(void* context, void* data, std::size_t size, cudaStream_t stream);
  char name[kNameLength];
};

/// Its functions; a handle, a configuration, data and matrices are pointers to what it keeps to itself.
struct Cudss {
  int (*property)(int what, int* value) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, cudaStream_t stream) = nullptr;
  int (*set_threads)(void* handle, const char* file) = nullptr;
  int (*set_memory)(void* handle, const MemoryHandler* handler) = nullptr;
  int (*config_create)(void** config) = nullptr;
  int (*config_destroy)(void* config) = nullptr;
  int (*config_set)(void* config, int parameter, const void* value, std::size_t bytes) = nullptr;
  int (*data_create)(void* handle, void** data) = nullptr;
  int (*data_destroy)(void* handle, void* data) = nullptr;
  int (*data_set)(void* handle, void* data, int parameter, const void* value, std::size_t bytes) = nullptr;
  int (*data_get)(void* handle, void* data, int parameter, void* value, std::size_t bytes,
                  std::size_t* written) = nullptr;
  int (*dense)(void** matrix, std::int64_t rows, std::int64_t cols, std::int64_t stride, const void* values, int type,
               int layout) = nullptr;
  int (*sparse)(void** matrix, std::int64_t rows, std::int64_t cols, std::int64_t entries, const void* begin,
                const void* end, const void* columns, const void* values, int offset_type, int index_type,
                int value_type, int type, int view, int base) = nullptr;
  int (*matrix_destroy)(void* matrix) = nullptr;
  int (*execute)(void* handle, int phase, void* config, void* data, void* matrix, void* x, void* b) = nullptr;
  std::string threads_file;  ///< of its host threads; empty: there is none
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool fill(void* library, Cudss& to) {
  return find(library, "cudssGetProperty", to.property) && find(library, "cudssCreate", to.create) &&
         find(library, "cudssDestroy", to.destroy) && find(library, "cudssSetStream", to.set_stream) &&
         find(library, "cudssSetThreadingLayer", to.set_threads) &&
         find(library, "cudssSetDeviceMemHandler", to.set_memory) &&
         find(library, "cudssConfigCreate", to.config_create) &&
         find(library, "cudssConfigDestroy", to.config_destroy) && find(library, "cudssConfigSet", to.config_set) &&
         find(library, "cudssDataCreate", to.data_create) && find(library, "cudssDataDestroy", to.data_destroy) &&
         find(library, "cudssDataSet", to.data_set) && find(library, "cudssDataGet", to.data_get) &&
         find(library, "cudssMatrixCreateDn", to.dense) && find(library, "cudssMatrixCreateCsr", to.sparse) &&
         find(library, "cudssMatrixDestroy", to.matrix_destroy) && find(library, "cudssExecute", to.execute);
}

[[noreturn]] void unavailable(const std::string& why) {
  throw Failure{ErrorCode::device_unavailable,
                "lle: the direct solver on a device needs cuDSS 1, and " + why +
                    " (package nvidia-cudss-cu13, or VICINAL_CUDSS names its libcudss.so.1); solver cpu needs none"};
}

/// What the environment names, and nothing else; without that beside the plug-in, where packages of Python have it, and
/// wherever the system looks.
std::vector<std::string> candidates() {
  const char* const named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> found;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&candidates), &self) != 0 && self.dli_fname != nullptr) {
    const std::filesystem::path folder = std::filesystem::path(self.dli_fname).parent_path();
    found.push_back((folder / kFile).string());
    found.push_back((folder.parent_path() / "nvidia" / "cu13" / "lib" / kFile).string());
  }
  found.emplace_back(kFile);
  return found;
}

Cudss load() {
  std::string why;
  for (const std::string& path : candidates()) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const text = dlerror();
      why = text != nullptr ? text : path + " cannot be loaded";
      continue;
    }
    Cudss cudss;
    int major = 0;
    if (!fill(library, cudss) || cudss.property(0, &major) != 0 || major != kMajor) {
      unavailable(path + " is of another version");
    }
    const std::filesystem::path threads = std::filesystem::path(path).parent_path() / kThreadsFile;
    if (std::filesystem::exists(threads)) cudss.threads_file = threads.string();
    return cudss;
  }
  unavailable(why);
}

const Cudss& cudss() {
  static const Cudss kCudss = load();  // an exception leaves it to the next call; never unloaded
  return kCudss;
}

void require(int status, const char* what) {
  if (status == 0) return;
  static_cast<void>(cudaGetLastError());
  throw Failure{status == kAllocationFailed ? ErrorCode::over_memory : ErrorCode::internal,
                std::string("cuDSS: ") + what + ": status " + std::to_string(status)};
}

int allocate(void* context, void** data, std::size_t size, cudaStream_t stream) {
  const auto& engine = *static_cast<const Engine*>(context);
  return cudaMallocFromPoolAsync(data, size, engine.pool, stream) == cudaSuccess ? 0 : 1;
}

int release(void* /*context*/, void* data, std::size_t /*size*/, cudaStream_t stream) {
  return cudaFreeAsync(data, stream) == cudaSuccess ? 0 : 1;
}

/// Sets a flag within milliseconds of a cancel, from a thread of its own.
class Watch {
 public:
  Watch(const Host& host, std::atomic<std::int32_t>& flag)
      : thread_([this, &host, &flag] {
          while (!stopped_.load(std::memory_order_relaxed)) {
            if (host.cancelled != nullptr && host.cancelled(host.user) != 0) flag.store(1, std::memory_order_relaxed);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}
  ~Watch() {
    stopped_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace

struct SparseFactor::Parts {
  void* handle = nullptr;
  void* config = nullptr;
  void* data = nullptr;
  void* matrix = nullptr;
  MemoryHandler memory{};
  std::atomic<std::int32_t> interrupt{0};

  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    const Cudss& c = cudss();
    if (matrix != nullptr) c.matrix_destroy(matrix);
    if (data != nullptr) c.data_destroy(handle, data);
    if (config != nullptr) c.config_destroy(config);
    if (handle != nullptr) c.destroy(handle);
  }

  void set(ConfigNumber number, int value) const {
    require(cudss().config_set(config, number, &value, sizeof(value)), "set it up");
  }
  template <class Number>
  void get(DataNumber what, Number* to, std::size_t count) const {
    std::size_t written = 0;
    require(cudss().data_get(handle, data, what, to, count * sizeof(Number), &written), "ask for facts");
  }
};

void require_cudss() {
  static_cast<void>(cudss());
}

SparseFactor::SparseFactor(const Engine& engine, const Host& host, const SymmetricMatrix& matrix, Definite definite)
    : engine_(engine), host_(host), parts_(std::make_unique<Parts>()), n_(matrix.n) {
  const Cudss& c = cudss();
  Parts& p = *parts_;
  require(c.create(&p.handle), "start");
  require(c.set_stream(p.handle, engine.stream), "take a stream");
  if (!c.threads_file.empty()) static_cast<void>(c.set_threads(p.handle, c.threads_file.c_str()));
  p.memory = {const_cast<Engine*>(&engine), allocate, release, "vicinal"};
  require(c.set_memory(p.handle, &p.memory), "take memory");
  require(c.config_create(&p.config), "set it up");
  p.set(kDeterministic, 1);
  if (definite == Definite::unknown) {
    p.set(kPivotType, kNoPivoting);
    const double none = 0;
    require(c.config_set(p.config, kPivotEpsilon, &none, sizeof(none)), "set it up");
  }
  require(c.data_create(p.handle, &p.data), "set it up");
  require(c.data_set(p.handle, p.data, kInterrupt, &p.interrupt, sizeof(std::int32_t)), "set it up");
  // The matrix is numbered in the order of elimination already.
  std::vector<std::int32_t> order(static_cast<std::size_t>(matrix.n));
  for (std::int64_t i = 0; i < matrix.n; ++i) order[i] = static_cast<std::int32_t>(i);
  require(c.data_set(p.handle, p.data, kPermutation, order.data(), order.size() * sizeof(std::int32_t)),
          "take an ordering");
  require(c.sparse(&p.matrix, matrix.n, matrix.n, matrix.entries, matrix.first.data(), nullptr, matrix.cols.data(),
                   matrix.values.data(), CUDA_R_64I, CUDA_R_32I, CUDA_R_64F,
                   definite == Definite::positive ? kPositive : kSymmetric, kUpper, kZeroBased),
          "take a matrix");
  execute(kReorder, nullptr, nullptr, "reorder");
  execute(kSymbolic, nullptr, nullptr, "find the factor's shape");
  p.get(kEntries, &fill_, 1);
  std::int64_t estimates[16] = {};
  p.get(kEstimates, estimates, 16);
  bytes_ = static_cast<std::uint64_t>(estimates[1]);  // the most of device memory
  std::uint64_t used = 0;
  check(cudaMemPoolGetAttribute(engine.pool, cudaMemPoolAttrUsedMemCurrent, &used), "ask for memory in use");
  const std::uint64_t left = engine.memory_limit - std::min(engine.memory_limit, used);
  if (bytes_ > left) {
    throw Failure{ErrorCode::over_memory, "lle: the factor needs " + std::to_string(bytes_) +
                                              " bytes of device memory, but " + std::to_string(left) +
                                              " are left within the limit"};
  }
}

SparseFactor::~SparseFactor() = default;

void SparseFactor::execute(int phase, void* x, void* b, const char* what) {
  host_.check_cancelled();
  Parts& p = *parts_;
  int status = 0;
  {
    const Watch watch(host_, p.interrupt);
    status = cudss().execute(p.handle, phase, p.config, p.data, p.matrix, x, b);
    if (status == 0) engine_.synchronize();
  }
  host_.check_cancelled();
  require(status, what);
}

void SparseFactor::factor() {
  execute(kFactorize, nullptr, nullptr, "factor");
}

void SparseFactor::solve(const double* b, double* x, std::int64_t width) {
  struct Dense {
    void* matrix = nullptr;
    Dense(std::int64_t n, const double* values) {
      require(cudss().dense(&matrix, n, 1, n, values, CUDA_R_64F, kByColumns), "take vectors");
    }
    ~Dense() { cudss().matrix_destroy(matrix); }
    Dense(const Dense&) = delete;
    Dense& operator=(const Dense&) = delete;
  };
  // In its deterministic mode it takes one right side at a time.
  for (std::int64_t c = 0; c < width; ++c) {
    const Dense right(n_, b + c * n_);
    const Dense left(n_, x + c * n_);
    execute(kSolve, left.matrix, right.matrix, "solve");
  }
}

std::int64_t SparseFactor::negative() const {
  std::int32_t changed = 0;
  parts_->get(kChangedPivots, &changed, 1);
  std::int32_t signs[2] = {};  // positive, negative
  parts_->get(kInertia, signs, 2);
  return changed != 0 ? -1 : signs[1];
}

}  // namespace vicinal::cuda
