// See facts.hpp.
#include "report/facts.hpp"

#include <fmt/core.h>

#include "base/output.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

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

std::string clustering_facts(const std::string& file, const TableView& table,
                             std::span<const std::pair<std::string, std::string>> how, const Plan& plan) {
  std::string text = "<dl class=\"facts\">\n" + fact("File", file) +
                     fact("Table", fmt::format("{} x {} ({})", count_text(table.rows()), count_text(table.cols()),
                                               name_of(table.dtype())));
  for (const auto& [name, value] : how) text += fact(name, value);
  return text + fact("Ran as", ran_as(plan)) + fact("Version", "vicinal " VICINAL_VERSION) + "</dl>\n";
}

}  // namespace vicinal::cli::report
