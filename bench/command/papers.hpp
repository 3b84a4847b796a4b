// `vicinal-bench papers gs|lof|lle-search|lle|km|cc`: the tables of three papers on nearest neighbors, of a tutorial on
// k-means and of a paper on co-clustering, measured here with their methods and ours (docs/papers.md). Every method's
// answers are compared, so that no time is of a wrong one.
#pragma once

#include <cstdint>
#include <string>

#include "base/common_options.hpp"

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
  int repeat = 3;
  int warmup = 1;
};

}  // namespace vicinal::cli
