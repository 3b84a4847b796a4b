// See packed_file.hpp.
#include "io/packed_file.hpp"

#include <fmt/core.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/memory.hpp"

namespace vicinal::io {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 14;  // some milliseconds of the slower packer, where it is slowest
constexpr std::size_t kOutBytes = std::size_t{1} << 16;

}  // namespace

/// Turns bytes into packed ones.
class PackedFile::Packer {
 public:
  explicit Packer(AtomicFile& file) : file_(file), out_(kOutBytes) {}
  virtual ~Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  /// Packs `bytes` bytes; with `last` the stream ends behind them.
  virtual void pack(const unsigned char* data, std::size_t bytes, bool last) = 0;

 protected:
  void put(std::size_t room_left) { file_.write(out_.data(), out_.size() - room_left); }
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::over_memory, "the system has no memory to pack the output");
  }

  AtomicFile& file_;
  std::vector<unsigned char> out_;
};

class PackedFile::Gzip : public PackedFile::Packer {
 public:
  explicit Gzip(AtomicFile& file) : Packer(file) {
    constexpr int kWithGzipHeader = 16;
    if (deflateInit2(&z_, 6, Z_DEFLATED, kWithGzipHeader + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) fail();
  }
  ~Gzip() override { deflateEnd(&z_); }

  void pack(const unsigned char* data, std::size_t bytes, bool last) override {
    z_.next_in = const_cast<Bytef*>(data);
    z_.avail_in = static_cast<uInt>(bytes);
    do {
      z_.next_out = out_.data();
      z_.avail_out = static_cast<uInt>(out_.size());
      deflate(&z_, last ? Z_FINISH : Z_NO_FLUSH);
      put(z_.avail_out);
    } while (z_.avail_out == 0);
  }

 private:
  z_stream z_ = {};
};

class PackedFile::Xz : public PackedFile::Packer {
 public:
  Xz(const Context& ctx, AtomicFile& file) : Packer(file) {
    constexpr std::uint32_t kPreset = 6;
    core::require_memory(ctx, lzma_easy_encoder_memusage(kPreset), "packing as xz");
    if (lzma_easy_encoder(&z_, kPreset, LZMA_CHECK_CRC64) != LZMA_OK) fail();
  }
  ~Xz() override { lzma_end(&z_); }

  void pack(const unsigned char* data, std::size_t bytes, bool last) override {
    z_.next_in = data;
    z_.avail_in = bytes;
    do {
      z_.next_out = out_.data();
      z_.avail_out = out_.size();
      if (lzma_code(&z_, last ? LZMA_FINISH : LZMA_RUN) == LZMA_MEM_ERROR) fail();
      put(z_.avail_out);
    } while (z_.avail_out == 0);
  }

 private:
  lzma_stream z_ = LZMA_STREAM_INIT;
};

PackedFile::PackedFile(const Context& ctx, const std::filesystem::path& target, Compression compression)
    : ctx_(&ctx), file_(target, &ctx.cancel_token()) {
  if (compression == Compression::gzip) packer_ = std::make_unique<Gzip>(file_);
  if (compression == Compression::xz) packer_ = std::make_unique<Xz>(ctx, file_);
}

PackedFile::PackedFile(const std::filesystem::path& target) : file_(target) {}

PackedFile::~PackedFile() = default;

void PackedFile::poll() const {
  if (ctx_ != nullptr) ctx_->check_cancelled();
}

void PackedFile::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  size_ += bytes;
  // Unpacked bytes are limited by the disk: larger steps, so that big blocks are not copied into the file's buffer.
  const std::size_t step = packer_ == nullptr ? std::size_t{1} << 24 : kStep;
  while (bytes > 0) {
    poll();
    const std::size_t now = std::min(bytes, step);
    if (packer_ == nullptr) {
      file_.write(from, now);
    } else {
      packer_->pack(from, now, false);
    }
    from += now;
    bytes -= now;
  }
}

void PackedFile::commit() {
  poll();
  if (packer_ != nullptr) packer_->pack(nullptr, 0, true);
  file_.commit();
}

}  // namespace vicinal::io
