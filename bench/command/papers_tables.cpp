// See papers_tables.hpp. Each table has a function of its own that knows the fields of its lines.
#include "command/papers_tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "command/papers_bars.hpp"
#include "report/html.hpp"

namespace vicinal::cli {
namespace {

using Lines = std::vector<Json>;
using Value = std::function<std::optional<double>(const Json&)>;

Lines lines_of(const Json& table) {
  return {table["lines"].begin(), table["lines"].end()};
}

Verdict verdict_of(const Lines& lines) {
  Verdict verdict;
  for (const Json& line : lines) {
    verdict += {line.value("checked", std::int64_t{0}), line.value("wrong", std::int64_t{0})};
  }
  return verdict;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<double> median_of(const Json& line) {
  if (!line.contains("seconds")) return {};
  return line["seconds"]["median"].get<double>();
}

std::string number(std::optional<double> value, int digits = 3) {
  return value ? report::short_number(*value, digits) : std::string("-");
}

std::string with_unit(double value, const std::string& unit) {
  return report::short_number(value, 3) + " " + unit;
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return with_unit(seconds, "s");
  return seconds >= 1e-3 ? with_unit(1e3 * seconds, "ms") : with_unit(1e6 * seconds, "µs");
}

/// Lines of the same values of `names` in one row, with a column for each method.
struct Pivot {
  std::vector<std::vector<std::string>> keys;
  std::vector<std::map<std::string, Json>> lines;  // by method
};

Pivot pivot_of(const Lines& lines, const std::vector<std::string>& names, const std::string& by) {
  Pivot pivot;
  for (const Json& line : lines) {
    std::vector<std::string> key;
    key.reserve(names.size());
    for (const std::string& name : names) key.push_back(text_of(line[name]));
    if (pivot.keys.empty() || pivot.keys.back() != key) {
      pivot.keys.push_back(key);
      pivot.lines.emplace_back();
    }
    pivot.lines.back()[text_of(line[by])] = line;
  }
  return pivot;
}

std::optional<double> value_in(const std::map<std::string, Json>& lines, const std::string& method,
                               const Value& value) {
  const auto found = lines.find(method);
  return found == lines.end() ? std::optional<double>() : value(found->second);
}

/// Numbers as cells have their thousands apart.
std::string cell_of(const std::string& text) {
  const bool whole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 15;
  return whole ? format_count(std::stoll(text)) : text;
}

/// Columns of names, then of methods, then how many times `slow` takes the time of `fast`.
void fill(PaperTable& table, const Pivot& pivot, const std::vector<std::string>& names,
          const std::vector<std::string>& methods, const Value& value, const std::string& unit, const std::string& slow,
          const std::string& fast) {
  table.head = names;
  for (const std::string& method : methods) table.head.push_back(method + ", " + unit);
  if (slow != fast) table.head.push_back(slow + " / " + fast);
  for (std::size_t i = 0; i < pivot.keys.size(); ++i) {
    std::vector<std::string> row;
    for (const std::string& key : pivot.keys[i]) row.push_back(cell_of(key));
    for (const std::string& method : methods) row.push_back(number(value_in(pivot.lines[i], method, value)));
    const auto a = value_in(pivot.lines[i], slow, value);
    const auto b = value_in(pivot.lines[i], fast, value);
    if (slow != fast) row.push_back(a && b ? number(*a / *b) : "-");
    table.rows.push_back(std::move(row));
  }
}

/// A line for each method over a column of numbers, of the rows that are `chosen`.
report::Drawing curves(const Pivot& pivot, std::size_t x, const std::vector<std::string>& methods, const Value& value,
                       const std::string& label, const std::string& below,
                       const std::function<bool(const std::vector<std::string>&)>& chosen) {
  std::vector<report::Line> lines;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    report::Line line{methods[m], report::kind_color(static_cast<std::int64_t>(m)), false, {}};
    for (std::size_t i = 0; i < pivot.keys.size(); ++i) {
      const auto y = value_in(pivot.lines[i], methods[m], value);
      if (!chosen(pivot.keys[i]) || !y || !(*y > 0)) continue;
      line.points.push_back({std::stod(pivot.keys[i][x]), *y});
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return report::draw_lines(lines, label, below);
}

bool any_row(const std::vector<std::string>&) {
  return true;
}

std::vector<std::string> methods_of(const Json& table) {
  return table["methods"].get<std::vector<std::string>>();
}

/// Lines of a table in which a method takes less than each of the others.
std::string lines_ahead(const Pivot& pivot, const std::string& method, const std::vector<std::string>& others) {
  std::int64_t ahead = 0;
  for (const auto& lines : pivot.lines) {
    const auto ours = value_in(lines, method, median_of);
    bool first = ours.has_value();
    for (const std::string& other : others) {
      const auto theirs = value_in(lines, other, median_of);
      first = first && (!theirs || *ours < *theirs);
    }
    ahead += first ? 1 : 0;
  }
  return fmt::format("{} of {} lines", ahead, pivot.lines.size());
}

bool says_synthetic(const Lines& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const Json& line) {
    return line.contains("data") && text_of(line["data"]).starts_with("synthetic");
  });
}

PaperTable table_of(const std::string& paper, const std::string& title, const Json& result, const Lines& lines) {
  PaperTable table;
  table.paper = paper;
  table.title = title;
  table.device = result["device"].get<std::string>();
  table.verdict = verdict_of(lines);
  table.is_synthetic = says_synthetic(lines);
  return table;
}

// --- GS

PaperTable gs_by_k(const Json& result) {
  const Json& measured = result["tables"][0];
  const Lines lines = lines_of(measured);
  PaperTable table = table_of("GS", "Time against k", result, lines);
  table.is_synthetic = true;
  table.says =
      "1,200 test rows, 16,384 training rows of 32 columns on a GTX 750 Ti: the k-min search is faster up to k = "
      "46, the bitonic sort above.";
  table.differs =
      "For each further neighbor the k-min search repeats only the comparisons that the row found last had won, and "
      "each row whose bound lies below the k-th key is ranked in float64, so that the selections cross at another k "
      "than in the paper, or not at all; rows are standard normal.";
  const Pivot pivot = pivot_of(lines, {"k"}, "method");
  fill(table, pivot, {"k"}, methods_of(measured), median_of, "s", "product_timed", "fused");
  std::string crossing = fmt::format("none up to {}", pivot.keys.back()[0]);
  for (std::size_t i = pivot.keys.size(); i-- > 0;) {
    const auto kmin = value_in(pivot.lines[i], "product_kmin", median_of);
    const auto sort = value_in(pivot.lines[i], "product_bitonic", median_of);
    if (!kmin || !sort || *kmin < *sort) break;
    crossing = pivot.keys[i][0];
  }
  table.figures.push_back({"least k from which the bitonic sort is faster", "46", crossing, {}});
  table.drawings.push_back(curves(pivot, 0, methods_of(measured), median_of, "seconds over k", "k", any_row));
  return table;
}

PaperTable gs_by_size(const Json& result) {
  const Json& measured = result["tables"][1];
  const Lines lines = lines_of(measured);
  PaperTable table = table_of("GS", "Time against the size of the table, k = 25", result, lines);
  table.is_synthetic = true;
  table.says =
      "1,200 test rows, 2^10 to 2^15 training rows of up to 256 columns: up to 2.8 times as fast as the brute "
      "force of Garcia et al. on the same GPU (GTX 750 Ti), and up to 145 times as fast as ANN-C++ on an i5-4590.";
  table.differs =
      "The methods run on the same machine here, and insertion stands for Garcia's brute force; keys are float64. The "
      "145 is not comparable with a column here: it compares a GPU with a CPU, and our kd-tree is another program than "
      "ANN-C++, which bench/peers/gs_libann.py times.";
  const Pivot pivot = pivot_of(lines, {"n", "d"}, "method");
  fill(table, pivot, {"n", "d"}, methods_of(measured), median_of, "s", "product_timed", "fused");
  const auto& last = pivot.lines.back();
  const auto product = value_in(last, "product_timed", median_of);
  const std::string size =
      fmt::format(", n = {}, d = {}", format_count(std::stoll(pivot.keys.back()[0])), pivot.keys.back()[1]);
  const auto brute = value_in(last, "insertion", median_of);
  constexpr double kSaid = 2.8;
  PaperFigure figure{"brute force / product_timed" + size, number(kSaid), "-", {}};
  if (brute && product) {
    figure.here = number(*brute / *product);
    figure.ratio = *brute / *product / kSaid;
  }
  table.figures.push_back(figure);
  const std::string widest = pivot.keys.back()[1];
  table.drawings.push_back(curves(pivot, 0, methods_of(measured), median_of, "seconds over n, " + widest + " columns",
                                  "training rows", [&](const auto& key) { return key[1] == widest; }));
  return table;
}

PaperTable gs_attacks(const Json& result) {
  const Lines lines = lines_of(result["tables"][0]);
  PaperTable table = table_of("GS", "Attacks of unseen kinds in KDD Cup 99", result, lines);
  table.says =
      "5,000 training rows (4,900 normal ones, 100 attacks), 500 test rows with attacks of other kinds, ten "
      "draws: rates of detection and of false alarms equal those of a classifier on the CPU, but for ties that "
      "are cut differently at k.";
  table.differs =
      table.is_synthetic
          ? "The rows are synthetic, so that the rates are not the paper's; equal distances are cut by the "
            "smaller id on both sides, so that no prediction may differ."
          : "Equal distances are cut by the smaller id on both sides, so that no prediction may differ; which "
            "rows the paper drew is unknown.";
  table.head = {"k", "detected, %", "detected by the reference, %", "false alarms, %",
                "false alarms of the reference, %"};
  for (const Json& line : lines) {
    std::vector<std::string> row = {text_of(line["k"])};
    for (const char* const name :
         {"detection_rate", "reference_detection_rate", "false_alarm_rate", "reference_false_alarm_rate"}) {
      row.push_back(line[name].is_null() ? "-" : number(100 * line[name].get<double>(), 4));
    }
    table.rows.push_back(std::move(row));
  }
  table.figures.push_back({"predictions that differ from the reference's",
                           "only at ties",
                           table.verdict.checked > 0 ? fmt::format("{} of {}", format_count(table.verdict.wrong),
                                                                   format_count(table.verdict.checked))
                                                     : "-",
                           {}});
  return table;
}

// --- LOF

std::optional<double> most_of(const Lines& lines, const std::string& method, const char* field) {
  std::optional<double> most;
  for (const Json& line : lines) {
    if (line["method"] != method || !line.contains(field) || line[field].is_null()) continue;
    most = std::max(most.value_or(0), line[field].get<double>());
  }
  return most;
}

PaperTable lof_search(const Json& result) {
  const Json& measured = result["tables"][0];
  const Lines lines = lines_of(measured);
  PaperTable table = table_of("LOF", "Neighbors of 5,000 queries among 20,000 rows", result, lines);
  table.says =
      "KDD Cup 99 (41 columns), Poker (10) and Covertype (10), k = 20 to 100, on a Tesla M2090: distances at 266 "
      "GFLOP/s, selection at 26, and faster than insertion and a shared heap for every k.";
  table.differs =
      "Keys are float64 and their computation takes most of the time with all three methods; on a CPU the filter reads "
      "the keys once for each threshold, and the other two read them once, so that it is not ahead for every k. Its "
      "thresholds are k-distances of a sample of the rows. Our rate of distances counts three operations for each "
      "column of a pair of rows, our rate of selection each key once; we do not know how the paper counts operations.";
  const Pivot pivot = pivot_of(lines, {"data", "d", "k"}, "method");
  fill(table, pivot, {"data", "d", "k"}, methods_of(measured), median_of, "s", "direct_filter", "fused");
  std::vector<Bar> bars;
  for (const auto& [what, bar, field, said] :
       {std::tuple("rate of distances, GFLOP/s", "distances", "distance_gflops", 266.0),
        std::tuple("rate of selection, GFLOP/s (here: 10^9 keys/s)", "selection", "selected_gkeys", 26.0)}) {
    const auto ours = most_of(lines, "direct_filter", field);
    // No ratio: the paper may count other operations.
    table.figures.push_back({what, number(said), number(ours), {}});
    bars.push_back({std::string("paper: ") + bar, said, number(said), true});
    if (ours) bars.push_back({std::string("here: ") + bar, *ours, number(ours), false});
  }
  table.figures.push_back({"the filter is faster than insertion and the heap",
                           "every k",
                           lines_ahead(pivot, "direct_filter", {"insertion", "block_heap"}),
                           {}});
  table.drawings.push_back(draw_bars(bars, "rates, GFLOP/s; of selection here, 10^9 keys/s"));
  const std::string first = pivot.keys[0][0];
  table.drawings.push_back(curves(pivot, 2, methods_of(measured), median_of, "seconds over k, " + first, "k",
                                  [&](const auto& key) { return key[0] == first; }));
  return table;
}

PaperTable lof_scores(const Json& result) {
  const Json& measured = result["tables"][1];
  const Lines lines = lines_of(measured);
  PaperTable table = table_of("LOF", "The whole job: densities of the rows, scores of the queries", result, lines);
  table.says = "Nearly all of the time goes into the neighbors; the paper has no time of the whole job.";
  table.differs =
      "The densities of the 20,000 rows are computed in the same call, for which the paper's tables count nothing. A "
      "ratio below 1 says that the kd-tree is faster than fused, as it is where rows lie in clusters: it leaves out "
      "most of them unread.";
  const Pivot pivot = pivot_of(lines, {"data", "d", "k"}, "method");
  fill(table, pivot, {"data", "d", "k"}, methods_of(measured), median_of, "s", "kdtree", "fused");
  return table;
}

// --- LLE

PaperTable lle_search(const Json& result, std::size_t which) {
  const Json& measured = result["tables"][which];
  const Lines lines = lines_of(measured);
  const bool columns = which == 0;
  PaperTable table =
      table_of("LLE", columns ? "Neighbors within 2,048 rows, over columns" : "Neighbors within rows of 16 columns",
               result, lines);
  table.is_synthetic = true;
  table.says =
      columns ? "Of brute force with insertion and a kd-tree, both on the GPU, the kd-tree is faster for 2,048 rows "
                "of any number of columns. We do not know its hardware."
              : "Of brute force with insertion and a kd-tree, both on the GPU, the kd-tree is faster for 16 "
                "columns and any number of rows. We do not know its hardware.";
  table.differs =
      "Rows are standard normal, the hardest for a tree: with many columns it ranks all rows. Keys are float64. The "
      "paper does not say how its rows are distributed.";
  const std::string name = columns ? "d" : "n";
  const Pivot pivot = pivot_of(lines, {name}, "method");
  fill(table, pivot, {name}, methods_of(measured), median_of, "s", "tiled_insertion", "fused");
  table.figures.push_back(
      {std::string("the kd-tree is faster than tiles with insertion, over ") + (columns ? "columns" : "rows"),
       "every line",
       lines_ahead(pivot, "kdtree", {"tiled_insertion"}),
       {}});
  table.drawings.push_back(curves(pivot, 0, methods_of(measured), median_of,
                                  columns ? "seconds over columns" : "seconds over rows", columns ? "columns" : "rows",
                                  any_row));
  return table;
}

PaperTable lle_embeddings(const Json& result, const std::vector<report::Drawing>& drawings) {
  const Lines lines = lines_of(result["tables"][0]);
  PaperTable table = table_of("LLE", "Embeddings by a Krylov method, k = 9, d = 32", result, lines);
  table.is_synthetic = true;
  table.says =
      "Swiss roll and S-curve: more than ten times as fast as the CPU, and the more the larger n is; eigenvalues of "
      "CPU and GPU agree to 1e-7. We do not know its hardware.";
  table.differs =
      "All is float64, and a Lanczos method with a polynomial filter replaces Arnoldi's, which does not reach the "
      "contract's residuals; singular values are compared with the direct solver's. The products are those of the "
      "embedding's matrix M with eight vectors at a time.";
  Pivot pivot = pivot_of(lines, {"surface", "rows"}, "device");
  std::vector<std::string> devices;
  double apart = 0;
  for (const Json& line : lines) {
    const std::string device = text_of(line["device"]);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
    apart = std::max(apart, line["values_apart"].get<double>());
  }
  fill(table, pivot, {"surface", "rows"}, devices, median_of, "s", "cpu", devices.back());
  table.head.push_back("products with M");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].push_back(cell_of(text_of(pivot.lines[i].begin()->second["products"])));
  }
  PaperFigure ratio{"CPU / GPU, largest n", "more than 10", "no GPU here", {}};
  if (devices.size() > 1) {
    const auto& last = pivot.lines.back();
    const double times = *value_in(last, "cpu", median_of) / *value_in(last, devices.back(), median_of);
    ratio.here = number(times);
    ratio.ratio = times / 10;
  }
  table.figures.push_back(ratio);
  table.figures.push_back({"largest relative difference of values", "1e-7", number(apart, 2), {}});
  table.drawings = drawings;
  return table;
}

