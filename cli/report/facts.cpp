// See facts.hpp.
#include "report/facts.hpp"

#include <fmt/core.h>

#include "report/html.hpp"

namespace vicinal::cli::report {

std::string fact(const std::string& name, const std::string& value, bool wide) {
  std::string shown = escape(value);
  for (std::size_t at = shown.find('/'); at != std::string::npos; at = shown.find('/', at + 6)) {
    shown.insert(at + 1, "<wbr>");  // paths break at their folders
  }
  return fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>\n", wide ? " class=\"wide\"" : "", escape(name), shown);
}

std::string figure(const std::string& value, const std::string& name) {
  return fmt::format("<div class=\"figure\"><b>{}</b><span>{}</span></div>\n", value, escape(name));
}

}  // namespace vicinal::cli::report
