// .npz: a zip archive whose members are .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/array.hpp"
#include "io/packed_file.hpp"
#include "io/zip.hpp"

namespace vicinal::io {

struct NpzMember {
  std::string name;  ///< without ".npy"
  std::string where;
  ZipMember member;
  ArrayHeader header;
};

/// Every array of an archive, "<V2" among them; members that are not .npy are left out. Reads no more than their
/// headers.
std::vector<NpzMember> list_npz(const Context& ctx, const Bytes& archive, const std::string& file);

/// The array called `name`; with an empty name the only one of `axes` axes, or the only one at all.
RawArray read_npz(const Context& ctx, const Bytes& archive, const std::string& file, const std::string& name,
                  std::size_t axes, bool bfloat16 = false);

/// A member that was written, as the directory tells it.
struct NpzEntry {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::uint32_t crc = 0;
};

/// Writes an archive, array by array, members at multiples of 64 bytes.
class NpzWriter {
 public:
  explicit NpzWriter(PackedFile& file) : file_(file) {}

  /// The headers of an array. Its elements, which the caller writes to the file next, have the CRC-32 `crc`.
  void begin(const std::string& name, const ArrayView& array, std::uint32_t crc);
  /// A whole array.
  void add(const std::string& name, const ArrayView& array);
  /// The directory, at the end.
  void finish();

 private:
  PackedFile& file_;
  std::vector<NpzEntry> members_;
};

/// Writes a whole archive. Throws `invalid_argument` for names that are none.
void write_npz_members(PackedFile& file, std::span<const NamedArray> arrays);

}  // namespace vicinal::io
