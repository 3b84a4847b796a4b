// NumPy's .npy: header versions 1, 2 and 3.
#pragma once

#include "io/array.hpp"

namespace vicinal::io {

/// Whether the bytes begin with "\x93NUMPY".
bool is_npy(const Bytes& bytes) noexcept;

/// Parses the header; `bytes` may be a prefix of the file that holds at least that. `where` opens sentences.
/// `bfloat16` as for `parse_type`.
ArrayHeader parse_npy_header(const Bytes& bytes, const std::string& where, bool bfloat16 = false);

/// Enough bytes of a file for any header that is accepted.
inline constexpr std::uint64_t kNpyHeaderLimit = 12 + 65536;

/// Header and elements of a whole file; the content must be exactly as long as the header says.
RawArray parse_npy(const Bytes& bytes, const std::string& where, bool bfloat16 = false);

/// The header of an array that follows it, padded so that the elements begin at a multiple of 64.
VICINAL_API std::string make_npy_header(const ArrayView& array);

/// Bytes of the elements of an array to write; throws `invalid_argument` for an unknown dtype or an impossible shape.
std::uint64_t bytes_of(const ArrayView& array);

}  // namespace vicinal::io
