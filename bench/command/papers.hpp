// `vicinal-bench papers [gs|gs-attacks|lof|lle-search|lle|km|cc]`: the tables of three papers on nearest neighbors, of
// a tutorial on k-means and of a paper on co-clustering, measured here with their methods and ours (docs/papers.md).
// Every method's answers are compared with each other and with src/reference, so that no time is of a wrong one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "command/harness.hpp"
#include "command/papers_check.hpp"

namespace vicinal::cli {

struct PapersOptions {
  CommonOptions common;
  std::string data_dir;
  std::string commit;
  std::string output;
  std::string svg;
  std::string from;
  std::int64_t most_rows = std::int64_t{1} << 15;
  std::int64_t edges = 14'000'000;
  std::int64_t spmv_rows = 4'000'000;
  std::string all_output = "papers.json";  ///< of all parts
  std::string html = "papers.html";
  std::int64_t sample = 32;
  int repeat = 3;
  int warmup = 1;
  std::int64_t time_limit = 60;  ///< seconds of all runs of a line
  bool quick = false;
  bool verify = true;
  bool spoil = false;  ///< change an answer before each check, which must then find it

  [[nodiscard]] Runs runs() const { return {warmup, repeat, static_cast<double>(time_limit)}; }
};

/// What a part of the command measured.
struct PapersPart {
  Json json;                   ///< what -o and --json write
  std::string text;            ///< what is printed else
  std::int64_t different = 0;  ///< lines in which methods differ from each other
  Verdict verdict;             ///< against the reference
};

/// Notes how many answers were compared in the part's JSON.
void note_answers(PapersPart& part);
/// Prints a part that was asked for alone. Throws `internal` for a wrong answer.
void finish_part(const PapersOptions& options, const PapersPart& part);

}  // namespace vicinal::cli
