// Loading of cuSPARSE and the one call that is made of it. Its interface is declared here as its manual has it, so that
// building needs no header of it.
#include <dlfcn.h>

#include <string>

#include "cuda/lle/krylov/cusparse.hpp"

namespace vicinal::cuda::lle::papers {
namespace {

using SparseHandle = void*;
constexpr int kSparseFloat64 = 1;    // CUDA_R_64F
constexpr int kSparseIndex32 = 2;    // CUSPARSE_INDEX_32I
constexpr int kSparseFromZero = 0;   // CUSPARSE_INDEX_BASE_ZERO
constexpr int kSparseAsItIs = 0;     // CUSPARSE_OPERATION_NON_TRANSPOSE
constexpr int kSparseAlgorithm = 0;  // CUSPARSE_SPMV_ALG_DEFAULT
constexpr int kNarrowThreads = 256;

class SparseLibrary {
 public:
  SparseLibrary() {
    // Its number is one less than the toolkit's since CUDA 13, where it was the same before.
    std::string names;
    void* library = nullptr;
    for (const int number : {CUDART_VERSION / 1000, CUDART_VERSION / 1000 - 1}) {
      const std::string name = "libcusparse.so." + std::to_string(number);
      names += (names.empty() ? "" : " or ") + name;
      library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
    if (library == nullptr) {
      throw Failure{ErrorCode::device_unavailable, "method: library needs " + names + ", which is not there"};
    }
    find_in(library, "cusparseCreate", create);
    find_in(library, "cusparseDestroy", destroy);
    find_in(library, "cusparseSetStream", set_stream);
    find_in(library, "cusparseCreateCsr", create_csr);
    find_in(library, "cusparseDestroySpMat", destroy_matrix);
    find_in(library, "cusparseCreateDnVec", create_vector);
    find_in(library, "cusparseDestroyDnVec", destroy_vector);
    find_in(library, "cusparseSpMV_bufferSize", buffer_size);
    find_in(library, "cusparseSpMV", spmv);
  }

  int (*create)(SparseHandle*) = nullptr;
  int (*destroy)(SparseHandle) = nullptr;
  int (*set_stream)(SparseHandle, cudaStream_t) = nullptr;
  int (*create_csr)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int,
                    int) = nullptr;
  int (*destroy_matrix)(void*) = nullptr;
  int (*create_vector)(void**, std::int64_t, void*, int) = nullptr;
  int (*destroy_vector)(void*) = nullptr;
  int (*buffer_size)(SparseHandle, int, const void*, void*, void*, const void*, void*, int, int,
                     std::size_t*) = nullptr;
  int (*spmv)(SparseHandle, int, const void*, void*, void*, const void*, void*, int, int, void*) = nullptr;

 private:
  template <class Function>
  static void find_in(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) {
      throw Failure{ErrorCode::device_unavailable, std::string("method: cuSPARSE has no ") + name};
    }
  }
};

const SparseLibrary& sparse_library() {
  static const SparseLibrary kSparseLibrary;
  return kSparseLibrary;
}

void check_sparse(int status, const char* what) {
  if (status != 0) {
    throw Failure{ErrorCode::internal, std::string("cuSPARSE: ") + what + ": status " + std::to_string(status)};
  }
}

__global__ void narrow_kernel(const std::int64_t* from, std::int64_t count, std::int32_t* to) {
  const std::int64_t i = own_number();
  if (i < count) to[i] = static_cast<std::int32_t>(from[i]);
}

}  // namespace

struct LibraryProduct::State {
  SparseHandle handle = nullptr;
  void* matrix = nullptr;
  void* from = nullptr;
  void* to = nullptr;
  Buffer<std::int32_t> first;
  Buffer<std::byte> room;

  ~State() {
    if (from != nullptr) static_cast<void>(sparse_library().destroy_vector(from));
    if (to != nullptr) static_cast<void>(sparse_library().destroy_vector(to));
    if (matrix != nullptr) static_cast<void>(sparse_library().destroy_matrix(matrix));
    if (handle != nullptr) static_cast<void>(sparse_library().destroy(handle));
  }
};

LibraryProduct::LibraryProduct(const Engine& engine, const DeviceCsr& a, const double* x, double* y)
    : state_(std::make_unique<State>()) {
  if (a.index.size() > INT32_MAX) {
    throw Failure{ErrorCode::invalid_argument, "method: library takes fewer than 2^31 entries"};
  }
  const SparseLibrary& library = sparse_library();
  State& state = *state_;
  state.first = Buffer<std::int32_t>(engine, a.rows + 1);
  narrow_kernel<<<blocks_for(a.rows + 1, kNarrowThreads), kNarrowThreads, 0, engine.stream>>>(
      a.first.data(), a.rows + 1, state.first.data());
  check_launch("offsets of 32 bits");
  check_sparse(library.create(&state.handle), "create");
  check_sparse(library.set_stream(state.handle, engine.stream), "set the stream");
  check_sparse(library.create_csr(&state.matrix, a.rows, a.cols, a.index.size(), state.first.data(), a.index.data(),
                                  a.values.data(), kSparseIndex32, kSparseIndex32, kSparseFromZero, kSparseFloat64),
               "create a matrix");
  check_sparse(library.create_vector(&state.from, a.cols, const_cast<double*>(x), kSparseFloat64), "create a vector");
  check_sparse(library.create_vector(&state.to, a.rows, y, kSparseFloat64), "create a vector");
  const double one = 1;
  const double none = 0;
  std::size_t bytes = 0;
  check_sparse(library.buffer_size(state.handle, kSparseAsItIs, &one, state.matrix, state.from, &none, state.to,
                                   kSparseFloat64, kSparseAlgorithm, &bytes),
               "ask for its room");
  state.room = Buffer<std::byte>(engine, static_cast<std::int64_t>(bytes));
}

LibraryProduct::~LibraryProduct() = default;

void LibraryProduct::run() const {
  const double one = 1;
  const double none = 0;
  check_sparse(sparse_library().spmv(state_->handle, kSparseAsItIs, &one, state_->matrix, state_->from, &none,
                                     state_->to, kSparseFloat64, kSparseAlgorithm, state_->room.data()),
               "multiply");
}

}  // namespace vicinal::cuda::lle::papers
