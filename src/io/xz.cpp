// See xz.hpp. liblzma decodes, in steps of 1 MiB of output, so that cancel and progress are prompt.
#include "io/xz.hpp"

#include <fmt/core.h>
#include <lzma.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/memory.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kXzStep = std::uint64_t{1} << 20;
constexpr unsigned char kXzMagic[] = {0xfd, '7', 'z', 'X', 'Z', 0};

class Decoder {
 public:
  Decoder(const Context& ctx, const std::string& file) : file_(file), limit_(ctx.memory_limit()) {
    // Without TELL_UNSUPPORTED_CHECK a checksum of a kind that liblzma does not know would pass unseen.
    if (lzma_stream_decoder(&z_, std::max<std::uint64_t>(limit_, 1), LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK) {
      throw Error(ErrorCode::over_memory, fmt::format("'{}': no memory to unpack it", file));
    }
  }
  ~Decoder() { lzma_end(&z_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  lzma_stream& get() noexcept { return z_; }

  /// What is left of the limit beside `taken` bytes is the decoder's.
  void leave(std::uint64_t taken) {
    const std::uint64_t left = limit_ > taken ? limit_ - taken : 1;
    if (lzma_memlimit_set(&z_, left) == LZMA_MEMLIMIT_ERROR) over_memory(taken);
  }
  [[noreturn]] void over_memory(std::uint64_t taken) const {
    throw Error(ErrorCode::over_memory,
                fmt::format("unpacking '{}' needs {}, more than the memory limit of {}", file_,
                            core::format_bytes(taken + lzma_memusage(&z_)), core::format_bytes(limit_)));
  }

 private:
  const std::string& file_;
  std::uint64_t limit_;
  lzma_stream z_ = LZMA_STREAM_INIT;
};

[[noreturn]] void refuse(lzma_ret result, const std::string& file, std::uint64_t used) {
  if (result == LZMA_MEM_ERROR) {
    throw Error(ErrorCode::over_memory, fmt::format("'{}': no memory to unpack it", file));
  }
  if (result == LZMA_BUF_ERROR) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}': ends in the middle of its compressed data (truncated)", file));
  }
  if (result == LZMA_OPTIONS_ERROR || result == LZMA_UNSUPPORTED_CHECK) {
    throw Error(ErrorCode::bad_data,
                fmt::format("'{}': is packed with an option of xz that this build does not support", file));
  }
  throw Error(ErrorCode::bad_data, fmt::format("'{}': is damaged, or has something else after its xz data (near "
                                               "compressed byte {})",
                                               file, used));
}

}  // namespace

bool is_xz(const Bytes& bytes) noexcept {
  return bytes.size >= sizeof kXzMagic && std::memcmp(bytes.data, kXzMagic, sizeof kXzMagic) == 0;
}

Bytes decode_xz(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most) {
  Decoder decoder(ctx, file);
  lzma_stream& z = decoder.get();
  GrowingBuffer out(ctx, fmt::format("unpacking '{}'", file), bytes.held);
  for (;;) {
    ctx.check_cancelled();
    const std::uint64_t used = z.total_in;
    if (bytes.size > 4 * kXzStep) ctx.report("read", static_cast<double>(used) / static_cast<double>(bytes.size));
    if (out.room() == 0) out.grow(std::max(out.size() / 2, kXzStep));
    decoder.leave(out.size());
    const std::uint64_t room = std::min({out.room(), kXzStep, at_most - out.size()});
    z.next_in = bytes.data + used;
    z.avail_in = std::min(bytes.size - used, kXzStep);
    z.next_out = out.end();
    z.avail_out = room;
    // FINISH, once the last bytes are on offer: whether the file ends where it may is asked only then.
    const lzma_ret result = lzma_code(&z, used + z.avail_in == bytes.size ? LZMA_FINISH : LZMA_RUN);
    out.add(room - z.avail_out);
    if (out.size() >= at_most || result == LZMA_STREAM_END) return out.take();
    if (result == LZMA_MEMLIMIT_ERROR) decoder.over_memory(out.size());
    if (result != LZMA_OK) refuse(result, file, z.total_in);
  }
}

}  // namespace vicinal::io
