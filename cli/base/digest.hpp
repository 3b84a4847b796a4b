// A digest of bytes: XXH64, by which a command recognizes the tables and files of an earlier run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// XXH64 of all bytes that were added, with seed 0. It notices accidental changes, not those that someone intends.
class Digest {
 public:
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  [[nodiscard]] std::uint64_t value() const;
  /// 16 hexadecimal digits.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t kStripe = 32;
  void take(const unsigned char* stripe);

  std::array<std::uint64_t, 4> lanes_ = {0x60ea27eeadc0b5d6, 0xc2b2ae3d27d4eb4f, 0, 0x61c8864e7a143579};
  std::array<unsigned char, kStripe> rest_ = {};
  std::uint64_t bytes_ = 0;
};

std::string digest_of(std::string_view text);
/// Of a table in host memory: its element type, shape and values, whatever its strides. Throws `cancelled`. O(n d).
std::string digest_of(const Context& ctx, const TableView& table);
std::string digest_of(std::span<const std::uint64_t> words);
/// Of the bytes of a file. Throws `io`, `cancelled`.
std::string digest_of_file(const Context& ctx, const std::filesystem::path& path);

}  // namespace vicinal::cli
