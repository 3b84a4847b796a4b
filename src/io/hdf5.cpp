// See hdf5.hpp. The file's bytes are handed over as an image in memory, packed or not, so that one way serves both and
// what is checked is what is read; elements come out in the file's own type and become a table as those of .npy do.
// Shapes are checked against the memory limit before anything is allocated; a file that is hostile to libhdf5 itself
// is beyond that.
#include "io/hdf5.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/memory.hpp"
#include "io/bad_data.hpp"
#include "io/hdf5_library.hpp"
#include "io/npy.hpp"
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

constexpr int kGroup = 2;  // of H5I_type_t
constexpr int kDataset = 5;
constexpr int kInteger = 0;  // of H5T_class_t
constexpr int kReal = 1;
constexpr int kText = 3;
constexpr int kMaxDimensions = 32;
constexpr int kMaxDepth = 32;

/// Where sign, exponent and mantissa of a float lie.
struct FloatFields {
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  std::size_t bias = 0;
  bool operator==(const FloatFields&) const = default;
};
constexpr FloatFields kHalf = {15, 10, 5, 0, 10, 15};
constexpr FloatFields kBrain = {15, 7, 8, 0, 7, 127};
constexpr FloatFields kSingle = {31, 23, 8, 0, 23, 127};
constexpr FloatFields kDouble = {63, 52, 11, 0, 52, 1023};

/// NumPy's letters for a type of the file; empty, with a reason in `why`, where it is none of ours.
std::string descr_of(const Hdf5Library& h5, Hid type, std::string& why) {
  const int kind = h5.H5Tget_class(type);
  const std::size_t size = h5.H5Tget_size(type);
  const char order = size == 1 ? '|' : h5.H5Tget_order(type) == 1 ? '>' : '<';
  if (kind == kInteger) {
    const bool whole = h5.H5Tget_precision(type) == 8 * size;
    if (whole && (size == 1 || size == 2 || size == 4 || size == 8)) {
      return fmt::format("{}{}{}", order, h5.H5Tget_sign(type) == 0 ? 'u' : 'i', size);
    }
  }
  if (kind == kReal) {
    FloatFields fields;
    h5.H5Tget_fields(type, &fields.sign, &fields.exponent, &fields.exponent_bits, &fields.mantissa,
                     &fields.mantissa_bits);
    fields.bias = h5.H5Tget_ebias(type);
    if (size == 2 && fields == kBrain) return fmt::format("{}V2", order);
    if ((size == 2 && fields == kHalf) || (size == 4 && fields == kSingle) || (size == 8 && fields == kDouble)) {
      return fmt::format("{}f{}", order, size);
    }
  }
  why = kind == kText ? "holds text, not numbers"
                      : fmt::format(
                            "has elements of {} bytes (HDF5's class {}) that are neither integers nor IEEE "
                            "floats of up to 64 bits",
                            size, kind);
  return {};
}

Hdf5Dataset describe(const Hdf5Library& h5, Hid dataset, const std::string& name, const std::string& file) {
  Hdf5Dataset found;
  found.name = name;
  found.where = fmt::format("'{}' dataset '{}'", file, shown(name));
  const Hdf5Object type(h5.H5Dget_type(dataset), h5.H5Tclose);
  const Hdf5Object space(h5.H5Dget_space(dataset), h5.H5Sclose);
  const Hdf5Object plan(h5.H5Dget_create_plist(dataset), h5.H5Pclose);
  if (!type.ok() || !space.ok() || !plan.ok()) bad(found.where, "cannot be opened (damaged)");
  const int axes = h5.H5Sget_simple_extent_ndims(space.id());
  if (axes < 0 || axes > kMaxDimensions) bad(found.where, "has a shape that makes no sense (damaged)");
  std::vector<Hsize> lengths(static_cast<std::size_t>(axes));
  if (axes > 0) h5.H5Sget_simple_extent_dims(space.id(), lengths.data(), nullptr);
  for (const Hsize length : lengths) {
    if (length > static_cast<Hsize>(INT64_MAX)) bad(found.where, "has a length beyond 2^63 in its shape");
    found.header.shape.push_back(static_cast<std::int64_t>(length));
  }
  found.header.descr = descr_of(h5, type.id(), found.why);
  constexpr int kVirtual = 3;
  if (h5.H5Pget_external_count(plan.id()) > 0 || h5.H5Pget_layout(plan.id()) == kVirtual) {
    found.why = "has its values in other files, which are not read";
  } else if (h5.H5Sget_simple_extent_type(space.id()) == 2) {
    found.why = "is empty";
  }
  found.readable = found.why.empty();
  if (found.header.descr.empty()) found.header.descr = "other";
  return found;
}

