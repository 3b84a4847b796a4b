// See digest.hpp.
#include "base/digest.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "vicinal/dtype.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

constexpr std::uint64_t kPrimes[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63,
                                     0x27d4eb2f165667c5};
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrimes[1], 31) * kPrimes[0];
}

template <class Word>
Word word_at(const unsigned char* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// The elements of rows that do not follow each other, copied so that they do.
void copy_row(const TableView& table, std::int64_t row, std::size_t width, unsigned char* to) {
  const auto* const begin = static_cast<const unsigned char*>(table.data());
  for (std::int64_t j = 0; j < table.cols(); ++j) {
    const std::int64_t at = row * table.row_stride() + j * table.col_stride();
    std::memcpy(to + static_cast<std::size_t>(j) * width, begin + at * static_cast<std::int64_t>(width), width);
  }
}

}  // namespace

void Digest::take(const unsigned char* stripe) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane] = round_of(lanes_[lane], word_at<std::uint64_t>(stripe + 8 * lane));
  }
}

void Digest::add(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  const std::size_t held = bytes_ % kStripe;
  bytes_ += bytes;
  if (held > 0) {
    const std::size_t taken = std::min(bytes, kStripe - held);
    std::copy_n(from, taken, rest_.data() + held);
    if (held + taken < kStripe) return;
    take(rest_.data());
    from += taken;
    bytes -= taken;
  }
  for (; bytes >= kStripe; from += kStripe, bytes -= kStripe) take(from);
  std::copy_n(from, bytes, rest_.data());
}

std::uint64_t Digest::value() const {
  std::uint64_t hash = kPrimes[4];
  if (bytes_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ round_of(0, lane)) * kPrimes[0] + kPrimes[3];
  }
  hash += bytes_;
  const unsigned char* at = rest_.data();
  const unsigned char* const end = at + bytes_ % kStripe;
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ round_of(0, word_at<std::uint64_t>(at)), 27) * kPrimes[0] + kPrimes[3];
  }
  for (; end - at >= 4; at += 4) {
    hash = std::rotl(hash ^ (word_at<std::uint32_t>(at) * kPrimes[0]), 23) * kPrimes[1] + kPrimes[2];
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ (*at * kPrimes[4]), 11) * kPrimes[0];
  hash = (hash ^ (hash >> 33)) * kPrimes[1];
  hash = (hash ^ (hash >> 29)) * kPrimes[2];
  return hash ^ (hash >> 32);
}

std::string Digest::text() const {
  return fmt::format("{:016x}", value());
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
