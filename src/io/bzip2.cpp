// See bzip2.hpp. libbz2 decodes, in steps of 256 KiB of output (some milliseconds), so that cancel and progress are
// prompt.
#include "io/bzip2.hpp"

#include <bzlib.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "io/bad_data.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kBzip2Step = std::uint64_t{1} << 18;
constexpr std::uint64_t kDecoderBytes = 3'700'000;  // of blocks of 900 kB

bool begins_stream(const unsigned char* at, std::uint64_t size) noexcept {
  if (size < 10 || std::memcmp(at, "BZh", 3) != 0 || at[3] < '1' || at[3] > '9') return false;
  return std::memcmp(at + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||  // a block
         std::memcmp(at + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0;    // the end of an empty stream
}

/// A decoder of one stream after the other.
class Bzip2Decoder {
 public:
  explicit Bzip2Decoder(const std::string& file) : file_(file) { begin(); }
  ~Bzip2Decoder() { BZ2_bzDecompressEnd(&z_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;
  bz_stream& get() noexcept { return z_; }

  void begin_next() {
    BZ2_bzDecompressEnd(&z_);
    z_ = {};
    begin();
  }

 private:
  void begin() {
    if (BZ2_bzDecompressInit(&z_, 0, 0) != BZ_OK) {
      throw Error(ErrorCode::over_memory, fmt::format("'{}': no memory to unpack it", file_));
    }
  }

  const std::string& file_;
  bz_stream z_ = {};
};

}  // namespace

bool is_bzip2(const Bytes& bytes) noexcept {
  return begins_stream(bytes.data, bytes.size);
}

Bytes decode_bzip2(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most) {
  const std::string where = fmt::format("'{}'", file);
  Bzip2Decoder decoder(file);
  bz_stream& z = decoder.get();
  GrowingBuffer out(ctx, fmt::format("unpacking '{}'", file), bytes.held + kDecoderBytes);
  std::uint64_t used = 0;
  for (;;) {
    ctx.check_cancelled();
    if (bytes.size > 4 * kBzip2Step) ctx.report("read", static_cast<double>(used) / static_cast<double>(bytes.size));
    if (out.room() == 0) out.grow(std::max(out.size() / 2, kBzip2Step));
    const std::uint64_t room = std::min({out.room(), kBzip2Step, at_most - out.size()});
    const std::uint64_t offered = std::min(bytes.size - used, kBzip2Step);
    z.next_in = reinterpret_cast<char*>(const_cast<unsigned char*>(bytes.data + used));
    z.avail_in = static_cast<unsigned>(offered);
    z.next_out = reinterpret_cast<char*>(out.end());
    z.avail_out = static_cast<unsigned>(room);
    const int result = BZ2_bzDecompress(&z);
    const std::uint64_t made = room - z.avail_out;
    const std::uint64_t taken = offered - z.avail_in;
    used += taken;
    out.add(made);
    if (out.size() >= at_most) return out.take();
    if (result == BZ_STREAM_END) {
      if (used == bytes.size) return out.take();
      if (!begins_stream(bytes.data + used, bytes.size - used)) {
        const bool cut = bytes.size - used < 10 &&
                         std::memcmp(bytes.data + used, "BZh1", std::min<std::uint64_t>(bytes.size - used, 3)) == 0;
        bad(where, cut ? "ends in the middle of its compressed data (truncated)"
                       : fmt::format("has {} bytes of something else after its bzip2 data", bytes.size - used));
      }
      decoder.begin_next();
    } else if (result == BZ_MEM_ERROR) {
      throw Error(ErrorCode::over_memory, fmt::format("'{}': no memory to unpack it", file));
    } else if (result != BZ_OK) {
      bad(where, fmt::format("is damaged (near compressed byte {})", used));
    } else if (used == bytes.size && made < room) {
      bad(where, "ends in the middle of its compressed data (truncated)");
    }
  }
}

}  // namespace vicinal::io
