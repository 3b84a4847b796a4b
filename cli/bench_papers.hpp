// `vicinal bench papers gs|lof|lle-search`: the tables of three papers on nearest neighbors, measured here with their
// methods and ours (docs/papers.md). Every method's answers are compared, so that no time is of a wrong one.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "common_options.hpp"

namespace vicinal::cli {

struct BenchPapersCommand {
  CLI::App* app = nullptr;
  std::function<void()> run;
};

/// Hangs the subcommand under `bench`; it shares that one's common options.
BenchPapersCommand add_bench_papers(CLI::App& bench, CommonOptions& common);

}  // namespace vicinal::cli