class File {
 public:
  File(const Hdf5Library& h5, const Bytes& bytes, const std::string& file)
      : h5_(h5), access_(h5.H5Pcreate(h5.file_access), h5.H5Pclose), file_(open(bytes), h5.H5Fclose), name_(file) {
    if (!file_.ok()) bad(fmt::format("'{}'", file), "is a damaged or truncated HDF5 file");
  }

  std::vector<Hdf5Dataset> list(const Context& ctx) const {
    std::vector<Hdf5Dataset> found;
    list(ctx, "", found, 0);
    return found;
  }

  /// Reads `dataset` as it is stored.
  RawArray read(const Context& ctx, const Hdf5Dataset& dataset, const Bytes& bytes) const;

 private:
  [[nodiscard]] Hid open(const Bytes& bytes) const {
    constexpr std::size_t kIncrement = std::size_t{1} << 20;
    if (h5_.H5Pset_fapl_core(access_.id(), kIncrement, false) < 0) return -1;
    // The library copies the bytes; it does not write to them.
    if (h5_.H5Pset_file_image(access_.id(), const_cast<unsigned char*>(bytes.data), bytes.size) < 0) return -1;
    return h5_.H5Fopen("in memory", 0, access_.id());
  }

  /// What stands under several names is listed once, by the shortest: the datasets of a group come before its groups.
  void list(const Context& ctx, const std::string& group, std::vector<Hdf5Dataset>& found, int depth) const {
    const Hdf5Object here(h5_.H5Oopen(file_.id(), group.empty() ? "/" : group.c_str(), 0), h5_.H5Oclose);
    H5GroupInfo info{};
    if (!here.ok() || h5_.H5Gget_info(here.id(), &info) < 0) bad(fmt::format("'{}'", name_), "has a damaged group");
    std::vector<std::string> groups;
    for (Hsize i = 0; i < info.links; ++i) {
      ctx.check_cancelled();
      char name[1024] = {};
      const std::ptrdiff_t length = h5_.H5Lget_name_by_idx(here.id(), ".", 0, 0, i, name, sizeof name, 0);
      if (length < 0) bad(fmt::format("'{}'", name_), "has a damaged group");
      H5LinkInfo link{};
      if (length >= static_cast<std::ptrdiff_t>(sizeof name) || h5_.link_info(here.id(), name, &link, 0) < 0) continue;
      if (link.type != 0 || !seen_.insert(link.address).second) continue;
      const Hdf5Object object(h5_.H5Oopen(here.id(), name, 0), h5_.H5Oclose);
      if (!object.ok()) bad(fmt::format("'{}'", name_), fmt::format("has a damaged object '{}'", shown(name)));
      const int kind = h5_.H5Iget_type(object.id());
      const std::string path = group.empty() ? name : group + "/" + name;
      if (kind == kGroup) groups.push_back(path);
      if (kind == kDataset) found.push_back(describe(h5_, object.id(), path, name_));
    }
    for (const std::string& path : groups) {
      if (depth == kMaxDepth) bad(fmt::format("'{}'", name_), fmt::format("has groups within groups, {} deep", depth));
      list(ctx, path, found, depth + 1);
    }
  }

  const Hdf5Library& h5_;
  Hdf5Object access_;
  Hdf5Object file_;
  const std::string& name_;
  mutable std::set<std::uint64_t> seen_;  // addresses of objects
};

