// See npz.hpp. A stored member is used where it lies in the file's bytes; only its checksum is computed.
#include "io/npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/npy.hpp"
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::vector<NpzMember> find_arrays(const Context& ctx, const Bytes& archive, const std::string& file) {
  std::vector<NpzMember> arrays;
  for (ZipMember& member : list_zip(ctx, archive, file)) {
    if (!member.name.ends_with(kSuffix)) continue;
    NpzMember array;
    array.name = member.name.substr(0, member.name.size() - kSuffix.size());
    array.where = fmt::format("'{}' array '{}'", file, shown(array.name));
    array.member = std::move(member);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

void read_header(const Context& ctx, const Bytes& archive, NpzMember& array) {
  ctx.check_cancelled();
  array.header =
      parse_npy_header(read_member_prefix(ctx, archive, array.member, array.where, kNpyHeaderLimit), array.where, true);
}

/// scipy.sparse.save_npz writes the parts of a matrix.
void refuse_sparse(const std::vector<NpzMember>& arrays, const std::string& file) {
  const auto has = [&](std::string_view name) {
    return std::any_of(arrays.begin(), arrays.end(), [&](const NpzMember& array) { return array.name == name; });
  };
  if (!has("data") || !has("format") || !has("shape") || !(has("indices") || has("row"))) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("'{}' is a sparse matrix of SciPy, which vicinal does not read: save it dense, in Python by "
                          "numpy.save(..., matrix.toarray())",
                          file));
}

[[noreturn]] void ask_for_name(const std::vector<NpzMember>& arrays, const std::string& file, std::string_view what) {
  constexpr std::size_t kMaxShown = 20;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMaxShown, arrays.size()); ++i) names.push_back(shown(arrays[i].name));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' has {}; its arrays are {}{}", file, what, fmt::join(names, ", "),
                          arrays.size() > kMaxShown ? ", ..." : ""));
}

}  // namespace

std::vector<NpzMember> list_npz(const Context& ctx, const Bytes& archive, const std::string& file) {
  std::vector<NpzMember> arrays = find_arrays(ctx, archive, file);
  for (NpzMember& array : arrays) read_header(ctx, archive, array);
  return arrays;
}

RawArray read_npz(const Context& ctx, const Bytes& archive, const std::string& file, const std::string& name,
                  std::size_t axes, bool bfloat16) {
  std::vector<NpzMember> arrays = find_arrays(ctx, archive, file);
  if (arrays.empty()) throw Error(ErrorCode::bad_data, fmt::format("'{}' has no arrays", file));
  const NpzMember* chosen = nullptr;
  std::int64_t matches = 0;
  for (NpzMember& array : arrays) {
    bool match = array.name == name;
    if (name.empty() && arrays.size() > 1) {
      read_header(ctx, archive, array);
      match = array.header.shape.size() == axes;
    } else if (name.empty()) {
      match = true;
    }
    if (!match) continue;
    chosen = &array;
    ++matches;
  }
  if (name.empty() && matches != 1) {
    refuse_sparse(arrays, file);
    ask_for_name(arrays, file, fmt::format("{} arrays of {} axes, so one must be named", matches, axes));
  }
  if (matches == 0) ask_for_name(arrays, file, fmt::format("no array '{}'", name));
  if (matches > 1) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' has {} arrays named '{}'", file, matches, name));
  }
  return parse_npy(read_member(ctx, archive, chosen->member, chosen->where), chosen->where, bfloat16);
}

}  // namespace vicinal::io
