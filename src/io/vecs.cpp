// See vecs.hpp. A row's own length is a few bytes beside its elements, so that fvecs and bvecs are strided tables.
#include "io/vecs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/element.hpp"

namespace vicinal::io {
namespace {

constexpr std::int64_t kLengthBytes = 4;

std::int64_t element_size(FileFormat format) noexcept {
  return format == FileFormat::bvecs ? 1 : 4;
}

std::int64_t length_at(const Bytes& bytes, std::int64_t at) noexcept {
  return load<std::int32_t>(bytes.data + at, false);
}

struct Layout {
  std::int64_t n = 0;
  std::int64_t d = 0;
  std::int64_t row_bytes = 0;
  std::string fault;  ///< why it is none; empty when it is one
};

Layout lay_out(const Context& ctx, const Bytes& bytes, FileFormat format) {
  constexpr std::int64_t kPollRows = 1 << 16;
  Layout found;
  const auto size = static_cast<std::int64_t>(bytes.size);
  if (size < kLengthBytes) {
    found.fault = "ends within the length of row 0 (truncated)";
    return found;
  }
  found.d = length_at(bytes, 0);
  if (found.d < 1) {
    found.fault = fmt::format("says that row 0 has {} columns", found.d);
    return found;
  }
  found.row_bytes = kLengthBytes + found.d * element_size(format);
  found.n = size / found.row_bytes;
  for (std::int64_t i = 0; i < found.n; ++i) {
    if (i % kPollRows == 0) ctx.check_cancelled();
    const std::int64_t length = length_at(bytes, i * found.row_bytes);
    if (length == found.d) continue;
    found.fault = fmt::format("says that row {} has {} columns where row 0 has {}", i, length, found.d);
    return found;
  }
  if (size % found.row_bytes != 0) found.fault = fmt::format("ends within row {} (truncated)", found.n);
  return found;
}

Layout checked(const Context& ctx, const Bytes& bytes, const std::string& file, FileFormat format) {
  Layout layout = lay_out(ctx, bytes, format);
  if (layout.fault.empty()) return layout;
  throw Error(ErrorCode::bad_data, fmt::format("'{}' read as {} {}", file, name_of(format), layout.fault));
}

}  // namespace

bool is_vecs(const Context& ctx, const Bytes& bytes, FileFormat format) {
  return lay_out(ctx, bytes, format).fault.empty();
}

std::vector<std::int64_t> vecs_shape(const Context& ctx, const Bytes& bytes, const std::string& file,
                                     FileFormat format) {
  const Layout layout = checked(ctx, bytes, file, format);
  return {layout.n, layout.d};
}

Table read_vecs(const Context& ctx, const Bytes& bytes, const std::string& file, FileFormat format) {
  const Layout layout = checked(ctx, bytes, file, format);
  Table table;
  table.shape = {layout.n, layout.d};
  table.storage = bytes.owner;
  const unsigned char* const first = bytes.data + kLengthBytes;
  if (format != FileFormat::ivecs) {
    const DType dtype = format == FileFormat::bvecs ? DType::uint8 : DType::float32;
    table.view = TableView(first, dtype, layout.n, layout.d, layout.row_bytes / element_size(format));
    return table;
  }
  const std::string job = fmt::format("reading '{}'", file);
  const std::uint64_t need =
      static_cast<std::uint64_t>(layout.n) * static_cast<std::uint64_t>(layout.d) * sizeof(double);
  core::require_memory(ctx, need + bytes.held, job);
  const std::shared_ptr<unsigned char> out = allocate(need, job);
  auto* const values = reinterpret_cast<double*>(out.get());
  const std::int64_t block = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / layout.d);
  core::parallel_for(ctx, (layout.n + block - 1) / block, [&](std::int64_t task, int) {
    for (std::int64_t i = task * block; i < std::min(layout.n, (task + 1) * block); ++i) {
      const unsigned char* from = first + i * layout.row_bytes;
      for (std::int64_t j = 0; j < layout.d; ++j) {
        values[i * layout.d + j] = load<std::int32_t>(from + j * 4, false);
      }
    }
  });
  table.view = TableView(values, layout.n, layout.d);
  table.storage = out;
  return table;
}

}  // namespace vicinal::io
