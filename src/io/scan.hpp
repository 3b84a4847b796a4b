// Scans of text of any length that poll the cancel token (contract clause 11): a file may be one line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/csv_fields.hpp"
#include "vicinal/context.hpp"

namespace vicinal::io {

/// Bytes between two polls: some milliseconds at the pace of a loop over characters.
inline constexpr std::int64_t kScanBlock = std::int64_t{4} << 20;

/// `block(p, stop)` for the text in pieces, until one returns false.
template <class Block>
void scan_blocks(const Context& ctx, const char* p, const char* end, const Block& block) {
  while (end - p > kScanBlock) {
    if (!block(p, p + kScanBlock)) return;
    p += kScanBlock;
    ctx.check_cancelled();
  }
  block(p, end);
}

/// Where `c` stands first, or `end`.
inline const char* find_char(const Context& ctx, const char* begin, const char* end, char c) {
  const char* found = end;
  scan_blocks(ctx, begin, end, [&](const char* p, const char* stop) {
    const void* const at = std::memchr(p, c, static_cast<std::size_t>(stop - p));
    if (at != nullptr) found = static_cast<const char*>(at);
    return at == nullptr;
  });
  return found;
}

/// The first character that `stops` is true of, or `end`.
template <class Stops>
const char* find_where(const Context& ctx, const char* begin, const char* end, const Stops& stops) {
  const char* found = end;
  scan_blocks(ctx, begin, end, [&](const char* p, const char* stop) {
    found = std::find_if(p, stop, stops);
    return found == stop;
  });
  return found;
}

/// As the other one, for any number of lines.
inline std::int64_t skip_blank_lines(const Context& ctx, const Dialect& dialect, const char*& p, const char* end) {
  std::int64_t lines = 0;
  for (;;) {
    const std::int64_t more = skip_blank_lines(dialect, p, end, kScanBlock);
    if (more == 0) return lines;
    lines += more;
    ctx.check_cancelled();
  }
}

inline std::int64_t count_char(const Context& ctx, const char* begin, const char* end, char c) {
  std::int64_t count = 0;
  scan_blocks(ctx, begin, end, [&](const char* p, const char* stop) {
    count += std::count(p, stop, c);
    return true;
  });
  return count;
}

}  // namespace vicinal::io
