// See shown.hpp. A terminal must not be driven by a hostile file, nor JSON be broken by one.
#include "io/shown.hpp"

namespace vicinal::io {
namespace {

/// Length of the UTF-8 character at `at`, 0 where there is none (overlong forms and surrogates included).
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool outside = (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90);
  const bool control = lead == 0xc2 && byte(1) < 0xa0;
  return overlong || outside || control ? 0 : length;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (result.size() + (length == 0 ? 1 : length) > kMost) return result + "...";
    if (length == 0) {
      result.push_back('?');
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[at++]);
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace vicinal::io
