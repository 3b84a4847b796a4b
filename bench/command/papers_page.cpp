// See papers_page.hpp.
#include "command/papers_page.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "command/page_parts.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"

namespace vicinal::cli {
namespace {

struct PaperName {
  const char* name;
  const char* of;
};

constexpr PaperName kPaperNames[] = {
    {"GS", "Liu, Zheng and Liu 2019: k nearest neighbors"},
    {"LOF", "Tian, Hua and Lu 2015: outliers"},
    {"LLE", "Li, Yan and Zhang 2021: locally linear embedding"},
    {"KM", "A tutorial of 2014: k-means"},
    {"CC", "Zhang, Liu, Yang, Gong and Huang 2013: co-clusters of maps"},
};

std::string table_row(const std::vector<std::string>& cells, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += fmt::format("<{0}>{1}</{0}>", tag, words(cell));
  return text + "</tr>\n";
}

/// Texts of figures are sentences, which may break; numbers may not.
std::string figure_rows(const std::vector<PaperFigure>& figures) {
  std::string text;
  for (const PaperFigure& figure : figures) {
    text += fmt::format("<tr><td class=\"name\" {}>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", kWords,
                        words(figure.what), words(figure.paper), words(figure.here),
                        figure.ratio ? report::number_text(*figure.ratio, 3) : "-");
  }
  return text;
}

std::string verdict_text(const Verdict& verdict) {
  if (verdict.checked == 0) return "not verified";
  if (verdict.wrong > 0) {
    return fmt::format("{} of {} checked answers are wrong", report::count_text(verdict.wrong),
                       report::count_text(verdict.checked));
  }
  return fmt::format("{} checked answers equal the reference", report::count_text(verdict.checked));
}

std::string section(const PaperTable& table, const std::string& cut) {
  std::string text =
      fmt::format("<section>\n<h2>{}: {}{}</h2>\n<p class=\"note\">{}, {}.{}</p>\n", report::escape(table.paper),
                  report::escape(table.title), table.is_synthetic ? " (synthetic rows)" : "",
                  report::escape(table.device), verdict_text(table.verdict), report::escape(cut));
  text += fmt::format("<p><strong>The paper:</strong> {}</p>\n", report::escape(table.says));
  text += fmt::format("<p><strong>What differs:</strong> {}</p>\n", report::escape(table.differs));
  if (!table.figures.empty()) {
    text += "<table><thead>" + table_row({"", "in the paper", "here", "times as good"}, "th") + "</thead><tbody>" +
            figure_rows(table.figures) + "</tbody></table>\n";
  }
  for (const report::Drawing& drawing : table.drawings) text += chart(drawing);
  if (table.rows.empty()) return text + "</section>\n";
  text += fmt::format(
      "<details style=\"margin-top:18px\"{}><summary>{} line{}</summary>\n<table><thead>{}</thead><tbody>\n",
      table.rows.size() <= 16 ? " open" : "", table.rows.size(), table.rows.size() == 1 ? "" : "s",
      table_row(table.head, "th"));
  for (const auto& row : table.rows) text += table_row(row, "td");
  return text + "</tbody></table></details>\n</section>\n";
}

std::string gpu_text(const Json& machine) {
  std::set<std::string> names;
  for (const Json& device : machine["cuda"]["devices"]) names.insert(device["model"].get<std::string>());
  if (!machine["cuda"]["usable"].get<bool>() || names.empty()) return "none";
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string machine_facts(const Json& head, const std::string& sizes) {
  const Json& machine = head["machine"];
  return "<dl class=\"facts\">\n" + report::fact("Processor", machine["cpu"].get<std::string>()) +
         report::fact("Cores", fmt::format("{}", machine["cores_used"].get<int>())) +
         report::fact("Instructions", machine["isa"].get<std::string>()) +
         report::fact("Memory", format_bytes(machine["memory_total_bytes"].get<double>())) +
         report::fact("GPU", gpu_text(machine)) + report::fact("Date", head["date"].get<std::string>()) +
         report::fact("Version", head["version"].get<std::string>()) +
         report::fact("Commit", head["commit"].is_null() ? "unknown" : head["commit"].get<std::string>()) +
         report::fact("Sizes", sizes, true) + "</dl>\n";
}

std::string hero(const std::vector<PaperTable>& tables, const Verdict& verdict) {
  std::int64_t synthetic = 0;
  for (const PaperTable& table : tables) synthetic += table.is_synthetic ? 1 : 0;
  return "<div class=\"hero\">\n" + report::figure(report::count_text(std::ssize(tables)), "tables") +
         report::figure(report::count_text(synthetic), "of them of synthetic rows") +
         report::figure(report::count_text(verdict.checked), "answers checked") +
         report::figure(report::count_text(verdict.wrong), "of them wrong") + "</div>\n";
}

/// All figures that a paper gives, in one table.
std::string summary(const std::vector<PaperTable>& tables) {
  std::string rows;
  for (const PaperTable& table : tables) {
    for (const PaperFigure& figure : table.figures) {
      rows += fmt::format(
          "<tr><td class=\"name\" style=\"min-width:44px\">{}</td><td class=\"words\" "
          "{}>{}{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td></tr>\n",
          report::escape(table.paper), kWords, words(figure.what + ", " + table.device),
          table.is_synthetic ? " (synthetic rows)" : "", words(figure.paper), words(figure.here),
          figure.ratio ? report::number_text(*figure.ratio, 3) : "-");
    }
  }
  return "<section>\n<h2>The papers' figures next to ours</h2>\n<p class=\"note\">The papers' machines are older; a "
         "ratio "
         "compares what their methods took there with what ours take here.</p>\n<table><colgroup><col "
         "style=\"width:9%\"><col style=\"width:43%\"></colgroup><thead>" +
         table_row({"paper", "what", "in the paper", "here", "times as good"}, "th") + "</thead><tbody>" + rows +
         "</tbody></table>\n</section>\n";
}

std::string names_of_papers() {
  std::string text = "<section>\n<h2>The papers</h2>\n<table><colgroup><col style=\"width:9%\"></colgroup><tbody>";
  for (const PaperName& one : kPaperNames) {
    text += fmt::format("<tr><td class=\"name\">{}</td><td class=\"words\">{}</td></tr>\n", one.name, one.of);
  }
  return text + "</tbody></table>\n</section>\n";
}

}  // namespace

std::string papers_page(const Json& head, const PaperSizes& sizes, const Verdict& verdict,
                        const std::vector<PaperTable>& tables) {
  const std::string cut = sizes.cut ? " Tables are cut to " + report::count_text(sizes.most_rows) + " rows." : "";
  std::string body =
      "<header><p class=\"over\">vicinal-bench papers</p>\n<h1>Five papers, measured on this machine</h1>\n"
      "<p>Tables and figures of the papers, with their methods and ours; answers are compared with src/reference.</p>"
      "</header>\n";
  body += hero(tables, verdict) + machine_facts(head, sizes.text) + summary(tables) + names_of_papers();
  for (const PaperTable& table : tables) body += section(table, cut);
  return report::page("Five papers, measured on this machine", body + report::footer("No network, no scripts."));
}

}  // namespace vicinal::cli
