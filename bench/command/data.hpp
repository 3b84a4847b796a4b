// Tables that `vicinal-bench knn` makes: every value is drawn by Philox from (seed, stream, counter), so that the same
// options give the same bits on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::cli {

struct BenchData {
  std::string kind = "gaussian";  ///< one of bench_data_kinds()
  std::int64_t rows = 20000;
  std::int64_t queries = 2000;
  std::int64_t cols = 64;
  double sigma = 0.001;  ///< clusters only
  std::uint64_t seed = 0;
};

const std::vector<std::string>& bench_data_kinds();
/// A sentence on each kind, for --help.
std::string describe_bench_data();

/// The table, row-major:
/// - gaussian: standard normal columns. uniform: columns from [0, 1).
/// - blobs: generate()'s, 16 centers.
/// - clusters: 1,000 centers from [0, 1)^cols, each row at one of them plus sigma times a normal draw a column.
/// - duplicates: uniform rows, of which every tenth is new and each of the others repeats one of those; the same of
///   queries, which repeat rows of the table.
/// - embedded: a curved sheet of 4 dimensions: column j is cos(a_j z + b_j) of z from [0, 1)^4.
/// - gist: normal columns of standard deviations 1 / (j + 1), turned by four reflections.
/// - sift: normal columns of standard deviations 60 / (1 + j / 4), turned alike, plus 30, rounded, and cut to 0 .. 255.
std::vector<double> make_bench_table(const Context& ctx, const BenchData& data);
/// Its queries, drawn alike with the same centers, rows to repeat or sheet.
std::vector<double> make_bench_queries(const Context& ctx, const BenchData& data);

}  // namespace vicinal::cli