/// Rows at a time: some MiB, and whole chunks of the file where it is made of chunks.
Hsize rows_a_block(const Hdf5Library& h5, Hid dataset, const std::vector<Hsize>& shape, std::uint64_t row_bytes) {
  Hsize rows = std::max<Hsize>(1, (Hsize{8} << 20) / std::max<std::uint64_t>(1, row_bytes));
  const Hdf5Object plan(h5.H5Dget_create_plist(dataset), h5.H5Pclose);
  constexpr int kChunked = 2;
  if (plan.ok() && h5.H5Pget_layout(plan.id()) == kChunked) {
    std::vector<Hsize> chunk(shape.size());
    const int axes = static_cast<int>(shape.size());
    if (h5.H5Pget_chunk(plan.id(), axes, chunk.data()) == axes && chunk[0] > 0) {
      rows = (std::min(rows, shape[0]) + chunk[0] - 1) / chunk[0] * chunk[0];
    }
  }
  return rows;
}

RawArray File::read(const Context& ctx, const Hdf5Dataset& dataset, const Bytes& bytes) const {
  if (!dataset.readable) bad(dataset.where, dataset.why);
  RawArray array;
  array.where = dataset.where;
  array.header = dataset.header;
  array.header.type = parse_type(dataset.header.descr, dataset.where, true);
  const std::uint64_t size = count_bytes(array.header, dataset.where);
  const std::string job = fmt::format("reading {}", dataset.where);
  std::uint64_t need = 0;
  if (__builtin_add_overflow(size, bytes.size + bytes.held, &need)) need = UINT64_MAX;
  core::require_memory(ctx, need, job);
  const std::shared_ptr<unsigned char> out = allocate(size, job);
  array.bytes.data = out.get();
  array.bytes.size = size;
  array.bytes.owner = out;
  if (size == 0 || array.header.shape.empty()) return array;

  const Hdf5Object set(h5_.H5Oopen(file_.id(), dataset.name.c_str(), 0), h5_.H5Oclose);
  const Hdf5Object type(h5_.H5Dget_type(set.id()), h5_.H5Tclose);
  const Hdf5Object space(h5_.H5Dget_space(set.id()), h5_.H5Sclose);
  const std::vector<Hsize> shape(array.header.shape.begin(), array.header.shape.end());
  const std::uint64_t row_bytes = size / shape[0];
  const Hsize step = rows_a_block(h5_, set.id(), shape, row_bytes);
  std::vector<Hsize> start(shape.size(), 0);
  for (Hsize row = 0; row < shape[0]; row += step) {
    ctx.check_cancelled();
    ctx.report("read", static_cast<double>(row) / static_cast<double>(shape[0]));
    std::vector<Hsize> count = shape;
    count[0] = std::min(step, shape[0] - row);
    start[0] = row;
    const Hdf5Object memory(h5_.H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), h5_.H5Sclose);
    const bool read = h5_.H5Sselect_hyperslab(space.id(), 0, start.data(), nullptr, count.data(), nullptr) >= 0 &&
                      h5_.H5Dread(set.id(), type.id(), memory.id(), space.id(), 0, out.get() + row * row_bytes) >= 0;
    if (!read) bad(dataset.where, fmt::format("cannot be read from row {} on (damaged, or a filter is missing)", row));
  }
  return array;
}

[[noreturn]] void ask_for_name(const std::vector<Hdf5Dataset>& sets, const std::string& file, std::string_view what) {
  constexpr std::size_t kMaxShown = 20;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMaxShown, sets.size()); ++i) names.push_back(shown(sets[i].name));
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has {}; its datasets are {}{}", file, what,
                                                       fmt::join(names, ", "), sets.size() > kMaxShown ? ", ..." : ""));
}

/// The library's type for NumPy's letters; to be closed.
Hid type_for(const Hdf5Library& h5, const std::string& dtype) {
  if (dtype == "|u1") return h5.H5Tcopy(h5.u8);
  if (dtype == "<i8") return h5.H5Tcopy(h5.i64);
  if (dtype == "<f4") return h5.H5Tcopy(h5.f32);
  if (dtype == "<f8") return h5.H5Tcopy(h5.f64);
  const FloatFields& fields = dtype == "<f2" ? kHalf : kBrain;
  const Hid type = h5.H5Tcopy(h5.f32);
  h5.H5Tset_fields(type, fields.sign, fields.exponent, fields.exponent_bits, fields.mantissa, fields.mantissa_bits);
  h5.H5Tset_size(type, 2);
  h5.H5Tset_ebias(type, fields.bias);
  return type;
}

}  // namespace

