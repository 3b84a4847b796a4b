// See papers.hpp.
//   gs          Liu, Zheng and Liu 2019: time against k, and against the size: papers_search.cpp.
//   gs-attacks  the same paper's robustness experiment: papers_attacks.cpp.
//   lof         Tian, Hua and Lu 2015: neighbors and outlier scores: papers_search.cpp.
//   lle-search  Li, Yan and Zhang 2021: 9 neighbors within a table: papers_search.cpp.
//   lle         the same paper's embeddings: papers_lle.cpp.
//   km          the k-means tutorial of 2014: papers_km.cpp.
//   cc          Zhang et al. 2013, co-clustering: papers_cc.cpp.
//   (none)      all of them, in one JSON and one page: papers_all.cpp.
#include "command/papers.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/output.hpp"
#include "command/commands.hpp"
#include "command/papers_all.hpp"
#include "command/papers_attacks.hpp"
#include "command/papers_cc.hpp"
#include "command/papers_km.hpp"
#include "command/papers_lle.hpp"
#include "command/papers_lle_plots.hpp"
#include "command/papers_search.hpp"

namespace vicinal::cli {

void note_answers(PapersPart& part) {
  part.json["different_answers"] = part.different;
  part.json["checked_answers"] = part.verdict.checked;
  part.json["wrong_answers"] = part.verdict.wrong;
}

void finish_part(const PapersOptions& options, const PapersPart& part) {
  if (options.common.json) {
    print_json(part.json);
  } else {
    print_text(part.text);
    if (options.verify) {
      print_text(fmt::format("{} of {} checked answers are wrong\n", part.verdict.wrong, part.verdict.checked));
    }
  }
  if (part.different + part.verdict.wrong > 0) {
    throw Error(ErrorCode::internal, fmt::format("{} of {} checked answers are wrong, and methods differ in {} lines",
                                                 part.verdict.wrong, part.verdict.checked, part.different));
  }
}

namespace {

constexpr std::int64_t kQuickRows = 8192;
constexpr std::int64_t kQuickEdges = 1'000'000;
constexpr std::int64_t kQuickSpmvRows = 200'000;

/// Options that --quick sets where they are not given.
struct SizeOptions {
  Option repeat;
  Option warmup;
  Option rows;

