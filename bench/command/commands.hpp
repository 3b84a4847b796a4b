// The subcommands of `vicinal-bench`; main.cpp lists them all.
#pragma once

#include "base/command.hpp"

namespace vicinal::cli {

Command add_bench_devices(const Parser& root);
Command add_bench_growth(const Parser& root);
Command add_bench_knn(const Parser& root);
Command add_bench_match(const Parser& root);
Command add_bench_papers(const Parser& root);
Command add_bench_peak(const Parser& root);
Command add_bench_peers(const Parser& root);
Command add_bench_ranks(const Parser& root);
Command add_bench_read(const Parser& root);
Command add_bench_ready(const Parser& root);

}  // namespace vicinal::cli
