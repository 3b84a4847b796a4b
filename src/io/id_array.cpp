// See id_array.hpp.
#include "io/id_array.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/memory.hpp"
#include "core/poll.hpp"
#include "io/shown.hpp"
#include "vicinal/error.hpp"

namespace vicinal::io {
namespace {

/// The character that `text` begins with, which is taken off; nothing where that is not UTF-8.
std::optional<std::uint32_t> take_character(std::string_view& text) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 0;
  if (length == 0 || length > text.size() || byte(0) > 0xf4) return std::nullopt;
  std::uint32_t character = length == 1 ? byte(0) : byte(0) & (0x7fU >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return std::nullopt;
    character = character << 6 | (byte(at) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_half = character >= 0xd800 && character < 0xe000;
  if (character < kLeast[length] || character > 0x10ffff || is_half) return std::nullopt;
  text.remove_prefix(length);
  return character;
}

std::uint64_t count_characters(std::string_view text, std::int64_t row) {
  const std::string_view whole = text;
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) {
    if (take_character(text)) continue;
    throw Error(ErrorCode::bad_data,
                fmt::format("ids: '{}' of row {} is not UTF-8, which the texts of an npz are", shown(whole), row));
  }
  return count;
}

}  // namespace

IdArray::IdArray(const Context& ctx, const RowIds& ids, std::span<const std::int64_t> rows)
    : size_(rows.empty() ? ids.size() : std::ssize(rows)) {
  const auto number_of = [&](std::int64_t i) { return rows.empty() ? i : rows[static_cast<std::size_t>(i)]; };
  const auto size = static_cast<std::size_t>(size_);
  core::Poll poll(ctx);
  if (ids.are_whole_numbers()) {
    core::require_memory(ctx, size * sizeof(std::int64_t), "writing the ids of rows");
    numbers_.resize(size);
    for (std::int64_t i = 0; i < size_; ++i) {
      poll.step();
      const std::string_view id = ids[number_of(i)];
      std::from_chars(id.data(), id.data() + id.size(), numbers_[static_cast<std::size_t>(i)]);
    }
    return;
  }
  width_ = 1;
  for (std::int64_t i = 0; i < size_; ++i) {
    poll.step();
    width_ = std::max(width_, count_characters(ids[number_of(i)], number_of(i)));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(4 * width_, static_cast<std::uint64_t>(size_), &bytes)) bytes = UINT64_MAX;
  core::require_memory(ctx, bytes, "writing the ids of rows, each as long as the longest,");
  characters_.resize(size * width_);
  for (std::int64_t i = 0; i < size_; ++i) {
    poll.step();
    std::uint32_t* at = characters_.data() + static_cast<std::uint64_t>(i) * width_;
    for (std::string_view id = ids[number_of(i)]; !id.empty();) *at++ = *take_character(id);
  }
}

ArrayView IdArray::view() const {
  if (width_ == 0) return {numbers_.data(), "<i8", {size_}};
  return {characters_.data(), fmt::format("<U{}", width_), {size_}};
}

}  // namespace vicinal::io
