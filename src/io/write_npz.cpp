// Writing of .npz: arrays are stored and begin at multiples of 64, so that they can be mapped. The same arrays give the
// same bytes: archives carry no date.
#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "core/entry.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace io {
namespace {

constexpr std::uint64_t kSaturated = 0xffffffffU;
constexpr std::uint16_t kOldestDate = 0x21;  // 1980-01-01, the first day zip knows

/// Little-endian fields one after the other.
class Record {
 public:
  Record& u16(std::uint64_t value) { return put(value, 2); }
  Record& u32(std::uint64_t value) { return put(value, 4); }
  Record& u64(std::uint64_t value) { return put(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  Record& zeros(std::uint64_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  Record& put(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return *this;
  }
  std::string bytes_;
};

bool is_big(std::uint64_t value) {
  return value >= kSaturated;
}

/// What the local header and the directory entry have in common, from "version needed" to the sizes.
void common_fields(Record& record, const NpzEntry& member, bool zip64) {
  constexpr std::uint64_t kUtf8Names = 1 << 11;
  const std::uint64_t size = is_big(member.size) ? kSaturated : member.size;
  record.u16(zip64 ? 45 : 20).u16(kUtf8Names).u16(0).u16(0).u16(kOldestDate).u32(member.crc).u32(size).u32(size);
}

std::string local_header(const NpzEntry& member) {
  constexpr std::uint64_t kFixed = 30;
  constexpr std::uint64_t kAlignment = 64;
  constexpr std::uint64_t kPaddingId = 0xd935;  // the id that archive aligners use
  const std::uint64_t zip64 = is_big(member.size) ? 20 : 0;
  const std::uint64_t unpadded = member.offset + kFixed + member.name.size() + zip64 + 4;
  const std::uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  Record record;
  record.text("PK\3\4");
  common_fields(record, member, zip64 != 0);
  record.u16(member.name.size()).u16(zip64 + 4 + padding).text(member.name);
  if (zip64 != 0) record.u16(1).u16(16).u64(member.size).u64(member.size);
  record.u16(kPaddingId).u16(padding).zeros(padding);
  return record.bytes();
}

std::string directory_entry(const NpzEntry& member) {
  Record extra;
  if (is_big(member.size)) extra.u64(member.size).u64(member.size);
  if (is_big(member.offset)) extra.u64(member.offset);
  const bool zip64 = !extra.bytes().empty();
  Record record;
  record.text("PK\1\2").u16(45);
  common_fields(record, member, zip64);
  record.u16(member.name.size()).u16(zip64 ? extra.bytes().size() + 4 : 0).u16(0).u16(0).u16(0).u32(0);
  record.u32(is_big(member.offset) ? kSaturated : member.offset).text(member.name);
  if (zip64) record.u16(1).u16(extra.bytes().size()).text(extra.bytes());
  return record.bytes();
}

std::string directory_end(std::uint64_t entries, std::uint64_t offset, std::uint64_t size) {
  Record record;
  const bool zip64 = entries >= 0xffff || is_big(offset) || is_big(size);
  if (zip64) {
    const std::uint64_t at = offset + size;
    record.text("PK\6\6").u64(44).u16(45).u16(45).u32(0).u32(0).u64(entries).u64(entries).u64(size).u64(offset);
    record.text("PK\6\7").u32(0).u64(at).u32(1);
  }
  const std::uint64_t shown = std::min<std::uint64_t>(entries, 0xffff);
  record.text("PK\5\6").u16(0).u16(0).u16(shown).u16(shown);
  record.u32(std::min(size, kSaturated)).u32(std::min(offset, kSaturated)).u16(0);
  return record.bytes();
}

void check_names(std::span<const NamedArray> arrays) {
  std::set<std::string> seen;
  for (const NamedArray& array : arrays) {
    if (array.name.empty() || array.name.size() > 1000 || !seen.insert(array.name).second) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("an array of an npz file cannot be called '{}': names must be unique, 1 to 1000 bytes long",
                      array.name));
    }
  }
}

std::uint32_t checksum(const PackedFile& file, const void* data, std::uint64_t bytes) {
  constexpr std::uint64_t kChecked = std::uint64_t{1} << 24;
  uLong crc = 0;
  const auto* from = static_cast<const Bytef*>(data);
  for (std::uint64_t at = 0; at < bytes; at += kChecked) {
    file.poll();
    crc = crc32_z(crc, from + at, static_cast<z_size_t>(std::min(kChecked, bytes - at)));
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

void NpzWriter::begin(const std::string& name, const ArrayView& array, std::uint32_t crc) {
  const std::uint64_t bytes = bytes_of(array);
  const std::string header = make_npy_header(array);
  const uLong of_header = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  NpzEntry member;
  member.name = name + ".npy";
  member.size = header.size() + bytes;
  member.offset = file_.size();
  member.crc = static_cast<std::uint32_t>(crc32_combine(of_header, crc, static_cast<z_off_t>(bytes)));
  file_.write(local_header(member));
  file_.write(header);
  members_.push_back(std::move(member));
}

void NpzWriter::add(const std::string& name, const ArrayView& array) {
  const std::uint64_t bytes = bytes_of(array);
  begin(name, array, checksum(file_, array.data, bytes));
  file_.write(array.data, bytes);
}

void NpzWriter::finish() {
  const std::uint64_t directory = file_.size();
  for (const NpzEntry& member : members_) file_.write(directory_entry(member));
  file_.write(directory_end(members_.size(), directory, file_.size() - directory));
}

void write_npz_members(PackedFile& file, std::span<const NamedArray> arrays) {
  check_names(arrays);
  NpzWriter writer(file);
  for (const NamedArray& array : arrays) writer.add(array.name, array.array);
  writer.finish();
}

}  // namespace io

void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays) try {
  const core::Entry entry;
  io::PackedFile file(path);
  io::write_npz_members(file, arrays);
  file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
