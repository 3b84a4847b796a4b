// The idx format of the MNIST family: big-endian, element type and number of axes in the first four bytes.
#pragma once

#include "io/array.hpp"

namespace vicinal::io {

/// Whether the first four bytes are those of an idx file.
bool is_idx(const Bytes& bytes) noexcept;

/// Enough bytes for any header.
inline constexpr std::uint64_t kIdxHeaderLimit = 4 + 4 * 255;

/// The header; `bytes` may be a prefix that holds at least that.
ArrayHeader parse_idx_header(const Bytes& bytes, const std::string& where);

/// Header and elements of a whole file; the content must be exactly as long as the header says.
RawArray parse_idx(const Bytes& bytes, const std::string& where);

}  // namespace vicinal::io