bool is_hdf5(const Bytes& bytes) noexcept {
  static constexpr unsigned char kMagic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return bytes.size >= sizeof kMagic && std::memcmp(bytes.data, kMagic, sizeof kMagic) == 0;
}

std::vector<Hdf5Dataset> list_hdf5(const Context& ctx, const Bytes& bytes, const std::string& file) {
  const Hdf5Library& h5 = hdf5_library(file);
  core::require_memory(ctx, bytes.size + bytes.held, fmt::format("reading '{}'", file));
  const Hdf5Session session(h5);
  return File(h5, bytes, file).list(ctx);
}

RawArray read_hdf5(const Context& ctx, const Bytes& bytes, const std::string& file, const std::string& name,
                   std::size_t axes) {
  const Hdf5Library& h5 = hdf5_library(file);
  core::require_memory(ctx, bytes.size + bytes.held, fmt::format("reading '{}'", file));
  const Hdf5Session session(h5);
  const File source(h5, bytes, file);
  const std::vector<Hdf5Dataset> sets = source.list(ctx);
  if (sets.empty()) bad(fmt::format("'{}'", file), "has no datasets");
  const Hdf5Dataset* chosen = nullptr;
  std::int64_t matches = 0;
  for (const Hdf5Dataset& set : sets) {
    const bool match = name.empty() ? sets.size() == 1 || set.header.shape.size() == axes : set.name == name;
    if (!match) continue;
    chosen = &set;
    ++matches;
  }
  if (name.empty() && matches != 1) {
    ask_for_name(sets, file, fmt::format("{} datasets of {} axes, so one must be named", matches, axes));
  }
  if (matches == 0) ask_for_name(sets, file, fmt::format("no dataset '{}'", shown(name)));
  return source.read(ctx, *chosen, bytes);
}

Bytes make_hdf5(const Context& ctx, const std::vector<NamedArray>& arrays, const std::string& file) {
  const Hdf5Library& h5 = hdf5_library(file);
  std::uint64_t total = 0;
  for (const NamedArray& array : arrays) total += bytes_of(array.array);
  const std::string job = fmt::format("writing '{}'", file);
  core::require_memory(ctx, 2 * total, job);
  const Hdf5Session session(h5);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::io, fmt::format("cannot write '{}': libhdf5 refuses {}", file, what));
  };
  const Hdf5Object access(h5.H5Pcreate(h5.file_access), h5.H5Pclose);
  const Hdf5Object plan(h5.H5Pcreate(h5.dataset_create), h5.H5Pclose);
  if (h5.H5Pset_fapl_core(access.id(), total + 65536, false) < 0 || h5.H5Pset_obj_track_times(plan.id(), false) < 0) {
    fail("a file in memory");
  }
  constexpr unsigned kTruncate = 2;
  const Hdf5Object out(h5.H5Fcreate("in memory", kTruncate, 0, access.id()), h5.H5Fclose);
  if (!out.ok()) fail("a file in memory");
  for (const NamedArray& array : arrays) {
    ctx.check_cancelled();
    const std::vector<Hsize> shape(array.array.shape.begin(), array.array.shape.end());
    const Hdf5Object type(type_for(h5, array.array.dtype), h5.H5Tclose);
    const Hdf5Object space(h5.H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), h5.H5Sclose);
    const Hdf5Object set(h5.H5Dcreate2(out.id(), array.name.c_str(), type.id(), space.id(), 0, plan.id(), 0),
                         h5.H5Dclose);
    if (!set.ok() || h5.H5Dwrite(set.id(), type.id(), 0, 0, 0, array.array.data) < 0) fail("a dataset");
  }
  h5.H5Fflush(out.id(), 1);
  const std::ptrdiff_t size = h5.H5Fget_file_image(out.id(), nullptr, 0);
  if (size < 0) fail("its own bytes");
  const std::shared_ptr<unsigned char> image = allocate(static_cast<std::uint64_t>(size), job);
  if (h5.H5Fget_file_image(out.id(), image.get(), static_cast<std::size_t>(size)) < 0) fail("its own bytes");
  Bytes bytes;
  bytes.data = image.get();
  bytes.size = static_cast<std::uint64_t>(size);
  bytes.owner = image;
  return bytes;
}

}  // namespace vicinal::io