PaperTable lle_products(const Json& result) {
  const Lines lines = lines_of(result["tables"][1]);
  PaperTable table = table_of("LLE", "A product with the sparse matrix, by form", result, lines);
  table.is_synthetic = true;
  table.says =
      "One block a row, one warp a row, and one warp a row with rows padded to the warp's size are compared on the "
      "GPU. We have no times of these.";
  table.differs =
      "A row has ten entries in random order, on the CPU there is one form only, and our own form interleaves 32 "
      "rows.";
  table.head = {"form", "rows", "time", "10^9 bytes / s"};
  std::vector<Bar> bars;
  for (const Json& line : lines) {
    if (line.contains("refused")) continue;
    const double seconds = line["seconds"].get<double>();
    table.rows.push_back({text_of(line["method"]), cell_of(text_of(line["rows"])), seconds_text(seconds),
                          number(line["bytes_per_second"].get<double>() * 1e-9)});
    bars.push_back({text_of(line["method"]), seconds, seconds_text(seconds), false});
  }
  if (!bars.empty()) table.drawings.push_back(draw_bars(bars, "time of a product by form"));
  return table;
}

// --- KM

std::optional<double> iteration_of(const Json& line) {
  return 1e3 * line["seconds_an_iteration"]["median"].get<double>();
}

