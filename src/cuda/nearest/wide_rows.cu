// See wide_rows.hpp. Rows that are not on the device pass through in parts.
#include <algorithm>

#include "core/distance.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/wide_rows.hpp"

namespace vicinal::cuda {
namespace {

constexpr unsigned kMaxWidenBlocks = 1U << 20;
constexpr std::int64_t kUpload = std::int64_t{1} << 24;  // bytes of rows on their way

template <class T>
__global__ void widen_kernel(const T* from, std::int64_t count, double* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = own_number(); i < count; i += step) {
    to[i] = widen(from[i]);
  }
}

__global__ void normalize_kernel(double* rows, std::int64_t n, std::int64_t d, std::uint8_t* zero) {
  const std::int64_t i = own_number();
  if (i < n) zero[i] = core::normalize_row(rows + i * d, d, rows + i * d) ? 0 : 1;
}

}  // namespace

void widen_elements(const Engine& engine, const void* from, DType dtype, std::int64_t count, double* to) {
  with_elements(from, dtype, [&](const auto* elements) {
    widen_kernel<<<std::min(blocks_for(count, 1024), kMaxWidenBlocks), 256, 0, engine.stream>>>(elements, count, to);
  });
  check_launch("widen rows");
}

void normalize_rows(const Engine& engine, double* rows, std::int64_t n, std::int64_t d, std::uint8_t* zero) {
  normalize_kernel<<<blocks_for(n, 128), 128, 0, engine.stream>>>(rows, n, d, zero);
  check_launch("normalize rows");
}

WideRows::WideRows(Session& session, const plugin::Table& table, const Rows* resident, Metric metric, double p)
    : cols_(table.cols), metric_(metric), p_(p), values_(session.engine, table.rows * table.cols) {
  const Engine& engine = session.engine;
  const bool ready = resident != nullptr || lies_ready(engine, table, "table");
  const auto* const rows = static_cast<const std::byte*>(resident != nullptr ? resident->data : table.data);
  const std::int64_t bytes = row_bytes(table);
  const std::int64_t step = ready ? table.rows : std::clamp<std::int64_t>(kUpload / bytes, 1, table.rows);
  const Buffer<std::byte> copy(engine, ready ? 0 : step * bytes);
  for (std::int64_t begin = 0; begin < table.rows; begin += step) {
    const std::int64_t count = std::min(step, table.rows - begin);
    if (!ready) upload_rows(session, table, begin, begin + count, copy.data(), engine.stream);
    widen_elements(engine, ready ? static_cast<const void*>(rows) : copy.data(), static_cast<DType>(table.dtype),
                   count * cols_, values_.data() + begin * cols_);
  }
  if (metric != Metric::cosine) return;
  zero_ = Buffer<std::uint8_t>(engine, table.rows);
  normalize_rows(engine, values_.data(), table.rows, cols_, zero_.data());
}

std::uint64_t WideRows::bytes(const plugin::Table& table) {
  if (table.rows == 0) return 0;
  const auto rows = static_cast<std::uint64_t>(table.rows);
  const std::uint64_t uploaded = std::min<std::uint64_t>(rows * static_cast<std::uint64_t>(row_bytes(table)),
                                                         static_cast<std::uint64_t>(kUpload + row_bytes(table)));
  return rows * (static_cast<std::uint64_t>(table.cols) * sizeof(double) + 1) + uploaded;
}

}  // namespace vicinal::cuda
