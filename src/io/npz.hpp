// .npz: a zip archive whose members are .npy files.
#pragma once

#include <span>
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

/// Writes a whole archive, members at multiples of 64 bytes. Throws `invalid_argument` for names that are none.
void write_npz_members(PackedFile& file, std::span<const NamedArray> arrays);

}  // namespace vicinal::io
