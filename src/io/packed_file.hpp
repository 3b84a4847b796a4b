// An output file that may be packed on its way (gzip, bzip2, xz), whole or not there (atomic_file.hpp). The same bytes
// give the same file: what gzip could say of its making stays out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "io/atomic_file.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

class VICINAL_API PackedFile {
 public:
  /// Polls the context's cancel token while it writes. Throws what AtomicFile throws, and `over_memory` where the
  /// packer has no room.
  PackedFile(const Context& ctx, const std::filesystem::path& target, Compression compression);
  /// Packed as the target's last suffix says; nothing is polled, nor limited.
  explicit PackedFile(const std::filesystem::path& target);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Bytes written so far, before packing.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Throws once the job was cancelled; for what is computed between writes.
  void poll() const;
  void commit();

 private:
  class Packer;
  class Gzip;
  class Xz;
  class Bzip2;

  void pack_as(Compression compression);

  const Context* ctx_ = nullptr;
  AtomicFile file_;
  std::unique_ptr<Packer> packer_;  // none: bytes go as they are
  std::uint64_t size_ = 0;
};

}  // namespace vicinal::io
