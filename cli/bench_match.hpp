// `vicinal bench match`: overlap areas and whole matches timed on made buildings or on files, and held against pairs
// that are known to be true.
#pragma once

#include <functional>

#include "common_options.hpp"
#include "parser.hpp"

namespace vicinal::cli {

struct BenchMatchCommand {
  Parser app;
  std::function<void()> run;
};

BenchMatchCommand add_bench_match(const Parser& bench, CommonOptions& common);

}  // namespace vicinal::cli
