// What others wrote, as one sentence of ours.
#pragma once

#include <algorithm>
#include <string>

namespace vicinal::cli {

/// One sentence on one line, whoever wrote it.
inline std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto end = text.find_last_not_of(" \r\t");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.empty() ? "something failed without saying what" : text;
}

}  // namespace vicinal::cli
