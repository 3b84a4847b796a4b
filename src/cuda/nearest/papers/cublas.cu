// Loading of cuBLAS and the one call that is made of it. Its interface is declared here as its manual has it, so that
// building needs no header of it either. One handle a device, made once and kept.
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>

#include "cuda/nearest/papers/cublas.hpp"

namespace vicinal::cuda::papers {
namespace {

using Handle = void*;
constexpr int kNoTranspose = 0;
constexpr int kTranspose = 1;
constexpr int kPedanticMath = 2;  // float32 stays float32: no TF32, no emulation

class Library {
 public:
  Library() {
    const std::string name = "libcublas.so." + std::to_string(CUDART_VERSION / 1000);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      throw Failure{ErrorCode::device_unavailable,
                    "method: a product of matrices needs " + name + ": " + (why != nullptr ? why : "not found")};
    }
    find(library, "cublasCreate_v2", create);
    find(library, "cublasSetStream_v2", set_stream);
    find(library, "cublasSetMathMode", set_math_mode);
    find(library, "cublasSgemm_v2", sgemm);
  }

  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, cudaStream_t) = nullptr;
  int (*set_math_mode)(Handle, int) = nullptr;
  int (*sgemm)(Handle, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
               float*, int) = nullptr;

 private:
  template <class Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) {
      throw Failure{ErrorCode::device_unavailable, std::string("method: cuBLAS has no ") + name};
    }
  }
};

const Library& library() {
  static const Library kLibrary;
  return kLibrary;
}

void check_status(int status, const char* what) {
  if (status != 0) {
    throw Failure{ErrorCode::internal, std::string("cuBLAS: ") + what + ": status " + std::to_string(status)};
  }
}

std::mutex handles_mutex;

// With the mutex held.
Handle handle_of(int device) {
  static std::map<int, Handle> handles;
  Handle& handle = handles[device];
  if (handle == nullptr) {
    check_status(library().create(&handle), "create");
    check_status(library().set_math_mode(handle, kPedanticMath), "set the math mode");
  }
  return handle;
}

}  // namespace

void require_products(const Engine& engine) {
  const std::lock_guard lock(handles_mutex);
  static_cast<void>(handle_of(engine.device));
}

void add_products(const Engine& engine, const float* x, std::int64_t m, const float* y, std::int64_t n, std::int64_t d,
                  float* c) {
  const std::lock_guard lock(handles_mutex);
  const Handle handle = handle_of(engine.device);
  check_status(library().set_stream(handle, engine.stream), "set the stream");
  const float one = 1;
  // cuBLAS counts by columns: its c is ours transposed.
  const auto rows = static_cast<int>(n);
  const auto queries = static_cast<int>(m);
  const auto columns = static_cast<int>(d);
  check_status(library().sgemm(handle, kTranspose, kNoTranspose, rows, queries, columns, &one, y, columns, x, columns,
                               &one, c, rows),
               "sgemm");
}

}  // namespace vicinal::cuda::papers
