// libhdf5, found at run time: nothing links it, so that a machine without it runs everything but HDF5 files. Its
// functions are declared here as its own headers of 1.10 and later have them (hid_t of 64 bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace vicinal::io {

using Hid = std::int64_t;  ///< hid_t: an object of the library's, negative for none
using Hsize = unsigned long long;

/// H5G_info_t and H5L_info1_t.
struct H5GroupInfo {
  int storage_type;
  Hsize links;
  std::int64_t max_order;
  bool mounted;
};
struct H5LinkInfo {
  int type;  ///< 0: hard
  bool order_valid;
  std::int64_t order;
  int character_set;
  std::uint64_t address;
};

// name, result, arguments
#define VICINAL_HDF5_FUNCTIONS(F)                                                                     \
  F(H5open, int, (void))                                                                              \
  F(H5get_libversion, int, (unsigned*, unsigned*, unsigned*))                                         \
  F(H5Eget_auto2, int, (Hid, void**, void**))                                                         \
  F(H5Eset_auto2, int, (Hid, void*, void*))                                                           \
  F(H5Fopen, Hid, (const char*, unsigned, Hid))                                                       \
  F(H5Fcreate, Hid, (const char*, unsigned, Hid, Hid))                                                \
  F(H5Fflush, int, (Hid, int))                                                                        \
  F(H5Fget_file_image, std::ptrdiff_t, (Hid, void*, std::size_t))                                     \
  F(H5Fclose, int, (Hid))                                                                             \
  F(H5Pcreate, Hid, (Hid))                                                                            \
  F(H5Pset_fapl_core, int, (Hid, std::size_t, bool))                                                  \
  F(H5Pset_file_image, int, (Hid, void*, std::size_t))                                                \
  F(H5Pset_obj_track_times, int, (Hid, bool))                                                         \
  F(H5Pget_layout, int, (Hid))                                                                        \
  F(H5Pget_chunk, int, (Hid, int, Hsize*))                                                            \
  F(H5Pget_external_count, int, (Hid))                                                                \
  F(H5Pclose, int, (Hid))                                                                             \
  F(H5Gget_info, int, (Hid, H5GroupInfo*))                                                            \
  F(H5Lget_name_by_idx, std::ptrdiff_t, (Hid, const char*, int, int, Hsize, char*, std::size_t, Hid)) \
  F(H5Oopen, Hid, (Hid, const char*, Hid))                                                            \
  F(H5Oclose, int, (Hid))                                                                             \
  F(H5Iget_type, int, (Hid))                                                                          \
  F(H5Dget_space, Hid, (Hid))                                                                         \
  F(H5Dget_type, Hid, (Hid))                                                                          \
  F(H5Dget_create_plist, Hid, (Hid))                                                                  \
  F(H5Dcreate2, Hid, (Hid, const char*, Hid, Hid, Hid, Hid, Hid))                                     \
  F(H5Dread, int, (Hid, Hid, Hid, Hid, Hid, void*))                                                   \
  F(H5Dwrite, int, (Hid, Hid, Hid, Hid, Hid, const void*))                                            \
  F(H5Dclose, int, (Hid))                                                                             \
  F(H5Screate_simple, Hid, (int, const Hsize*, const Hsize*))                                         \
  F(H5Sget_simple_extent_type, int, (Hid))                                                            \
  F(H5Sget_simple_extent_ndims, int, (Hid))                                                           \
  F(H5Sget_simple_extent_dims, int, (Hid, Hsize*, Hsize*))                                            \
  F(H5Sselect_hyperslab, int, (Hid, int, const Hsize*, const Hsize*, const Hsize*, const Hsize*))     \
  F(H5Sclose, int, (Hid))                                                                             \
  F(H5Tcopy, Hid, (Hid))                                                                              \
  F(H5Tget_class, int, (Hid))                                                                         \
  F(H5Tget_size, std::size_t, (Hid))                                                                  \
  F(H5Tget_order, int, (Hid))                                                                         \
  F(H5Tget_sign, int, (Hid))                                                                          \
  F(H5Tget_precision, std::size_t, (Hid))                                                             \
  F(H5Tget_fields, int, (Hid, std::size_t*, std::size_t*, std::size_t*, std::size_t*, std::size_t*))  \
  F(H5Tget_ebias, std::size_t, (Hid))                                                                 \
  F(H5Tset_fields, int, (Hid, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t))       \
  F(H5Tset_size, int, (Hid, std::size_t))                                                             \
  F(H5Tset_ebias, int, (Hid, std::size_t))                                                            \
  F(H5Tclose, int, (Hid))

/// The library's functions, and the numbers it gives its own types when it starts.
struct Hdf5Library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define VICINAL_HDF5_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  VICINAL_HDF5_FUNCTIONS(VICINAL_HDF5_MEMBER)
#undef VICINAL_HDF5_MEMBER
  int (*link_info)(Hid, const char*, H5LinkInfo*, Hid) = nullptr;  ///< H5Lget_info, H5Lget_info1 since 1.12
  Hid file_access = -1;                                            ///< H5P_FILE_ACCESS and so on
  Hid dataset_create = -1;
  Hid u8 = -1;
  Hid f32 = -1;
  Hid f64 = -1;
  Hid i64 = -1;
};

/// Loads libhdf5 once a process: the file that the environment variable VICINAL_HDF5 names, else the names that
/// systems give it. `file` opens the sentence. Throws `invalid_argument` saying what to install where there is none.
const Hdf5Library& hdf5_library(const std::string& file);

/// While it lives this thread alone is in the library (Debian's build knows no threads), and its own messages about
/// errors, which it prints, are off; then they are as they were.
class Hdf5Session {
 public:
  explicit Hdf5Session(const Hdf5Library& library);
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  const Hdf5Library& library_;
  std::unique_lock<std::mutex> lock_;
  void* function_ = nullptr;
  void* data_ = nullptr;
};

/// An object of the library's, closed at the end.
class Hdf5Object {
 public:
  using Close = int (*)(Hid);
  Hdf5Object(Hid id, Close close) : id_(id), close_(close) {}
  ~Hdf5Object() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Object(const Hdf5Object&) = delete;
  Hdf5Object& operator=(const Hdf5Object&) = delete;
  [[nodiscard]] Hid id() const noexcept { return id_; }
  [[nodiscard]] bool ok() const noexcept { return id_ >= 0; }

 private:
  Hid id_;
  Close close_;
};

}  // namespace vicinal::io
