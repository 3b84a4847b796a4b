// See member.hpp.
#include "io/member.hpp"

#include <system_error>

namespace vicinal::io {

Place place_of(const std::filesystem::path& path) {
  const std::string& text = path.native();
  if (text == "-") return {"/dev/stdin", {}};
  std::error_code unknown;
  std::size_t colon = text.find(':');
  if (colon == std::string::npos || std::filesystem::exists(path, unknown)) return {path, {}};
  for (; colon != std::string::npos; colon = text.find(':', colon + 1)) {
    const std::filesystem::path file = text.substr(0, colon);
    if (colon + 1 < text.size() && std::filesystem::is_regular_file(file, unknown)) {
      return {file, text.substr(colon + 1)};
    }
  }
  return {path, {}};
}

}  // namespace vicinal::io
