// See packed_file.hpp.
#include "io/packed_file.hpp"

#include <bzlib.h>
#include <fmt/core.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/memory.hpp"
#include "io/format.hpp"

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
  Xz(const Context* ctx, AtomicFile& file) : Packer(file) {
    constexpr std::uint32_t kPreset = 6;
    if (ctx != nullptr) core::require_memory(*ctx, lzma_easy_encoder_memusage(kPreset), "packing as xz");
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

class PackedFile::Bzip2 : public PackedFile::Packer {
 public:
  Bzip2(const Context* ctx, AtomicFile& file) : Packer(file) {
    constexpr int kBlocks = 9;  // of 100 kB, as the tool's default
    if (ctx != nullptr) core::require_memory(*ctx, kBzip2Bytes, "packing as bzip2");
    if (BZ2_bzCompressInit(&z_, kBlocks, 0, 0) != BZ_OK) fail();
  }
  ~Bzip2() override { BZ2_bzCompressEnd(&z_); }

  void pack(const unsigned char* data, std::size_t bytes, bool last) override {
    z_.next_in = reinterpret_cast<char*>(const_cast<unsigned char*>(data));
    z_.avail_in = static_cast<unsigned>(bytes);
    for (bool more = true; more;) {
      z_.next_out = reinterpret_cast<char*>(out_.data());
      z_.avail_out = static_cast<unsigned>(out_.size());
      const int result = BZ2_bzCompress(&z_, last ? BZ_FINISH : BZ_RUN);
      put(z_.avail_out);
      more = last ? result == BZ_FINISH_OK : z_.avail_in > 0;
    }
  }

 private:
  static constexpr std::uint64_t kBzip2Bytes = 7'600'000;
  bz_stream z_ = {};
};

PackedFile::PackedFile(const Context& ctx, const std::filesystem::path& target, Compression compression)
    : ctx_(&ctx), file_(target, &ctx.cancel_token()) {
  pack_as(compression);
}

PackedFile::PackedFile(const std::filesystem::path& target) : file_(target) {
  pack_as(compression_of_suffix(target));
}

void PackedFile::pack_as(Compression compression) {
  if (compression == Compression::gzip) packer_ = std::make_unique<Gzip>(file_);
  if (compression == Compression::xz) packer_ = std::make_unique<Xz>(ctx_, file_);
  if (compression == Compression::bzip2) packer_ = std::make_unique<Bzip2>(ctx_, file_);
}

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
