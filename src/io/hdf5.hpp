// HDF5: datasets of plain numbers, read and written by libhdf5 (hdf5_library.hpp).
#pragma once

#include <string>
#include <vector>

#include "io/array.hpp"
#include "io/bytes.hpp"

namespace vicinal::io {

/// Whether the bytes begin as an HDF5 file does.
bool is_hdf5(const Bytes& bytes) noexcept;

struct Hdf5Dataset {
  std::string name;  ///< path from the root, without its slash: "train", "group/train"
  std::string where;
  ArrayHeader header;     ///< of a type that is no table's: `descr` says what it is
  bool readable = false;  ///< whether the type is one of ours
  std::string why;        ///< why it is not
};

/// Every dataset of a file, in the order of the names. Links to other places and files are not followed.
/// Throws `bad_data` for a damaged file, `invalid_argument` where libhdf5 is missing.
std::vector<Hdf5Dataset> list_hdf5(const Context& ctx, const Bytes& bytes, const std::string& file);

/// The dataset called `name`; with an empty name the only one of `axes` axes, or the only one at all. Polls the cancel
/// token between blocks of rows. Errors as `list_hdf5` and `read_npz`, and `over_memory`.
RawArray read_hdf5(const Context& ctx, const Bytes& bytes, const std::string& file, const std::string& name,
                   std::size_t axes);

/// The bytes of a file with these arrays as datasets, contiguous and without dates. Takes twice their bytes.
Bytes make_hdf5(const Context& ctx, const std::vector<NamedArray>& arrays, const std::string& file);

}  // namespace vicinal::io
