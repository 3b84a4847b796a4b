// Zip archives, as .npz files are: the central directory (ZIP64 too), members stored or deflated.
#pragma once

#include <string>
#include <vector>

#include "io/bytes.hpp"

namespace vicinal::io {

struct ZipMember {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t compressed = 0;
  std::uint64_t size = 0;
  std::uint64_t header = 0;  ///< where its local header is
};

/// Whether the bytes begin as an archive does (or are an empty one).
bool is_zip(const Bytes& bytes) noexcept;

/// The members in the order of the central directory. Throws `bad_data` for anything that does not add up,
/// `over_memory` where there are very many.
std::vector<ZipMember> list_zip(const Context& ctx, const Bytes& archive, const std::string& file);

/// A member's content; stored members are borrowed from the archive. The checksum is verified.
Bytes read_member(const Context& ctx, const Bytes& archive, const ZipMember& member, const std::string& where);

/// The first `at_most` bytes of a member, not verified.
Bytes read_member_prefix(const Context& ctx, const Bytes& archive, const ZipMember& member, const std::string& where,
                         std::uint64_t at_most);

/// CRC-32 of a piece of memory, by all threads.
std::uint32_t parallel_crc(const Context& ctx, const unsigned char* data, std::uint64_t size);

}  // namespace vicinal::io
