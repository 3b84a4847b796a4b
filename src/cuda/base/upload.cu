// Rows to the device: by reference, by one strided copy, by a gather on the device, or through pinned buffers.
#include <algorithm>
#include <string>

#include "cuda/base/session.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kLongestPitch = std::int64_t{1} << 31;  // of a strided copy

/// Strided rows to contiguous ones; only the element's size matters.
template <class Word>
__global__ void gather_rows(const Word* from, std::int64_t count, std::int64_t cols, std::int64_t row_stride,
                            std::int64_t col_stride, Word* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = own_number(); i < count * cols; i += step) {
    to[i] = from[i / cols * row_stride + i % cols * col_stride];
  }
}

template <class Word>
void gather(const plugin::Table& table, std::int64_t begin, std::int64_t count, void* to, cudaStream_t stream) {
  const auto* from = static_cast<const Word*>(table.data) + begin * table.row_stride;
  const unsigned blocks = static_cast<unsigned>(std::min<std::int64_t>((count * table.cols + 255) / 256, 1 << 16));
  gather_rows<<<blocks, 256, 0, stream>>>(from, count, table.cols, table.row_stride, table.col_stride,
                                          static_cast<Word*>(to));
  check_launch("gather rows");
}

}  // namespace

Staging::~Staging() {
  for (const Slot& slot : slots_) {
    if (slot.copied != nullptr) {
      static_cast<void>(cudaEventSynchronize(slot.copied));
      static_cast<void>(cudaEventDestroy(slot.copied));
    }
    if (slot.data != nullptr) static_cast<void>(cudaFreeHost(slot.data));
  }
}

std::byte* Staging::next(std::size_t bytes) {
  Slot& slot = slots_[turn_];
  if (slot.copied == nullptr) {
    check(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming), "create an event");
  } else {
    check(cudaEventSynchronize(slot.copied), "copy rows to the device");
  }
  if (slot.bytes < bytes) {
    if (slot.data != nullptr) check(cudaFreeHost(slot.data), "free pinned memory");
    slot.data = nullptr;
    slot.bytes = 0;
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "allocate pinned memory");
    slot.data = static_cast<std::byte*>(data);
    slot.bytes = bytes;
  }
  return slot.data;
}

void Staging::in_flight(cudaStream_t stream) {
  check(cudaEventRecord(slots_[turn_].copied, stream), "record an event");
  turn_ = 1 - turn_;
}

Notes::~Notes() {
  if (data_ != nullptr) static_cast<void>(cudaFreeHost(data_));
}

std::int64_t* Notes::data() {
  if (data_ == nullptr) {
    void* data = nullptr;
    check(cudaHostAlloc(&data, kCount * sizeof(std::int64_t), cudaHostAllocDefault), "allocate pinned memory");
    data_ = static_cast<std::int64_t*>(data);
  }
  return data_;
}

bool lies_ready(const Engine& engine, const plugin::Table& table, const char* name) {
  if (static_cast<Memory>(table.memory) != Memory::cuda) return false;
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, table.data), "look at a pointer");
  const bool device = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  if (!device || (attributes.type == cudaMemoryTypeDevice && attributes.device != engine.device)) {
    throw Failure{ErrorCode::invalid_argument, std::string(name) + ": is said to lie in the memory of cuda:" +
                                                   std::to_string(engine.device) + ", but its pointer leads elsewhere"};
  }
  return (table.col_stride == 1 || table.cols == 1) && (table.row_stride == table.cols || table.rows == 1);
}

void upload_rows(Session& session, const plugin::Table& table, std::int64_t begin, std::int64_t end, void* to,
                 cudaStream_t stream) {
  const std::int64_t bytes = row_bytes(table);
  const std::int64_t count = end - begin;
  const auto memory = static_cast<Memory>(table.memory);
  const std::int64_t element = size_of(static_cast<DType>(table.dtype));
  const auto* data = static_cast<const std::byte*>(table.data);
  const bool rows_whole = table.data != nullptr && table.col_stride == 1 && table.row_stride >= table.cols;
  if (memory != Memory::host && rows_whole && (table.row_stride == table.cols || count == 1)) {
    check(cudaMemcpyAsync(to, data + begin * table.row_stride * element, static_cast<std::size_t>(count * bytes),
                          cudaMemcpyDefault, stream),
          "copy rows to the device");
    return;
  }
  if (memory != Memory::host && rows_whole && table.row_stride * element < kLongestPitch) {
    check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(bytes), data + begin * table.row_stride * element,
                            static_cast<std::size_t>(table.row_stride * element), static_cast<std::size_t>(bytes),
                            static_cast<std::size_t>(count), cudaMemcpyDefault, stream),
          "copy rows to the device");
    return;
  }
  if (memory == Memory::cuda) {
    switch (element) {
      case 1:
        return gather<std::uint8_t>(table, begin, count, to, stream);
      case 2:
        return gather<std::uint16_t>(table, begin, count, to, stream);
      case 4:
        return gather<std::uint32_t>(table, begin, count, to, stream);
      default:
        return gather<std::uint64_t>(table, begin, count, to, stream);
    }
  }
  const std::int64_t step = std::clamp<std::int64_t>(plugin::kStagingBytes / bytes, 1, count);
  for (std::int64_t first = begin; first < end; first += step) {
    const std::int64_t last = std::min(end, first + step);
    std::byte* const staged = session.staging.next(static_cast<std::size_t>(step * bytes));
    if (table.fill(table.source, first, last, staged) != 0) throw HostFailure{};
    check(cudaMemcpyAsync(static_cast<std::byte*>(to) + (first - begin) * bytes, staged,
                          static_cast<std::size_t>((last - first) * bytes), cudaMemcpyHostToDevice, stream),
          "copy rows to the device");
    session.staging.in_flight(stream);
  }
}

}  // namespace vicinal::cuda
