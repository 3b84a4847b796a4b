// `vicinal bench read`: how long a file takes to become a table.
#pragma once

#include <functional>

#include "common_options.hpp"
#include "parser.hpp"

namespace vicinal::cli {

struct BenchReadCommand {
  Parser app;
  std::function<void()> run;
};

/// `common` is the options that all of bench share.
BenchReadCommand add_bench_read(const Parser& bench, CommonOptions& common);

}  // namespace vicinal::cli