  void make_quick(PapersOptions& options) const {
    if (!repeat.given()) options.repeat = 1;
    if (!warmup.given()) options.warmup = 0;
    if (!rows.given()) options.most_rows = kQuickRows;
  }
};

SizeOptions add_papers_options(const Parser& one, PapersOptions& options) {
  const Option repeat =
      one.add_option("--repeat", options.repeat, "Timed runs").type_name("N").capture_default_str().between(1, 1000);
  const Option warmup = one.add_option("--warmup", options.warmup, "Runs before them")
                            .type_name("N")
                            .capture_default_str()
                            .between(0, 1000);
  one.add_option("--time-limit", options.time_limit, "Seconds of the runs of one line; after them no other one starts")
      .type_name("S")
      .capture_default_str()
      .between(1, 1'000'000);
  const Option rows = one.add_option("--most-rows", options.most_rows, "Cut tables and queries that have more rows")
                          .type_name("N")
                          .capture_default_str()
                          .between(2, std::int64_t{1} << 30);
  one.add_flag("--verify,!--no-verify", options.verify,
               "Compare answers with src/reference: all of a small table, of others a sample [on]");
  one.add_option("--sample", options.sample, "Queries of a search that are compared")
      .type_name("N")
      .capture_default_str()
      .between(1, 100'000);
  one.add_flag("--spoil", options.spoil, "Change an answer before each comparison, which must find it");
  one.add_option("--commit", options.commit, "Commit to note in the result").type_name("ID");
  add_common_options(one, options.common);
  return {repeat, warmup, rows};
}

Option add_edges(const Parser& one, PapersOptions& options) {
  return one.add_option("--edges", options.edges, "Edges of the graph whose components are timed")
      .type_name("N")
      .capture_default_str()
      .between(1, std::int64_t{1} << 31);
}

Option add_spmv_rows(const Parser& one, PapersOptions& options) {
  return one.add_option("--spmv-rows", options.spmv_rows, "Rows of the matrix whose products are timed")
      .type_name("N")
      .capture_default_str()
      .between(2, std::int64_t{1} << 27);
}

}  // namespace

Command add_bench_papers(const Parser& bench) {
  auto options = std::make_shared<PapersOptions>();
  const Parser app = bench.add_subcommand("papers", "Time the methods of the papers on the tables of the papers");
  const Parser gs = app.add_subcommand("gs", "k-min search and bitonic sort of a product of matrices");
  const Parser attacks = app.add_subcommand("gs-attacks", "Attacks of unseen kinds among normal rows of KDD Cup 99");
  const Parser lof = app.add_subcommand("lof", "A filter by thresholds, insertion and a shared heap");
  const Parser lle = app.add_subcommand("lle-search", "Tiles and insertion, and a kd-tree");
  const Parser km = app.add_subcommand("km", "An iteration of k-means: the classical serial tool, CPU and CUDA");
  const Parser cc = app.add_subcommand("cc", "Closures of a graph of 1,103 members, and components of many edges");
  const Parser embed = app.add_subcommand("lle", "Embeddings by a Krylov method, and its sparse products");
  for (const Parser& one : {gs, attacks, lof, lle, embed, km, cc}) {
    add_papers_options(one, *options);
    one.add_option("-o,--output", options->output, "Where to write the result, too (.json)").type_name("FILE");
  }
  const SizeOptions sizes = add_papers_options(app, *options);
  app.add_flag("--quick", options->quick, "Sizes that two cores finish in 15 minutes: at most 8,192 rows, one run");
  app.add_option("-o,--output", options->all_output, "Where to write all results (.json)")
      .type_name("FILE")
      .capture_default_str();
  app.add_option("--html", options->html, "Where to write the page (.html)").type_name("FILE").capture_default_str();
  app.add_option("--from", options->from, "Measure nothing: write page and result again from what -o wrote before")
      .type_name("FILE");
  const Option edges = add_edges(app, *options);
  const Option spmv_rows = add_spmv_rows(app, *options);
  app.add_option("--data-dir", options->data_dir,
                 "Folder with the data of lof, gs-attacks and km; synthetic rows replace what is not there [for km: "
                 "VICINAL_DATA/image_data]")
      .type_name("DIR");
  lof.add_option("--data-dir", options->data_dir,
                 "Folder with kdd-table.npy, kdd-queries.npy and so on, as bench/data/papers.py writes them; "
                 "synthetic rows replace what is not there")
      .type_name("DIR");
  attacks.add_option("--data-dir", options->data_dir, "Folder with kdd-pool.npy, as bench/data/papers.py writes it")
      .type_name("DIR");
  km.add_option("--data-dir", options->data_dir,
                "Folder with the classical tools' color100.bin, color17695.bin.xz and so on; rows are made for what is "
                "not there")
      .type_name("DIR");
  add_edges(cc, *options);
  add_spmv_rows(embed, *options);
  embed.add_option("--svg", options->svg, "Folder for figures: seconds and ratios over the rows, and the embeddings")
      .type_name("DIR");
  embed.add_option("--from", options->from, "Measure nothing: draw the figures of --svg from what -o wrote before")
      .type_name("FILE");
  const std::string few = " --most-rows 300 --repeat 1";
  for (const auto& [one, name] : {std::pair(gs, "gs"), std::pair(attacks, "gs-attacks"), std::pair(lof, "lof"),
                                  std::pair(lle, "lle-search"), std::pair(km, "km")}) {
    const std::string line = fmt::format("vicinal-bench papers {}{}", name, few);
    one.add_examples({line, line + " --json"});
  }
  cc.add_examples({"vicinal-bench papers cc" + few + " --edges 100000"});
  embed.add_examples({"vicinal-bench papers lle" + few + " --spmv-rows 1000 -o lle.json",
                      "vicinal-bench papers lle --from lle.json --most-rows 300 --svg figures"});
  app.add_examples({"vicinal-bench papers --quick" + few + " --edges 1000 --spmv-rows 300",
                    "vicinal-bench papers --from papers.json --html again.html", "vicinal-bench papers lof" + few});
  return {app,
          [=] {
            check_output("-o", options->output, {".json"});
            if (embed.parsed() && !options->from.empty()) {
              if (!options->svg.empty()) return draw_papers_lle(*options);
              throw Error(ErrorCode::invalid_argument, "--from: there is nothing to draw without --svg");
            }
            const std::pair<Parser, PapersPart (*)(const PapersOptions&)> parts[] = {
                {gs, measure_papers_gs},          {attacks, measure_papers_attacks}, {lof, measure_papers_lof},
                {lle, measure_papers_lle_search}, {embed, measure_papers_lle},       {km, measure_papers_km},
                {cc, measure_papers_cc}};
            for (const auto& [one, measure_one] : parts) {
              if (!one.parsed()) continue;
              if (options->from.empty()) return finish_part(*options, measure_one(*options));
              throw Error(ErrorCode::invalid_argument, "--from: not with a part other than lle, which is measured");
            }
            if (options->quick) {
              sizes.make_quick(*options);
              if (!edges.given()) options->edges = kQuickEdges;
              if (!spmv_rows.given()) options->spmv_rows = kQuickSpmvRows;
            }
            check_output("-o", options->all_output, {".json"});
            check_output("--html", options->html, {".html"});
            options->output = options->all_output;
            if (!options->from.empty()) return draw_all_papers(*options);
            run_all_papers(*options);
          },
          &options->common.json};
}

}  // namespace vicinal::cli