PaperTable km_iterations(const Json& result) {
  const Json& measured = result["tables"][0];
  const Lines lines = lines_of(measured);
  PaperTable table = table_of("KM", "An iteration of k-means from the first k rows", result, lines);
  table.says =
      "The tutorial stops when at most 0.1 % of the memberships change, or after 500 loops. We have no times of it.";
  table.differs =
      "Bounds leave out most distances, sums are exact, and the serial tool's loop in float32, timed next to it, "
      "may give other labels because it rounds.";
  const std::vector<std::string> methods = methods_of(measured);
  const Pivot pivot = pivot_of(lines, {"data", "rows", "clusters"}, "method");
  fill(table, pivot, {"data", "rows", "clusters"}, methods, iteration_of, "ms", "serial", methods.back());
  const auto& last = pivot.lines.back();
  const std::string set = pivot.keys.back()[0];
  table.figures.push_back(
      {fmt::format("serial loop / {}, {}, {} rows, k = {}", methods.back(), set,
                   format_count(std::stoll(pivot.keys.back()[1])), pivot.keys.back()[2]),
       "-",
       number(*value_in(last, "serial", iteration_of) / *value_in(last, methods.back(), iteration_of)),
       {}});
  table.drawings.push_back(curves(pivot, 2, methods, iteration_of, "milliseconds an iteration over k, " + set, "k",
                                  [&](const auto& key) { return key[0] == set; }));
  return table;
}

