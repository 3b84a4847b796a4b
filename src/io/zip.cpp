// See zip.hpp. Every offset and size comes from a file that may lie: sums are checked for overflow and for staying
// inside the archive before they are used. The central directory is the authority; of a local header only its length is
// taken.
#include "io/zip.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "io/bad_data.hpp"
#include "io/element.hpp"
#include "io/inflate.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::uint64_t kEntrySize = 46;
constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint32_t kSaturated32 = 0xffffffffU;

std::uint16_t u16(const unsigned char* at) {
  return load<std::uint16_t>(at, false);
}
std::uint32_t u32(const unsigned char* at) {
  return load<std::uint32_t>(at, false);
}
std::uint64_t u64(const unsigned char* at) {
  return load<std::uint64_t>(at, false);
}

bool inside(const Bytes& archive, std::uint64_t offset, std::uint64_t size) {
  return offset <= archive.size && size <= archive.size - offset;
}

bool has_signature(const Bytes& archive, std::uint64_t offset, const char* signature) {
  return inside(archive, offset, 4) && std::memcmp(archive.data + offset, signature, 4) == 0;
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t entries = 0;
};

Directory find_directory(const Bytes& archive, const std::string& where) {
  if (archive.size < kEndSize) bad(where, "is too short for a zip archive (truncated)");
  // The end record stands last, behind it only a comment of at most 65535 bytes.
  const std::uint64_t lowest = archive.size - std::min<std::uint64_t>(archive.size, kEndSize + 0xffff);
  std::uint64_t end = archive.size - kEndSize;
  while (!has_signature(archive, end, "PK\5\6") || u16(archive.data + end + 20) != archive.size - end - kEndSize) {
    if (end == lowest) bad(where, "has no zip directory (truncated)");
    --end;
  }
  const unsigned char* record = archive.data + end;
  Directory directory;
  directory.entries = u16(record + 10);
  directory.size = u32(record + 12);
  directory.offset = u32(record + 16);
  if (u16(record + 4) != u16(record + 6)) bad(where, "is one part of a zip archive in several files");
  if (end >= kLocatorSize && has_signature(archive, end - kLocatorSize, "PK\6\7")) {
    const std::uint64_t at = u64(archive.data + end - kLocatorSize + 8);
    if (!inside(archive, at, kEnd64Size) || !has_signature(archive, at, "PK\6\6")) {
      bad(where, "has a damaged ZIP64 directory");
    }
    directory.entries = u64(archive.data + at + 32);
    directory.size = u64(archive.data + at + 40);
    directory.offset = u64(archive.data + at + 48);
  }
  if (!inside(archive, directory.offset, directory.size)) bad(where, "has a zip directory outside the file");
  if (directory.entries > directory.size / kEntrySize) bad(where, "has a zip directory too short for its entries");
  return directory;
}

/// Takes the 64-bit values that stand in for saturated 32-bit ones.
void apply_zip64(ZipMember& member, const unsigned char* extra, std::uint64_t size, const std::string& where) {
  const bool wants[3] = {member.size == kSaturated32, member.compressed == kSaturated32, member.header == kSaturated32};
  std::uint64_t* const values[3] = {&member.size, &member.compressed, &member.header};
  for (std::uint64_t at = 0; at + 4 <= size;) {
    const std::uint64_t length = u16(extra + at + 2);
    if (length > size - at - 4) bad(where, "has a damaged zip directory");
    if (u16(extra + at) == 1) {
      std::uint64_t used = 0;
      for (int i = 0; i < 3; ++i) {
        if (!wants[i]) continue;
        if (used + 8 > length) bad(where, "has a damaged ZIP64 directory");
        *values[i] = u64(extra + at + 4 + used);
        used += 8;
      }
      return;
    }
    at += 4 + length;
  }
}

/// The compressed bytes of a member.
Bytes stored_bytes(const Bytes& archive, const ZipMember& member, const std::string& where) {
  if ((member.flags & 1) != 0) bad(where, "is encrypted");
  if (member.method != 0 && member.method != 8) {
    bad(where, fmt::format("is compressed by zip method {}; only stored (0) and deflated (8) are read", member.method));
  }
  if (!inside(archive, member.header, kLocalSize) || !has_signature(archive, member.header, "PK\3\4")) {
    bad(where, "has no local zip header where the directory says");
  }
  const unsigned char* local = archive.data + member.header;
  const std::uint64_t begin = member.header + kLocalSize + u16(local + 26) + u16(local + 28);
  if (!inside(archive, begin, member.compressed)) bad(where, "reaches beyond the end of the file (truncated)");
  if (member.method == 0 && member.compressed != member.size) bad(where, "is stored but has two different sizes");
  Bytes bytes = archive;
  bytes.data += begin;
  bytes.size = member.compressed;
  return bytes;
}

}  // namespace

