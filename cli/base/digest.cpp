// See digest.hpp.
#include "base/digest.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "vicinal/dtype.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// The elements of rows that do not follow each other, copied so that they do.
void copy_row(const TableView& table, std::int64_t row, std::size_t width, unsigned char* to) {
  const auto* const begin = static_cast<const unsigned char*>(table.data());
  for (std::int64_t j = 0; j < table.cols(); ++j) {
    const std::int64_t at = row * table.row_stride() + j * table.col_stride();
    std::memcpy(to + static_cast<std::size_t>(j) * width, begin + at * static_cast<std::int64_t>(width), width);
  }
}

}  // namespace

void Digest::add(const void* data, std::size_t bytes) {
  if (bytes == 0) return;  // zlib begins anew where there is no address
  const auto* const from = static_cast<const Bytef*>(data);
  crc32_ = static_cast<std::uint32_t>(::crc32_z(crc32_, from, bytes));
  adler32_ = static_cast<std::uint32_t>(::adler32_z(adler32_, from, bytes));
  bytes_ += bytes;
}

std::string Digest::text() const {
  return fmt::format("{:08x}{:08x}-{}", crc32_, adler32_, bytes_);
}

std::string digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.text();
}

std::string digest_of(const Context& ctx, const TableView& table) {
  const std::size_t width = size_of(table.dtype());
  const std::size_t row_bytes = static_cast<std::size_t>(table.cols()) * width;
  Digest digest;
  digest.add(fmt::format("{} {} {};", name_of(table.dtype()), table.rows(), table.cols()));
  const bool follows = table.col_stride() == 1 && table.row_stride() == table.cols();
  const auto rows_per_piece = static_cast<std::int64_t>(std::max<std::size_t>(1, kPieceBytes / row_bytes));
  std::vector<unsigned char> copied(follows ? 0 : row_bytes);
  for (std::int64_t begin = 0; begin < table.rows(); begin += rows_per_piece) {
    ctx.check_cancelled();
    ctx.report("compare", static_cast<double>(begin) / static_cast<double>(table.rows()));
    const std::int64_t end = std::min(table.rows(), begin + rows_per_piece);
    if (follows) {
      digest.add(static_cast<const unsigned char*>(table.data()) + static_cast<std::size_t>(begin) * row_bytes,
                 static_cast<std::size_t>(end - begin) * row_bytes);
      continue;
    }
    for (std::int64_t row = begin; row < end; ++row) {
      copy_row(table, row, width, copied.data());
      digest.add(copied.data(), row_bytes);
    }
  }
  return digest.text();
}

std::string digest_of(std::span<const std::uint64_t> words) {
  Digest digest;
  digest.add(words.data(), words.size_bytes());
  return digest.text();
}

std::string digest_of_file(const Context& ctx, const std::filesystem::path& path) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::io,
                fmt::format("cannot {} '{}': {}", what, path.string(), std::generic_category().message(errno)));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail("open");
  struct Closed {
    int number;
    ~Closed() { ::close(number); }
  } const closed{file};
  Digest digest;
  std::vector<unsigned char> piece(kPieceBytes);
  while (true) {
    ctx.check_cancelled();
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read");
    if (got == 0) return digest.text();
    digest.add(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace vicinal::cli
