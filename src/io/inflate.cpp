// See inflate.hpp. Works in steps of 1 MiB of output (a few milliseconds), so that cancel and progress are prompt.
#include "io/inflate.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>

#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kInflateStep = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxRatio = 1032;  // deflate cannot expand more than that

struct Job {
  std::string where;
  bool gzip = true;
  std::uint64_t expected = 0;          // a hint for gzip, the law for raw streams
  std::uint64_t at_most = UINT64_MAX;  // a prefix is enough
};

[[noreturn]] void bad_stream(const Job& job, std::string_view what) {
  throw Error(ErrorCode::bad_data, fmt::format("{}: {}", job.where, what));
}

class Stream {
 public:
  explicit Stream(const Job& job) {
    // 16 + window bits: exactly one gzip member, its header and checksum verified by zlib.
    if (inflateInit2(&z_, job.gzip ? 16 + MAX_WBITS : -MAX_WBITS) != Z_OK) {
      throw Error(ErrorCode::over_memory, fmt::format("{}: no memory to inflate it", job.where));
    }
  }
  ~Stream() { inflateEnd(&z_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream& get() noexcept { return z_; }

 private:
  z_stream z_{};
};

void make_room(const Job& job, GrowingBuffer& out, std::uint64_t input_bytes) {
  if (out.room() > 0) return;
  std::uint64_t wanted = std::max(out.size() / 2, kInflateStep);
  if (out.size() == 0 && job.expected > 0) {
    // Trust a claimed size only as far as deflate could reach it.
    wanted = std::min(job.expected + 1, input_bytes * kMaxRatio + 64);
  }
  out.grow(wanted);
}

Bytes inflate_all(const Context& ctx, const Bytes& in, const Job& job) {
  Stream stream(job);
  z_stream& z = stream.get();
  GrowingBuffer out(ctx, fmt::format("inflating {}", job.where), in.held);
  std::uint64_t used = 0;
  for (;;) {
    ctx.check_cancelled();
    if (in.size > 4 * kInflateStep) ctx.report("read", static_cast<double>(used) / static_cast<double>(in.size));
    make_room(job, out, in.size);
    const std::uint64_t room = std::min({out.room(), kInflateStep, job.at_most - out.size()});
    const std::uint64_t offered = std::min(in.size - used, kInflateStep);
    z.next_in = const_cast<Bytef*>(in.data + used);
    z.avail_in = static_cast<uInt>(offered);
    z.next_out = out.end();
    z.avail_out = static_cast<uInt>(room);
    const int result = inflate(&z, Z_NO_FLUSH);
    used += offered - z.avail_in;
    const std::uint64_t made = room - z.avail_out;
    out.add(made);
    if (out.size() >= job.at_most) return out.take();
    if (!job.gzip && out.size() > job.expected) bad_stream(job, "inflates to more bytes than its header says");
    if (result == Z_STREAM_END) {
      if (!job.gzip || used == in.size) break;
      if (in.size - used < 2 || in.data[used] != 0x1f || in.data[used + 1] != 0x8b) {
        bad_stream(job, fmt::format("has {} bytes of something else after its gzip data", in.size - used));
      }
      inflateReset(&z);
    } else if (result == Z_MEM_ERROR) {
      throw Error(ErrorCode::over_memory, fmt::format("{}: no memory to inflate it", job.where));
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      bad_stream(job, fmt::format("is damaged ({}, near compressed byte {})",
                                  z.msg != nullptr ? z.msg : "its compressed data make no sense", used));
    } else if (used == in.size && made < room) {
      bad_stream(job, "ends in the middle of its compressed data (truncated)");
    }
  }
  if (!job.gzip && out.size() != job.expected) bad_stream(job, "inflates to fewer bytes than its header says");
  return out.take();
}

}  // namespace

bool is_gzip(const Bytes& bytes) noexcept {
  return bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b;
}

Bytes inflate_gzip(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most) {
  Job job;
  job.where = fmt::format("'{}'", file);
  job.at_most = at_most;
  if (bytes.size >= 18 && at_most == UINT64_MAX) {  // the last four bytes are the size modulo 2^32 of the last member
    for (int i = 0; i < 4; ++i) job.expected |= std::uint64_t{bytes.data[bytes.size - 4 + i]} << (8 * i);
  }
  return inflate_all(ctx, bytes, job);
}

Bytes inflate_raw(const Context& ctx, const Bytes& bytes, const std::string& where, std::uint64_t expected,
                  std::uint64_t at_most) {
  Job job;
  job.where = where;
  job.gzip = false;
  job.expected = expected;
  if (at_most < expected) job.at_most = at_most;
  return inflate_all(ctx, bytes, job);
}

}  // namespace vicinal::io