bool is_zip(const Bytes& bytes) noexcept {
  return has_signature(bytes, 0, "PK\3\4") || has_signature(bytes, 0, "PK\5\6");
}

std::vector<ZipMember> list_zip(const Context& ctx, const Bytes& archive, const std::string& file) {
  const std::string where = fmt::format("'{}'", file);
  const Directory directory = find_directory(archive, where);
  // What a member takes here, as an array and in what is told of the file.
  constexpr std::uint64_t kMemberBytes = 800;
  constexpr std::uint64_t kFew = 4096;
  if (directory.entries > kFew) {
    core::require_memory(ctx, std::min(directory.entries, directory.size / kEntrySize) * kMemberBytes,
                         fmt::format("reading the directory of {}", where));
  }
  std::vector<ZipMember> members;
  std::uint64_t at = directory.offset;
  const std::uint64_t end = directory.offset + directory.size;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (i % kFew == 0) ctx.check_cancelled();
    if (end - at < kEntrySize || !has_signature(archive, at, "PK\1\2")) bad(where, "has a damaged zip directory");
    const unsigned char* entry = archive.data + at;
    const std::uint64_t name = u16(entry + 28);
    const std::uint64_t extra = u16(entry + 30);
    const std::uint64_t comment = u16(entry + 32);
    if (name + extra + comment > end - at - kEntrySize) bad(where, "has a damaged zip directory");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(entry + kEntrySize), name);
    member.flags = u16(entry + 8);
    member.method = u16(entry + 10);
    member.crc = u32(entry + 16);
    member.compressed = u32(entry + 20);
    member.size = u32(entry + 24);
    member.header = u32(entry + 42);
    apply_zip64(member, entry + kEntrySize + name, extra, where);
    members.push_back(std::move(member));
    at += kEntrySize + name + extra + comment;
  }
  return members;
}

Bytes read_member(const Context& ctx, const Bytes& archive, const ZipMember& member, const std::string& where) {
  Bytes bytes = stored_bytes(archive, member, where);
  if (member.method == 8) {
    bytes = inflate_raw(ctx, bytes, where, member.size, member.size);
    bytes.held += archive.held;
  }
  if (parallel_crc(ctx, bytes.data, bytes.size) != member.crc) bad(where, "is damaged (its checksum differs)");
  return bytes;
}

Bytes read_member_prefix(const Context& ctx, const Bytes& archive, const ZipMember& member, const std::string& where,
                         std::uint64_t at_most) {
  Bytes bytes = stored_bytes(archive, member, where);
  if (member.method == 8) return inflate_raw(ctx, bytes, where, member.size, at_most);
  bytes.size = std::min(bytes.size, at_most);
  return bytes;
}

std::uint32_t parallel_crc(const Context& ctx, const unsigned char* data, std::uint64_t size) {
  constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;  // some milliseconds
  const auto blocks = static_cast<std::int64_t>((size + kBlock - 1) / kBlock);
  std::vector<uLong> sums(static_cast<std::size_t>(blocks));
  const auto length = [&](std::int64_t block) {
    return std::min(kBlock, size - static_cast<std::uint64_t>(block) * kBlock);
  };
  std::atomic<std::int64_t> done{0};
  core::parallel_for(ctx, blocks, [&](std::int64_t block, int worker) {
    sums[static_cast<std::size_t>(block)] =
        crc32_z(0, data + static_cast<std::uint64_t>(block) * kBlock, static_cast<z_size_t>(length(block)));
    const std::int64_t finished = ++done;
    if (worker == 0) ctx.report("read", static_cast<double>(finished) / static_cast<double>(blocks));
  });
  uLong sum = crc32_z(0, nullptr, 0);
  for (std::int64_t block = 0; block < blocks; ++block) {
    sum = crc32_combine(sum, sums[static_cast<std::size_t>(block)], static_cast<z_off_t>(length(block)));
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace vicinal::io