// --- CC

PaperTable cc_closure(const Json& result, const Lines& lines) {
  PaperTable table = table_of("CC", "The closure of 1,103 members", result, lines);
  table.is_synthetic = true;
  table.says =
      "1,103 polygons of two maps, twelve products on a GeForce 9800 GT: 853 s serially, 13.7 s with global memory, "
      "0.99 s with shared memory.";
  table.differs =
      "The graph is made of paths, since the paper's maps are not published, and needs fewer products than its "
      "twelve; our method, components, needs none.";
  table.head = {"method", "device", "products", "labels", "whole call"};
  std::map<std::string, double> seconds;
  std::vector<Bar> bars = {{"paper: serial", 853, "853 s", true},
                           {"paper: global memory", 13.7, "13.7 s", true},
                           {"paper: shared memory", 0.99, "990 ms", true}};
  for (const Json& line : lines) {
    const double labels = line["label_seconds"]["median"].get<double>();
    const std::string method = text_of(line["method"]);
    table.rows.push_back({method, text_of(line["device"]), fmt::format("{}", line["nonzeros"].size()),
                          seconds_text(labels), seconds_text(line["seconds"]["median"].get<double>())});
    bars.push_back({method + ", " + text_of(line["device"]), std::max(labels, 1e-9), seconds_text(labels), false});
    seconds[method] = labels;  // the last: a device's
  }
  const auto compare = [&](const char* what, const char* method, double said) {
    const double ours = seconds.at(method);
    table.figures.push_back({what, with_unit(said, "s"), seconds_text(ours), said / std::max(ours, 1e-9)});
  };
  compare("serial product", "product_serial", 853);
  compare("product, global memory", "product_global", 13.7);
  compare("product, shared memory", "product_tiled", 0.99);
  compare("our components, compared with the product in shared memory", "components", 0.99);
  table.drawings.push_back(draw_bars(bars, "time for the labels of 1,103 members, in the paper and here"));
  return table;
}

