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

std::uint64_t count_characters(const std::string& file, std::string_view text, std::int64_t row) {
  const std::string_view whole = text;
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) {
    if (take_character(text)) continue;
    throw Error(ErrorCode::bad_data, fmt::format("{}: the text '{}' of row {} is not UTF-8, which the texts of an npz "
                                                 "are; write .csv, or convert the file to UTF-8",
                                                 file, shown(whole), row));
  }
  return count;
}

/// The rows that are asked for.
struct Numbering {
  std::span<const std::int64_t> rows;
  std::int64_t size;

  Numbering(const RowIds& ids, std::span<const std::int64_t> given)
      : rows(given), size(given.empty() ? ids.size() : std::ssize(given)) {}
  [[nodiscard]] std::int64_t operator[](std::int64_t i) const {
    return rows.empty() ? i : rows[static_cast<std::size_t>(i)];
  }
};

/// Characters of the longest text, at least 1; 0 where all are whole numbers. Refuses what cannot be an array.
std::uint64_t width_of(const Context& ctx, const std::string& file, const RowIds& ids, const Numbering& numbers) {
  const auto size = static_cast<std::uint64_t>(numbers.size);
  if (ids.are_whole_numbers()) {
    core::require_memory(ctx, size * sizeof(std::int64_t), "writing the ids of rows");
    return 0;
  }
  core::Poll poll(ctx);
  std::uint64_t width = 1;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < numbers.size; ++i) {
    poll.step();
    const std::uint64_t characters = count_characters(file, ids[numbers[i]], numbers[i]);
    if (characters <= width) continue;
    width = characters;
    longest = numbers[i];
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(4 * width, size, &bytes)) bytes = UINT64_MAX;
  try {
    core::require_memory(
        ctx, bytes,
        fmt::format("{}: an npz with {} texts as long as that of row {} ({} characters)", file, size, longest, width));
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + "; write .csv, or shorten that text");
  }
  return width;
}

}  // namespace

void IdArray::check(const Context& ctx, const std::string& file, const RowIds& ids,
                    std::span<const std::int64_t> rows) {
  static_cast<void>(width_of(ctx, file, ids, Numbering(ids, rows)));
}

IdArray::IdArray(const Context& ctx, const std::string& file, const RowIds& ids, std::span<const std::int64_t> rows) {
  const Numbering numbers(ids, rows);
  size_ = numbers.size;
  width_ = width_of(ctx, file, ids, numbers);
  const auto size = static_cast<std::size_t>(size_);
  core::Poll poll(ctx);
  if (width_ == 0) {
    numbers_.resize(size);
    for (std::int64_t i = 0; i < size_; ++i) {
      poll.step();
      const std::string_view id = ids[numbers[i]];
      std::from_chars(id.data(), id.data() + id.size(), numbers_[static_cast<std::size_t>(i)]);
    }
    return;
  }
  characters_.resize(size * width_);
  for (std::int64_t i = 0; i < size_; ++i) {
    poll.step();
    std::uint32_t* at = characters_.data() + static_cast<std::uint64_t>(i) * width_;
    for (std::string_view id = ids[numbers[i]]; !id.empty();) *at++ = *take_character(id);
  }
}

ArrayView IdArray::view() const {
  if (width_ == 0) return {numbers_.data(), "<i8", {size_}};
  return {characters_.data(), fmt::format("<U{}", width_), {size_}};
}

}  // namespace vicinal::io
