// A digest of bytes, by which a command recognizes the tables and files of an earlier run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// CRC-32 and Adler-32 of all bytes that were added, and their number. It notices accidental changes, not those that
/// someone intends.
class Digest {
 public:
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  /// 16 hexadecimal digits, those of CRC-32 first, "-" and the number of bytes.
  [[nodiscard]] std::string text() const;

 private:
  std::uint32_t crc32_ = 0;
  std::uint32_t adler32_ = 1;
  std::uint64_t bytes_ = 0;
};

std::string digest_of(std::string_view text);
/// Of a table in host memory: its element type, shape and values, whatever its strides. Throws `cancelled`. O(n d).
std::string digest_of(const Context& ctx, const TableView& table);
std::string digest_of(std::span<const std::uint64_t> words);
/// Of the bytes of a file. Throws `io`, `cancelled`.
std::string digest_of_file(const Context& ctx, const std::filesystem::path& path);

}  // namespace vicinal::cli
