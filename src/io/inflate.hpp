// Deflated bytes: gzip files (any number of members) and deflated members of zip archives.
#pragma once

#include "io/bytes.hpp"

namespace vicinal::io {

/// Whether the bytes begin as gzip does.
bool is_gzip(const Bytes& bytes) noexcept;

/// The inflated content; checksums are verified, truncation and anything after the last member are `bad_data`.
/// Memory grows with what comes out, never with what a header claims, up to the limit (`over_memory`). With `at_most`,
/// the first so many bytes (fewer when there are no more); nothing behind them is looked at.
Bytes inflate_gzip(const Context& ctx, const Bytes& bytes, const std::string& file, std::uint64_t at_most);

/// A raw deflate stream (zip method 8) that must give exactly `expected` bytes; with `at_most` below that, only a
/// prefix.
Bytes inflate_raw(const Context& ctx, const Bytes& bytes, const std::string& where, std::uint64_t expected,
                  std::uint64_t at_most);

}  // namespace vicinal::io
