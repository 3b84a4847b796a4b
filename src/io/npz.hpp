// .npz: a zip archive whose members are .npy files.
#pragma once

#include <vector>

#include "io/array.hpp"
#include "io/zip.hpp"

namespace vicinal::io {

struct NpzMember {
  std::string name;  ///< without ".npy"
  std::string where;
  ZipMember member;
  ArrayHeader header;
};

/// Every array of an archive; members that are not .npy are left out. Reads no more than their headers.
std::vector<NpzMember> list_npz(const Context& ctx, const Bytes& archive, const std::string& file);

/// The array called `name`; with an empty name the only one of `axes` axes, or the only one at all.
RawArray read_npz(const Context& ctx, const Bytes& archive, const std::string& file, const std::string& name,
                  std::size_t axes);

}  // namespace vicinal::io
