// Two C functions around the library, so that bench/gpu/knn.py can hand it rows that lie in device memory:
//   c++ -std=c++20 -O2 -shared -fPIC resident.cpp -I include -L build -lvicinal
#include <cstdio>
#include <vicinal/vicinal.hpp>

namespace {
const vicinal::Context& device() {
  static const vicinal::Context kDevice = vicinal::Context::cuda();
  return kDevice;
}
vicinal::TableView rows(const float* data, std::int64_t n, std::int64_t d) {
  return {data, vicinal::DType::float32, n, d, d, 1, vicinal::Memory::cuda};
}
}  // namespace

/// One whole call: table [n, d] and queries [m, d] of float32, ids and distances [m, k], all in device memory; queries
/// null: self mode. 0, or 1 with a sentence on standard error. stats: survivors, escalated, uncertified.
extern "C" int vicinal_bench_knn(const float* table, std::int64_t n, std::int64_t d, const float* queries,
                                 std::int64_t m, std::int64_t k, const char* method, std::int64_t* ids,
                                 double* distances, std::int64_t* stats) try {
  const vicinal::KnnOptions options{.k = k, .method = vicinal::method_from(method)};
  const vicinal::KnnOutput output{ids, distances, vicinal::Memory::cuda};
  const auto done = queries == nullptr
                        ? vicinal::knn_into(device(), rows(table, n, d), options, output)
                        : vicinal::knn_into(device(), rows(table, n, d), rows(queries, m, d), options, output);
  stats[0] = done.stats.survivors;
  stats[1] = done.stats.escalated;
  stats[2] = done.stats.uncertified;
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

/// Classification of device-resident rows: codes [m] on the host.
extern "C" int vicinal_bench_classify(const float* table, std::int64_t n, std::int64_t d, const float* queries,
                                      std::int64_t m, std::int64_t k, const std::int64_t* labels,
                                      std::int32_t* codes) try {
  static const std::vector<vicinal::Labels> kLabels = {
      vicinal::encode_labels(std::span<const std::int64_t>(labels, static_cast<std::size_t>(n)))};
  const auto result = vicinal::classify(device(), rows(table, n, d), rows(queries, m, d),
                                        std::span<const vicinal::Labels>(kLabels), {.k = k});
  const auto& found = result.votes.front().codes;
  for (std::int64_t q = 0; q < m; ++q) codes[q] = found[static_cast<std::size_t>(q)];
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
