// See unpack.hpp.
#include "io/unpack.hpp"

#include <algorithm>

#include "core/entry.hpp"
#include "io/bzip2.hpp"
#include "io/inflate.hpp"
#include "io/member.hpp"
#include "io/xz.hpp"

namespace vicinal {
namespace io {

Compression compression_of(const Bytes& bytes) noexcept {
  if (is_gzip(bytes)) return Compression::gzip;
  if (is_bzip2(bytes)) return Compression::bzip2;
  return is_xz(bytes) ? Compression::xz : Compression::none;
}

Bytes unpack(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most) {
  switch (compression_of(bytes)) {
    case Compression::gzip:
      return inflate_gzip(ctx, bytes, file, at_most);
    case Compression::xz:
      return decode_xz(ctx, bytes, file, at_most);
    case Compression::bzip2:
      return decode_bzip2(ctx, bytes, file, at_most);
    case Compression::zip:
    case Compression::none:
      break;
  }
  return bytes;
}

}  // namespace io

std::string_view name_of(Compression compression) noexcept {
  constexpr std::string_view kNames[] = {"none", "gzip", "xz", "bzip2", "zip"};
  return kNames[static_cast<std::size_t>(compression)];
}

FileBytes read_bytes(const Context& ctx, const std::filesystem::path& path, std::uint64_t at_most) try {
  const core::Entry entry;
  const io::Bytes bytes = io::unpack(ctx, io::open_file(ctx, io::place_of(path).file), path.string(), at_most);
  return {{bytes.data, static_cast<std::size_t>(std::min(bytes.size, at_most))}, bytes.owner};
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