PaperTable cc_components(const Json& result, const Lines& lines) {
  PaperTable table = table_of("CC", "Components of many edges", result, lines);
  table.is_synthetic = true;
  table.says = "The paper goes no further than 1,103 members, for which it keeps a matrix.";
  table.differs = "No matrix is kept, so that the size is not bounded by its square.";
  table.head = {"graph", "edges", "device", "labels", "10^6 edges / s"};
  for (const Json& line : lines) {
    table.rows.push_back({text_of(line["graph"]), cell_of(text_of(line["edges"])), text_of(line["device"]),
                          seconds_text(line["label_seconds"]["median"].get<double>()),
                          number(line["edges_per_second"].get<double>() * 1e-6)});
  }
  return table;
}

std::vector<PaperTable> cc_tables(const Json& result) {
  Lines closure;
  Lines components;
  for (const Json& line : result["lines"]) (line["graph"] == "paths" ? closure : components).push_back(line);
  return {cc_closure(result, closure), cc_components(result, components)};
}

}  // namespace

std::vector<PaperTable> tables_of(const MeasuredPart& measured, const std::vector<report::Drawing>& drawings) {
  const Json& result = measured.part.json;
  if (measured.name == "gs") return {gs_by_k(result), gs_by_size(result)};
  if (measured.name == "gs-attacks") return {gs_attacks(result)};
  if (measured.name == "lof") return {lof_search(result), lof_scores(result)};
  if (measured.name == "lle-search") return {lle_search(result, 0), lle_search(result, 1)};
  if (measured.name == "lle") return {lle_embeddings(result, drawings), lle_products(result)};
  if (measured.name == "km") return {km_iterations(result)};
  return cc_tables(result);
}

Json to_json(const PaperTable& table) {
  Json figures = Json::array();
  for (const PaperFigure& figure : table.figures) {
    figures.push_back({{"what", figure.what},
                       {"paper", figure.paper},
                       {"here", figure.here},
                       {"ratio", figure.ratio ? Json(*figure.ratio) : Json(nullptr)}});
  }
  return {{"paper", table.paper},
          {"title", table.title},
          {"device", table.device},
          {"synthetic", table.is_synthetic},
          {"checked", table.verdict.checked},
          {"wrong", table.verdict.wrong},
          {"paper_says", table.says},
          {"differs", table.differs},
          {"figures", figures},
          {"columns", table.head},
          {"rows", table.rows}};
}

}  // namespace vicinal::cli
