// `vicinal bench papers gs|lof|lle-search`: the tables of three papers on nearest neighbors, measured here with their
// methods and ours (docs/papers.md). Every method's answers are compared, so that no time is of a wrong one.
#pragma once

#include <functional>

#include "common_options.hpp"

namespace vicinal::cli {

struct BenchPapersCommand {
  Parser app;
  std::function<void()> run;
};

/// Hangs the subcommand under `bench`; it shares that one's common options.
BenchPapersCommand add_bench_papers(const Parser& bench, CommonOptions& common);

}  // namespace vicinal::cli
