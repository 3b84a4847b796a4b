// What only a device has: tables and answers in its memory, tables larger than it may hold, indexes that move between
// CPU and device, lists of every length. Compared with the CPU, which the other tests compare with the reference.
// fake device, sanitized: -*

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "device_memory.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class Cuda : public DeviceTest {};

ErrorCode code_of(const std::function<void()>& call, std::string* sentence = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST_F(Cuda, SaysWhatItIs) {
  EXPECT_EQ(cuda().device(), "cuda:0");
  const CudaStatus status = cuda_status();
  ASSERT_FALSE(status.devices.empty());
  std::printf("%s: %s, compute capability %d; plug-in for %s\n", status.devices[0].name.c_str(),
              status.devices[0].model.c_str(), status.devices[0].compute_capability, status.architectures.c_str());
  const Rows rows = make_rows(Family::gaussian, {100, 3, 10}, 1);
  const TableView table(rows.table.data(), 100, 3);
  const Plan plan = plan_knn(cuda(), table, nullptr, {.k = 5});
  EXPECT_EQ(plan.device, "cuda:0");
  EXPECT_GT(plan.device_memory, 0U);
  EXPECT_EQ(knn(cuda(), table, {.k = 5}).plan.device, "cuda:0");
}

TEST_F(Cuda, TensorCoresAddAsTheScreenAssumes) {
  EXPECT_TRUE(tensor_core_sums(cpu()).instruction.empty());
  const TensorCoreSums sums = tensor_core_sums(cuda());
  if (sums.instruction.empty()) GTEST_SKIP() << "the fake device has no tensor cores";
  std::printf("tensor cores: %s, accumulation: %s, largest error %.3f of the bound\n", sums.instruction.c_str(),
              sums.model.c_str(), sums.largest_error);
  EXPECT_FALSE(sums.model.empty());
  EXPECT_GT(sums.largest_error, 0);
  EXPECT_TRUE(sums.largest_error <= 1) << sums.largest_error;
  const char* const path = std::getenv("VICINAL_CUDA_PATH");
  if (path != nullptr && std::string(path) == "portable") {
    EXPECT_EQ(sums.instruction, "mma.sync");
  }
}

TEST_F(Cuda, TablesInDeviceMemory) {
  const Shape shape = {3001, 23, 101};
  const Rows rows = make_rows(Family::gaussian, shape, 2);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const DeviceArray<double> device_table(rows.table);
  const DeviceArray<double> device_queries(rows.queries);
  const auto there = [&](const DeviceArray<double>& array, std::int64_t n) {
    return TableView(array.data(), DType::float64, n, shape.d, shape.d, 1, Memory::cuda);
  };
  for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::manhattan}) {
    const KnnOptions options = {.k = 7, .metric = metric};
    const NeighborGraph wanted = knn(cpu(), table, queries, options);
    const Index index(cuda(), there(device_table, shape.n));
    expect_same(knn(cuda(), index, there(device_queries, shape.m), options), wanted, "both there");
    expect_same(knn(cuda(), index, queries, options), wanted, "table there");
    expect_same(knn(cuda(), table, there(device_queries, shape.m), options), wanted, "queries there");
    expect_same(knn(cuda(), index, options), knn(cpu(), table, options), "within itself");
    expect_same(radius(cuda(), index, queries, {.radius = wanted.distances[6], .metric = metric}),
                radius(cpu(), table, queries, {.radius = wanted.distances[6], .metric = metric}), "radius");
  }
  // Every other row, columns backwards.
  const TableView strided(rows.table.data() + shape.d - 1, DType::float64, shape.n / 2, shape.d, 2 * shape.d, -1);
  const TableView strided_there(device_table.data() + shape.d - 1, DType::float64, shape.n / 2, shape.d, 2 * shape.d,
                                -1, Memory::cuda);
  expect_same(knn(cuda(), strided_there, queries, {.k = 5}), knn(cpu(), strided, queries, {.k = 5}), "strided");
  const TableView fewer(rows.table.data(), DType::float64, shape.n / 2, shape.d, 2 * shape.d);
  const TableView fewer_there(device_table.data(), DType::float64, shape.n / 2, shape.d, 2 * shape.d, 1, Memory::cuda);
  expect_same(knn(cuda(), fewer_there, queries, {.k = 5}), knn(cpu(), fewer, queries, {.k = 5}), "every other row");
}

// The device lists what the largest radius holds; what a query's own does not is not kept, and room for it is planned.
TEST_F(Cuda, OneLargeRadiusAmongSmallOnes) {
  constexpr std::int64_t kRows = 3000;
  const Rows rows = make_rows(Family::gaussian, {kRows, 2, 1}, 6);
  const TableView table(rows.table.data(), kRows, 2);
  std::vector<double> radii(kRows, 1e-3);
  radii[1234] = 50;
  for (const RadiusOrder order : {RadiusOrder::key, RadiusOrder::id}) {
    const RadiusOptions options = {.order = order, .radii = radii};
    const NeighborGraph wanted = radius(cpu(), table, options);
    ASSERT_GE(wanted.ids.size(), static_cast<std::size_t>(kRows - 1));
    const std::uint64_t limit = plan_radius(cuda(), table, nullptr, options).memory;
    EXPECT_LE(limit, std::uint64_t{80} << 20);
    expect_same(radius(cuda().with_memory_limit(limit), table, options), wanted, name_of(order).data());
  }
  const TableView few = table.slice(0, 100);
  const RadiusOptions options = {.radii = std::span<const double>(radii).first(100)};
  const NeighborCounts counts = count(cuda(), Index(cuda(), few), options);
  EXPECT_LE(counts.plan.memory, std::uint64_t{1} << 20);
  EXPECT_EQ(counts.counts, count(cpu(), Index(cpu(), few), options).counts);
}

TEST_F(Cuda, ValuesInDeviceMemoryThatAreNotFinite) {
  Rows rows = make_rows(Family::gaussian, {500, 7, 50}, 2);
  rows.queries[31 * 7 + 2] = std::numeric_limits<double>::quiet_NaN();
  rows.queries[40 * 7 + 1] = std::numeric_limits<double>::infinity();
  const TableView table(rows.table.data(), 500, 7);
  const DeviceArray<double> array(rows.queries);
  const TableView there(array.data(), DType::float64, 50, 7, 7, 1, Memory::cuda);
  std::string sentence;
  EXPECT_EQ(code_of([&] { (void)knn(cuda(), table, there, {.k = 3}); }, &sentence), ErrorCode::bad_data);
  EXPECT_NE(sentence.find("queries: row 31, column 2"), std::string::npos) << sentence;
  EXPECT_EQ(code_of([&] { (void)Index(cuda(), there); }, &sentence), ErrorCode::bad_data);
  EXPECT_NE(sentence.find("table: row 31, column 2"), std::string::npos) << sentence;
}

TEST_F(Cuda, MemoryThatIsNotWhereItIsSaidToBe) {
  const Rows rows = make_rows(Family::gaussian, {100, 3, 10}, 1);
  const TableView host(rows.table.data(), 100, 3);
  const TableView false_one(rows.table.data(), DType::float64, 100, 3, 3, 1, Memory::cuda);
  EXPECT_EQ(code_of([&] { (void)Index(cuda(), false_one); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)knn(cuda(), host, false_one, {.k = 3}); }), ErrorCode::invalid_argument);
  std::vector<std::int64_t> ids(300);
  std::vector<double> distances(300);
  EXPECT_EQ(code_of([&] {
              (void)knn_into(cuda(), host, {.k = 3}, {ids.data(), distances.data(), Memory::cuda});
            }),
            ErrorCode::invalid_argument);
  const DeviceArray<double> array(rows.table);
  const TableView there(array.data(), DType::float64, 100, 3, 3, 1, Memory::cuda);
  EXPECT_EQ(code_of([&] { (void)Index(cpu(), there); }), ErrorCode::device_unavailable);
  const Index index(cuda(), there);
  EXPECT_EQ(code_of([&] { (void)knn(cpu(), index, {.k = 3}); }), ErrorCode::device_unavailable);
}

TEST_F(Cuda, ListsIntoMemoryOfTheCallers) {
  const Shape shape = {2000, 17, 300};
  const Rows rows = make_rows(Family::integer_ties, shape, 3);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  for (const std::int64_t k : {1, 5, 64}) {
    const NeighborGraph wanted = knn(cpu(), table, queries, {.k = k});
    const auto size = static_cast<std::size_t>(shape.m * k);
    NeighborGraph got = wanted;
    std::vector<std::int64_t> ids(size);
    std::vector<double> distances(size);
    const KnnSummary summary = knn_into(cuda(), table, queries, {.k = k}, {ids.data(), distances.data()});
    EXPECT_EQ(summary.rows, shape.m);
    EXPECT_EQ(summary.plan.device, "cuda:0");
    got.ids = ids;
    got.distances = distances;
    expect_same(got, wanted, "to the host");
    const DeviceArray<std::int64_t> device_ids(size);
    const DeviceArray<double> device_distances(size);
    (void)knn_into(cuda(), table, queries, {.k = k}, {device_ids.data(), device_distances.data(), Memory::cuda});
    got.ids = device_ids.host();
    got.distances = device_distances.host();
    expect_same(got, wanted, "to the device");
  }
}

/// Several outputs, one of them with more classes than fit shared memory.
std::vector<Labels> some_labels(std::int64_t rows) {
  std::vector<Labels> outputs;
  for (const std::int64_t classes : {2, 10, 300, 1500}) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < rows; ++i) values.push_back(i * 7919 % classes);
    outputs.push_back(encode_labels(values));
  }
  return outputs;
}

TEST_F(Cuda, VotesOnTheDevice) {
  for (const Family family : {Family::gaussian, Family::duplicates, Family::integer_ties}) {
    const Shape shape = {3000, 6, 257};
    const Rows rows = make_rows(family, shape, 4);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    const std::vector<Labels> outputs = some_labels(shape.n);
    for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
      for (const std::int64_t k : {1, 5, 33, 200}) {
        const VoteOptions voting = {.weights = weights, .probabilities = true};
        const Classification wanted = classify(cpu(), table, queries, outputs, {.k = k}, voting);
        const Classification got = classify(cuda(), table, queries, outputs, {.k = k}, voting);
        EXPECT_EQ(got.plan.device, "cuda:0");
        for (std::size_t o = 0; o < outputs.size(); ++o) {
          EXPECT_EQ(got.votes[o].codes, wanted.votes[o].codes) << "k=" << k << " output " << o;
          ASSERT_EQ(got.votes[o].probabilities.size(), wanted.votes[o].probabilities.size());
          EXPECT_EQ(std::memcmp(got.votes[o].probabilities.data(), wanted.votes[o].probabilities.data(),
                                wanted.votes[o].probabilities.size() * sizeof(double)),
                    0)
              << "k=" << k << " output " << o;
        }
      }
    }
  }
}

TEST_F(Cuda, CustomWeightsAreCalledOnTheHost) {
  const Rows rows = make_rows(Family::gaussian, {500, 6, 50}, 4);
  const TableView table(rows.table.data(), 500, 6);
  const TableView queries(rows.queries.data(), 50, 6);
  const std::vector<Labels> outputs = some_labels(500);
  const auto falling = [](std::span<const double> distances, std::span<double> weights) {
    for (std::size_t i = 0; i < distances.size(); ++i) weights[i] = 1 / (1 + distances[i]);
  };
  const VoteOptions voting = {.weights = Weighting::custom, .custom = falling};
  const Classification got = classify(cuda(), table, queries, outputs, {.k = 9}, voting);
  EXPECT_NE(got.plan.reason.find("custom weights"), std::string::npos) << got.plan.reason;
  const Classification wanted = classify(cpu(), table, queries, outputs, {.k = 9}, voting);
  for (std::size_t o = 0; o < outputs.size(); ++o) EXPECT_EQ(got.votes[o].codes, wanted.votes[o].codes);
}

TEST_F(Cuda, ListsOfEveryLength) {
  const Shape shape = {9000, 5, 40};
  const Rows rows = make_rows(Family::integer_ties, shape, 5);
  const TableView table(rows.table.data(), shape.n, shape.d);
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  for (const std::int64_t k : {31, 32, 33, 1000, 2047, 2048, 2049, 5000, 8999, 9000}) {
    for (const Metric metric : {Metric::euclidean, Metric::inner_product}) {
      const KnnOptions options = {.k = k, .metric = metric};
      expect_same(knn(cuda(), table, queries, options), knn(cpu(), table, queries, options), "k=" + std::to_string(k));
    }
  }
}

TEST_F(Cuda, FewAndManyQueries) {
  const Rows rows = make_rows(Family::gaussian, {70001, 12, 1000}, 6);
  const auto table_values = singles(rows.table);
  const auto query_values = singles(rows.queries);
  const TableView table(table_values.data(), 70001, 12);
  const Index here(cpu(), table);
  const Index there(cuda(), table);
  for (const std::int64_t m : {1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 63, 64, 65, 1000}) {
    const TableView queries(query_values.data(), m, 12);
    const KnnOptions options = {.k = 10, .method = Method::direct};
    expect_same(knn(cuda(), there, queries, options), knn(cpu(), here, queries, options), "m=" + std::to_string(m));
  }
}

// Few queries meet rows as they lie, in float32 first: values that float32 holds badly or not at all, sums that differ
// by rounding alone, widths that are whole loads and others, several blocks of rows.
TEST_F(Cuda, FewQueriesOfEveryFamilyAndType) {
  if (cuda_status().architectures == "fake") GTEST_SKIP() << "the fake device has no screen";
  constexpr std::int64_t kWidths[] = {32, 1, 3, 4, 31, 33, 130, 100};
  const std::vector<Way> ways = {{.method = Method::direct, .cuda = true}, {.cuda = true}};
  std::uint64_t turn = 0;
  for (int family = 0; family < kFamilies; ++family) {
    for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      for (const std::int64_t m : {1, 2, 4, 5, 8, 9, 16, 17, 24, 25}) {
        Case c;
        c.family = static_cast<Family>(family);
        c.shape = {3000, kWidths[turn++ % std::size(kWidths)], m};
        c.dtype = dtype;
        c.query_dtype = turn % 4 == 0 ? DType::float32 : dtype;
        c.metric = turn % 2 == 0 ? Metric::euclidean : Metric::sqeuclidean;
        c.filter = turn % 5 == 0 ? Filter::many : Filter::none;
        c.exclude = turn % 3 == 0;
        check(c, {.ks = {1, 20}, .radii = false}, ways);
      }
    }
  }
}

// A sample of the first rows limits the keys of few queries: rows of equal keys before and after its end, nearest rows
// that come first or last, filters that leave it no row, and more neighbors than it has rows for (1,024).
TEST_F(Cuda, FewQueriesOfTiesAndSortedTables) {
  constexpr std::int64_t kRows = 40000;
  std::vector<std::uint64_t> last(static_cast<std::size_t>((kRows + 63) / 64), 0);
  std::fill(last.end() - 100, last.end(), ~std::uint64_t{0});
  for (const Family family :
       {Family::constant, Family::duplicates, Family::near_first, Family::far_first, Family::integer_ties}) {
    const Rows rows = make_rows(family, {kRows, 4, 24}, 7);
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), kRows, 4);
    const Index there(cuda(), table);
    const Index here(cpu(), table);
    for (const std::int64_t m : {1, 3, 8, 16, 24}) {
      const TableView queries(query_values.data(), m, 4);
      const std::vector<std::int64_t> exclude(static_cast<std::size_t>(m), 0);
      for (const std::int64_t k : {1, 32, 33, 900, 1024}) {
        const std::string what = std::string(name_of(family)) + " m=" + std::to_string(m) + " k=" + std::to_string(k);
        KnnOptions options = {.k = k, .method = Method::direct};
        expect_same(knn(cuda(), there, queries, options), knn(cpu(), here, queries, options), what);
        options.exclude = exclude;
        expect_same(knn(cuda(), there, queries, options), knn(cpu(), here, queries, options), what + ", exclude");
        options.filter = last;
        expect_same(knn(cuda(), there, queries, options), knn(cpu(), here, queries, options), what + ", filter");
      }
    }
  }
}

// Kernels read queries of float32 where they lie, if four columns are one load and their number is that of a kernel;
// of others they read a copy.
TEST_F(Cuda, FewQueriesInDeviceMemory) {
  constexpr std::int64_t kRows = 40000;
  for (const std::int64_t d : {8, 7}) {
    const Rows rows = make_rows(Family::duplicates, {kRows, d, 25}, 3);
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const DeviceArray<float> device_table(table_values);
    const DeviceArray<float> device_queries(query_values);
    const TableView table(table_values.data(), kRows, d);
    const Index there(cuda(), TableView(device_table.data(), DType::float32, kRows, d, d, 1, Memory::cuda));
    for (const std::int64_t m : {1, 2, 3, 4, 8, 13, 16, 24}) {
      for (const std::int64_t first : {0, 1}) {  // column: rows that begin within a load
        const TableView queries(query_values.data() + first, m, d);
        const TableView queries_there(device_queries.data() + first, DType::float32, m, d, d, 1, Memory::cuda);
        for (const Metric metric : {Metric::euclidean, Metric::sqeuclidean}) {
          const KnnOptions options = {.k = 10, .metric = metric, .method = Method::direct};
          expect_same(knn(cuda(), there, queries_there, options), knn(cpu(), table, queries, options),
                      "d=" + std::to_string(d) + " m=" + std::to_string(m) + " first=" + std::to_string(first));
        }
      }
    }
  }
}

TEST_F(Cuda, FewQueriesThatAreNotFinite) {
  for (const std::int64_t d : {7, 8}) {
    const Rows rows = make_rows(Family::gaussian, {40000, d, 24}, 2);
    const auto table_values = singles(rows.table);
    const TableView table(table_values.data(), 40000, d);
    const Index index(cuda(), table);
    for (const std::int64_t m : {1, 16, 24}) {
      for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        auto query_values = singles(rows.queries);
        query_values[static_cast<std::size_t>((m - 1) * d + 2)] = value;
        query_values[static_cast<std::size_t>((m - 1) * d + 5)] = value;
        const TableView queries(query_values.data(), m, d);
        std::string sentence;
        EXPECT_EQ(code_of([&] { (void)knn(cuda(), index, queries, {.k = 3}); }, &sentence), ErrorCode::bad_data);
        EXPECT_NE(sentence.find("queries: row " + std::to_string(m - 1) + ", column 2"), std::string::npos) << sentence;
      }
      const auto query_values = singles(rows.queries);
      const TableView queries(query_values.data(), m, d);
      expect_same(knn(cuda(), index, queries, {.k = 3}), knn(cpu(), table, queries, {.k = 3}), "afterwards");
    }
  }
}

// The same of queries that kernels read where they lie, against a table whose first rows are a sample; and of a table.
TEST_F(Cuda, ValuesInPlaceThatAreNotFiniteAmongManyRows) {
  constexpr std::int64_t kRows = 200000;
  constexpr std::int64_t kCols = 8;
  constexpr std::int64_t kQueries = 16;
  const Rows rows = make_rows(Family::gaussian, {kRows, kCols, kQueries}, 2);
  const auto table_values = singles(rows.table);
  const DeviceArray<float> device_table(table_values);
  const TableView table(table_values.data(), kRows, kCols);
  const auto there = [](const DeviceArray<float>& array, std::int64_t n) {
    return TableView(array.data(), DType::float32, n, kCols, kCols, 1, Memory::cuda);
  };
  const Index index(cuda(), there(device_table, kRows));
  std::string sentence;
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t query : {std::int64_t{0}, kQueries - 1}) {
      auto query_values = singles(rows.queries);
      query_values[static_cast<std::size_t>(query * kCols + 7)] = value;
      const DeviceArray<float> queries(query_values);
      EXPECT_EQ(code_of([&] { (void)knn(cuda(), index, there(queries, kQueries), {.k = 20}); }, &sentence),
                ErrorCode::bad_data);
      EXPECT_NE(sentence.find("queries: row " + std::to_string(query) + ", column 7"), std::string::npos) << sentence;
    }
    auto broken = table_values;
    broken[(kRows - 2) * kCols + 3] = value;
    const DeviceArray<float> device_broken(broken);
    EXPECT_EQ(code_of([&] { (void)Index(cuda(), there(device_broken, kRows)); }, &sentence), ErrorCode::bad_data);
    EXPECT_NE(sentence.find("table: row " + std::to_string(kRows - 2) + ", column 3"), std::string::npos) << sentence;
  }
  const auto query_values = singles(rows.queries);
  const DeviceArray<float> queries(query_values);
  expect_same(knn(cuda(), index, there(queries, kQueries), {.k = 20}),
              knn(cpu(), table, TableView(query_values.data(), kQueries, kCols), {.k = 20}), "afterwards");
}

/// 5, 16 and 24 queries of an index of float32 rows by method direct: on the device as on the CPU.
void expect_few_as_on_the_cpu(const Context& device, Family family, const Shape& shape, std::uint64_t seed) {
  const Rows rows = make_rows(family, shape, seed);
  const auto table_values = singles(rows.table);
  const auto query_values = singles(rows.queries);
  const Context cpu = Context::cpu();
  const TableView table(table_values.data(), shape.n, shape.d);
  const Index there(device, table);
  const Index here(cpu, table);
  for (const std::int64_t m : {5, 16, 24}) {
    const TableView queries(query_values.data(), m, shape.d);
    const KnnOptions options = {.k = 10, .method = Method::direct};
    expect_same(knn(device, there, queries, options), knn(cpu, here, queries, options),
                std::string(name_of(family)) + " d=" + std::to_string(shape.d) + " m=" + std::to_string(m));
  }
}

// Rows among which the products of the matrix units do not tell, or tell with what is far out: their keys are formed,
// beyond what a block keeps of them until its end at once.
TEST_F(Cuda, FewQueriesThatManyRowsAreNear) {
  constexpr std::int64_t kRows = 40000;
  for (const Family family : {Family::gaussian, Family::offset, Family::clusters_1e3, Family::clusters_1e6,
                              Family::clusters_1e2, Family::far_queries, Family::very_far_queries, Family::outliers,
                              Family::far_outlier, Family::column_scales, Family::mostly_duplicates}) {
    for (const std::int64_t d : {24, 100, 33}) {
      expect_few_as_on_the_cpu(cuda(), family, {kRows, d, 24}, 9);
    }
  }
}

// More columns than a slot of the products has, and more than products serve.
TEST_F(Cuda, FewQueriesOfManyColumns) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  constexpr std::int64_t kRows = 20000;
  const std::vector<Way> ways = {{.method = Method::direct, .cuda = true}};
  for (const std::int64_t d : {132, 256, 1021, 1024, 1025}) {
    for (const Family family : {Family::gaussian, Family::clusters_1e2}) {
      expect_few_as_on_the_cpu(cuda(), family, {kRows, d, 24}, 3);
    }
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::uint8}) {
      Case c;
      c.family = Family::images;
      c.shape = {3000, d, dtype == DType::uint8 ? 8 : 24};
      c.dtype = c.query_dtype = dtype;
      check(c, {.ks = {10}, .radii = false}, ways);
    }
  }
}

TEST_F(Cuda, PlansOfFewQueriesNameTheirScreen) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  constexpr std::int64_t kRows = 20000;
  const std::string products = cuda_status().devices[0].compute_capability >= 80 ? "tf32" : "float32";
  const std::vector<std::uint16_t> values(kRows * 1025, 0);
  const auto screens = [&](const Context& ctx, std::int64_t m, std::int64_t d) {
    const TableView queries(values.data(), DType::float16, m, d, d);
    return plan_knn(ctx, TableView(values.data(), DType::float16, kRows, d, d), &queries,
                    {.k = 10, .method = Method::direct})
        .screens;
  };
  EXPECT_EQ(screens(cuda(), 4, 128), "float32");
  EXPECT_EQ(screens(cuda(), 5, 128), products);
  EXPECT_EQ(screens(cuda(), 24, 128), products);
  EXPECT_EQ(screens(cuda(), 25, 128), "");
  EXPECT_EQ(screens(cuda(), 24, 1025), "float32");
  EXPECT_EQ(screens(small(4), 24, 128), "float32");  // streamed
}

/// An index with a context of its own on the device, and a few queries of it.
class Searcher {
 public:
  explicit Searcher(std::int64_t d)
      : rows_(make_rows(Family::gaussian, {kRows, d, kQueries}, 2)),
        values_(singles(rows_.table)),
        query_values_(singles(rows_.queries)),
        table_(values_.data(), kRows, d),
        queries_(query_values_.data(), kQueries, d),
        index_(ctx_, table_),
        wanted_(knn(Context::cpu(), table_, queries_, {.k = 5})) {}
  /// Searches many times.
  void run() const {
    try {
      for (int i = 0; i < 1000; ++i) {
        expect_same(knn(ctx_, index_, queries_, {.k = 5, .method = Method::direct}), wanted_, "of several threads");
      }
    } catch (const Error& error) {
      ADD_FAILURE() << table_.cols() << " columns: " << error.what();
    }
  }

 private:
  static constexpr std::int64_t kRows = 500;
  static constexpr std::int64_t kQueries = 24;
  Context ctx_ = Context::cuda();
  Rows rows_;
  std::vector<float> values_;
  std::vector<float> query_values_;
  TableView table_;
  TableView queries_;
  Index index_;
  NeighborGraph wanted_;
};

// Blocks of a kernel have other shared memory for other columns, and contexts of a device launch it at the same time.
TEST_F(Cuda, ThreadsSearchTablesOfOtherWidths) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no shared memory";
  const Searcher wide(1024);
  const Searcher narrow(8);
  const Searcher other_wide(1024);
  const Searcher other_narrow(8);
  std::vector<std::thread> threads;
  for (const Searcher* searcher : {&wide, &narrow, &other_wide, &other_narrow}) {
    threads.emplace_back([searcher] { searcher->run(); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Little memory divides the rows into blocks, the first of which has the sample.
TEST_F(Cuda, FewQueriesOfSeveralBlocks) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  constexpr std::int64_t kRows = 200000;
  const Context ctx = small(16);
  for (const Family family :
       {Family::constant, Family::duplicates, Family::near_first, Family::far_first, Family::gaussian}) {
    const Rows rows = make_rows(family, {kRows, 4, 16}, 5);
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), kRows, 4);
    const TableView queries(query_values.data(), 16, 4);
    const Index index(ctx, table);
    for (const std::int64_t k : {1, 20, 200}) {
      const NeighborGraph got = knn(ctx, index, queries, {.k = k});
      EXPECT_NE(got.plan.reason.find("the table is read once"), std::string::npos) << got.plan.reason;
      expect_same(got, knn(cpu(), table, queries, {.k = k}), std::string(name_of(family)) + " k=" + std::to_string(k));
    }
  }
}

// Four columns are one load where all rows begin at one.
TEST_F(Cuda, FewQueriesOfTablesThatBeginWithinALoad) {
  constexpr std::int64_t kRows = 40000;
  const Rows rows = make_rows(Family::images, {kRows + 1, 8, 8}, 4);
  const auto table_values = singles(rows.table);
  const auto query_values = singles(rows.queries);
  std::vector<std::uint8_t> bytes(rows.table.size());
  std::transform(rows.table.begin(), rows.table.end(), bytes.begin(),
                 [](double value) { return static_cast<std::uint8_t>(value); });
  const DeviceArray<float> device_singles(table_values);
  const DeviceArray<std::uint8_t> device_bytes(bytes);
  const auto expect_at = [&](const auto& array, const auto& values, DType dtype, std::int64_t first) {
    const TableView there(array.data() + first, dtype, kRows, 8, 8, 1, Memory::cuda);
    const TableView here(values.data() + first, dtype, kRows, 8, 8);
    const Index index(cuda(), there);
    for (const std::int64_t m : {1, 8}) {
      const TableView queries(query_values.data(), m, 8);
      const KnnOptions options = {.k = 10, .method = Method::direct};
      expect_same(knn(cuda(), index, queries, options), knn(cpu(), here, queries, options),
                  "from value " + std::to_string(first) + ", m=" + std::to_string(m));
    }
  };
  for (const std::int64_t first : {0, 1, 2, 3}) {
    expect_at(device_singles, table_values, DType::float32, first);
    expect_at(device_bytes, bytes, DType::uint8, first);
  }
}

// A last tile that is shorter may have a longer block, which takes more.
TEST_F(Cuda, PlansOfFewQueriesCountTheLastTile) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no tiles";
  constexpr std::uint64_t kLimit = 4 * kMegabyte;
  const Context ctx = small(4);
  const std::vector<float> values(100000 * 8, 1);
  const TableView queries(values.data(), 16, 8);
  std::uint64_t least = kLimit;
  std::uint64_t most = 0;
  for (std::int64_t n = 70000; n <= 100000; n += 1000) {  // more than half of the limit
    const Plan plan = plan_knn(ctx, TableView(values.data(), n, 8), &queries, {.k = 10, .method = Method::direct});
    least = std::min(least, plan.device_memory);
    most = std::max(most, plan.device_memory);
    EXPECT_LE(plan.device_memory, kLimit) << n;
  }
  // Of each row and query a key and an id.
  EXPECT_GE(most, least + 2000 * 16 * 16);
}

TEST_F(Cuda, MassTiesAndSortedTables) {
  for (const Family family : {Family::constant, Family::duplicates, Family::near_first, Family::far_first}) {
    const Rows rows = make_rows(family, {40000, 4, 70}, 7);
    const TableView table(rows.table.data(), 40000, 4);
    const TableView queries(rows.queries.data(), 70, 4);
    for (const std::int64_t k : {1, 50, 3000}) {
      expect_same(knn(cuda(), table, queries, {.k = k, .method = Method::direct}), knn(cpu(), table, queries, {.k = k}),
                  std::string(name_of(family)) + " k=" + std::to_string(k));
    }
  }
}

/// Every search, of a table that a context of the device streams.
void check_streaming(const Context& ctx, const Context& cpu, const TableView& table, const TableView& host_table,
                     const TableView& queries) {
  const std::int64_t n = table.rows();
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((n + 63) / 64), 0x9249249249249249ULL);
  std::vector<std::int64_t> exclude;
  for (std::int64_t q = 0; q < queries.rows(); ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 97 % n);
  const Index there(ctx, table);
  const Index here(cpu, host_table);
  for (const std::int64_t k : {1, 20, 6000}) {  // the last in groups of queries
    KnnOptions options = {.k = k};
    expect_same(knn(ctx, there, queries, options), knn(cpu, here, queries, options), "k=" + std::to_string(k));
    options.filter = filter;
    options.exclude = exclude;
    expect_same(knn(ctx, there, queries, options), knn(cpu, here, queries, options), "filter, exclude");
  }
  const double r = knn(cpu, here, queries, {.k = 30}).distances[29];
  expect_same(radius(ctx, there, queries, {.radius = r}), radius(cpu, here, queries, {.radius = r}), "radius");
  EXPECT_EQ(count(ctx, there, queries, {.radius = r}).counts, count(cpu, here, queries, {.radius = r}).counts);
}

TEST_F(Cuda, TablesThatDoNotFitAreStreamed) {
  const Shape shape = {60000, 64, 70};
  const Rows rows = make_rows(Family::gaussian, shape, 8);
  const TableView table(rows.table.data(), shape.n, shape.d);  // 31 MB
  const TableView queries(rows.queries.data(), shape.m, shape.d);
  const Context ctx = small(16);
  const Plan plan = plan_knn(ctx, table, &queries, {.k = 5});
  EXPECT_NE(plan.reason.find("streamed"), std::string::npos) << plan.reason;
  EXPECT_LE(plan.device_memory, 16 * kMegabyte);
  check_streaming(ctx, cpu(), table, table, queries);
  const TableView blocks =
      TableView::blocks(DType::float64, shape.n, shape.d, [&](std::int64_t begin, std::int64_t end, void* to) {
        std::memcpy(to, rows.table.data() + begin * shape.d, static_cast<std::size_t>((end - begin) * shape.d) * 8);
      });
  check_streaming(ctx, cpu(), blocks, table, queries);
  const Rows more = make_rows(Family::duplicates, {3000, 900, 1}, 9);
  const TableView itself(more.table.data(), 3000, 900);  // 22 MB
  expect_same(knn(ctx, itself, {.k = 40}), knn(cpu(), itself, {.k = 40}), "within itself");
}

TEST_F(Cuda, FewQueriesOfATableThatDoesNotFit) {
  const Shape shape = {200000, 64, 8};
  const Context ctx = small(16);
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((shape.n + 63) / 64), 0x9249249249249249ULL);
  std::fill(filter.begin() + 100, filter.begin() + 1500, 0);  // whole tiles are out
  for (const Family family : {Family::gaussian, Family::duplicates, Family::constant, Family::near_first}) {
    const Rows rows = make_rows(family, shape, 10);
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), shape.n, shape.d);  // 51 MB
    for (const std::int64_t m : {1, 8}) {
      const TableView queries(query_values.data(), m, shape.d);
      const std::vector<std::int64_t> exclude(static_cast<std::size_t>(m), 3);
      KnnOptions options = {.k = 20, .method = Method::direct};
      const std::string what = std::string(name_of(family)) + " m=" + std::to_string(m);
      EXPECT_LE(plan_knn(ctx, table, &queries, options).device_memory, 16 * kMegabyte);
      expect_same(knn(ctx, table, queries, options), knn(cpu(), table, queries, options), what);
      options.filter = filter;
      options.exclude = exclude;
      expect_same(knn(ctx, table, queries, options), knn(cpu(), table, queries, options), what + ", filter, exclude");
    }
  }
}

TEST_F(Cuda, TilesThroughTheScreenAreMerged) {
  if (cuda_status().architectures == "fake") GTEST_SKIP() << "the fake device has no screen";
  const Shape shape = {300000, 96, 300};
  const Context ctx = small(160);
  for (const Family family : {Family::gaussian, Family::duplicates}) {
    const Rows rows = make_rows(family, shape, 13);
    const auto table_values = singles(rows.table);  // 115 MB
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), shape.n, shape.d);
    const TableView queries(query_values.data(), shape.m, shape.d);
    const Index there(ctx, table);
    const Index here(cpu(), table);
    std::vector<std::uint64_t> filter(static_cast<std::size_t>((shape.n + 63) / 64), 0x9249249249249249ULL);
    std::fill(filter.begin() + 1000, filter.begin() + 2000, 0);  // most of a tile is out
    std::vector<std::int64_t> exclude;
    for (std::int64_t q = 0; q < shape.m; ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 997 % shape.n);
    for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::inner_product}) {
      KnnOptions options = {.k = 17, .metric = metric, .method = Method::fused};
      const std::string what = std::string(name_of(family)) + " " + std::string(name_of(metric));
      try {
        expect_same(knn(ctx, there, queries, options), knn(cpu(), here, queries, {.k = 17, .metric = metric}), what);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
        GTEST_SKIP() << "this device has no screen: " << error.what();
      }
      options.filter = filter;
      options.exclude = exclude;
      KnnOptions on_cpu = options;
      on_cpu.method = Method::automatic;
      expect_same(knn(ctx, there, queries, options), knn(cpu(), here, queries, on_cpu), what + ", filter, exclude");
    }
    const TableView part = table.slice(0, 20000);
    const Context smaller = small(12);
    expect_same(knn(smaller, part, {.k = 9}), knn(cpu(), part, {.k = 9}), "within itself");
  }
}

TEST_F(Cuda, BytesAreMultipliedAsBytes) {
  if (cuda_status().architectures == "fake") GTEST_SKIP() << "the fake device has no screen";
  // Widths of one step and less, of whole and broken ones, resident and streamed; many values, and so few that ties
  // are the rule.
  for (const std::int64_t d : {12, 32, 100, 512, 784}) {
    for (const unsigned values : {256U, 3U}) {
      const std::int64_t n = 20001;
      const std::int64_t m = 300;
      std::mt19937 random(static_cast<unsigned>(d) * values);
      std::vector<std::uint8_t> table_values(static_cast<std::size_t>(n * d));
      std::vector<std::uint8_t> query_values(static_cast<std::size_t>(m * d));
      for (auto* list : {&table_values, &query_values}) {
        for (std::uint8_t& v : *list) v = static_cast<std::uint8_t>(random() % values * (255 / (values - 1)));
      }
      std::copy_n(query_values.begin(), 5 * d, table_values.begin() + 777 * d);  // some at distance 0
      const TableView table(table_values.data(), n, d);
      const TableView queries(query_values.data(), m, d);
      const Index there(cuda(), table);
      const Index here(cpu(), table);
      std::vector<std::uint64_t> filter(static_cast<std::size_t>((n + 63) / 64), 0x9249249249249249ULL);
      std::vector<std::int64_t> exclude;
      for (std::int64_t q = 0; q < m; ++q) exclude.push_back(q % 3 == 0 ? -1 : q * 97 % n);
      for (const Metric metric : {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product}) {
        const std::string what = std::string(name_of(metric)) + " d=" + std::to_string(d);
        for (const std::int64_t k : {1, 17, 200}) {
          KnnOptions options = {.k = k, .metric = metric};
          const NeighborGraph got = knn(cuda(), there, queries, options);
          if (got.plan.method == Method::fused && cuda_status().devices[0].compute_capability >= 80) {
            EXPECT_EQ(got.plan.screens, "int8") << what;
          }
          expect_same(got, knn(cpu(), here, queries, options), what);
          options.filter = filter;
          options.exclude = exclude;
          expect_same(knn(cuda(), there, queries, options), knn(cpu(), here, queries, options), what + ", filter");
        }
      }
      const TableView part = table.slice(0, 5000);
      expect_same(knn(cuda(), part, {.k = 9}), knn(cpu(), part, {.k = 9}), "within itself");
    }
  }
  // Asked for by name; without a screen of its own a device refuses it.
  const std::vector<std::uint8_t> bytes(4000 * 16, 7);
  const TableView table(bytes.data(), 4000, 16);
  try {
    EXPECT_EQ(knn(cuda(), table, {.k = 3, .method = Method::fused, .screen = ScreenType::int8}).plan.screens, "int8");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
  }
}

// 16 columns of float16 a step, five of which the screen has for itself, or 32 of bytes; more steps than are multiplied
// in turns, several tiles of queries, and rows that pass in every part of a tile.
TEST_F(Cuda, TilesOfEveryNumberOfSteps) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  const std::int64_t n = 40001;
  const std::int64_t m = 700;
  for (std::int64_t steps = 1; steps <= 11; ++steps) {
    const std::int64_t d = 16 * steps - 5;
    const Rows rows = make_rows(Family::gaussian, {n, d, m}, static_cast<std::uint64_t>(d));
    const auto table_values = singles(rows.table);
    const auto query_values = singles(rows.queries);
    const TableView table(table_values.data(), n, d);
    const TableView queries(query_values.data(), m, d);
    const std::int64_t bytes = 32 * steps;
    std::mt19937 random(static_cast<unsigned>(d));
    std::vector<std::uint8_t> table_bytes(static_cast<std::size_t>(n * bytes));
    std::vector<std::uint8_t> query_bytes(static_cast<std::size_t>(m * bytes));
    for (std::uint8_t& v : table_bytes) v = static_cast<std::uint8_t>(random() % 256);
    for (std::uint8_t& v : query_bytes) v = static_cast<std::uint8_t>(random() % 256);
    const TableView byte_table(table_bytes.data(), n, bytes);
    const TableView byte_queries(query_bytes.data(), m, bytes);
    for (const std::int64_t k : {1, 40}) {
      const KnnOptions options = {.k = k, .method = Method::fused};
      const std::string what = std::to_string(steps) + " steps, k=" + std::to_string(k);
      expect_same(knn(cuda(), table, queries, options), knn(cpu(), table, queries, {.k = k}), what);
      expect_same(knn(cuda(), byte_table, byte_queries, options), knn(cpu(), byte_table, byte_queries, {.k = k}),
                  what + ", bytes");
    }
    if (HasFailure()) return;
  }
}

TEST_F(Cuda, WhatGoesWrongWhileStreaming) {
  const Rows rows = make_rows(Family::gaussian, {60000, 64, 10}, 8);
  const TableView queries(rows.queries.data(), 10, 64);
  std::atomic<bool> fails{false};
  const auto fill = [&](std::int64_t begin, std::int64_t end, void* to) {
    if (fails && end > 40000) throw std::runtime_error("the source has run dry");
    std::memcpy(to, rows.table.data() + begin * 64, static_cast<std::size_t>((end - begin) * 64) * 8);
  };
  const Context ctx = small(24);
  const Index index(ctx, TableView::blocks(DType::float64, 60000, 64, fill));
  fails = true;
  EXPECT_THROW((void)knn(ctx, index, queries, {.k = 5}), std::runtime_error);
  fails = false;
  expect_same(knn(ctx, index, queries, {.k = 5}),
              knn(cpu(), TableView(rows.table.data(), 60000, 64), queries, {.k = 5}), "afterwards");
  std::vector<double> broken = rows.table;
  broken[51234 * 64 + 7] = std::numeric_limits<double>::quiet_NaN();
  std::string sentence;
  EXPECT_EQ(code_of([&] { (void)Index(ctx, TableView(broken.data(), 60000, 64)); }, &sentence), ErrorCode::bad_data);
  EXPECT_NE(sentence.find("row 51234, column 7"), std::string::npos) << sentence;
  broken = rows.table;
  broken[55555 * 64] = 1e200;
  EXPECT_EQ(code_of([&] { (void)knn(ctx, TableView(broken.data(), 60000, 64), queries, {.k = 5}); }, &sentence),
            ErrorCode::bad_data);
  EXPECT_NE(sentence.find("55555"), std::string::npos) << sentence;
}

TEST_F(Cuda, LimitsThatNothingFitsInto) {
  const Rows rows = make_rows(Family::gaussian, {2000, 8, 10}, 8);
  const TableView table(rows.table.data(), 2000, 8);
  EXPECT_EQ(code_of([&] { (void)knn(Context::cuda({.device_memory_limit = 1000}), table, {.k = 5}); }),
            ErrorCode::over_memory);
  EXPECT_EQ(code_of([&] { (void)knn(Context::cuda({.memory_limit = 1000}), table, {.k = 5}); }),
            ErrorCode::over_memory);
}

TEST_F(Cuda, ARadiusThatCatchesEverything) {
  const Rows rows = make_rows(Family::gaussian, {12000, 3, 500}, 10);
  const TableView table(rows.table.data(), 12000, 3);
  const TableView queries(rows.queries.data(), 500, 3);
  expect_same(radius(small(32), table, queries, {.radius = 1e6}), radius(cpu(), table, queries, {.radius = 1e6}),
              "everything");
  std::string sentence;
  EXPECT_EQ(
      code_of([&] { (void)radius(Context::cuda({.memory_limit = 8 * kMegabyte}), table, queries, {.radius = 1e6}); }),
      ErrorCode::over_memory);
}

TEST_F(Cuda, AnIndexMovesBetweenProcessorAndDevice) {
  const Rows rows = make_rows(Family::mostly_duplicates, {5000, 9, 60}, 11);
  const TableView table(rows.table.data(), 5000, 9);
  const TableView queries(rows.queries.data(), 60, 9);
  const Index here(cpu(), table);
  const Index there(cuda(), table);
  const NeighborGraph wanted = knn(cpu(), here, queries, {.k = 12});
  expect_same(knn(cuda(), here, queries, {.k = 12}), wanted, "made here, asked there");
  expect_same(knn(cpu(), there, queries, {.k = 12}), wanted, "made there, asked here");
  expect_same(knn(cuda(), there, queries, {.k = 12}), wanted, "made and asked there");
  const auto path = std::filesystem::temp_directory_path() / ("vicinal-cuda-" + std::to_string(getpid()) + ".index");
  there.save(cuda(), path);
  const Index loaded = Index::load(cuda(), path);
  expect_same(knn(cuda(), loaded, queries, {.k = 12}), wanted, "loaded there");
  expect_same(knn(cpu(), Index::load(cpu(), path), queries, {.k = 12}), wanted, "loaded here");
  std::filesystem::remove(path);
}

TEST_F(Cuda, SeveralThreadsTakeTurns) {
  const Rows rows = make_rows(Family::gaussian, {4000, 16, 80}, 12);
  const TableView table(rows.table.data(), 4000, 16);
  const TableView queries(rows.queries.data(), 80, 16);
  const NeighborGraph wanted = knn(cpu(), table, queries, {.k = 6});
  const Index index(cpu(), table);
  const Context other = Context::cuda();
  std::vector<NeighborGraph> got(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      const Context& ctx = t % 2 == 0 ? cuda() : other;
      got[t] = t % 3 == 0 ? knn(ctx, table, queries, {.k = 6}) : knn(ctx, index, queries, {.k = 6});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const NeighborGraph& graph : got) expect_same(graph, wanted, "of several threads");
}

TEST_F(Cuda, CancelStopsASearchSoon) {
  const Rows rows = make_rows(Family::gaussian, {200000, 64, 1}, 1);
  const TableView table(rows.table.data(), 200000, 64);
  for (const std::uint64_t megabytes : {std::uint64_t{4000}, std::uint64_t{64}}) {
    const CancelToken token;
    std::atomic<bool> has_started = false;
    const Context ctx = small(megabytes, token, [&](std::string_view, double) { has_started = true; });
    const Index index(ctx, table);
    std::atomic<std::chrono::steady_clock::rep> cancelled_at{0};
    std::thread canceller([&] {
      for (int i = 0; i < 5000 && !has_started; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cancelled_at = std::chrono::steady_clock::now().time_since_epoch().count();
      token.cancel();
    });
    EXPECT_EQ(code_of([&] { (void)knn(ctx, index, {.k = 5, .metric = Metric::minkowski, .p = 2.5}); }),
              ErrorCode::cancelled);
    const auto end = std::chrono::steady_clock::now().time_since_epoch().count();
    canceller.join();
    std::printf("a cancel took %.1f ms\n", static_cast<double>(end - cancelled_at) * 1e-6);
  }
}

// Lists in memory of the caller's, which may do with it what it likes once it is told that the search has ended.
TEST_F(Cuda, NothingIsWrittenAfterACancel) {
  if (is_fake()) GTEST_SKIP() << "the fake device does nothing beside its caller";
  constexpr std::int64_t kRows = 200000;
  constexpr std::int64_t kQueries = 200;
  const Rows rows = make_rows(Family::far_first, {kRows, 64, kQueries}, 1);  // each block of rows changes all lists
  const TableView table(rows.table.data(), kRows, 64);
  const TableView queries(rows.queries.data(), kQueries, 64);
  const Index index(cuda(), table);
  const DeviceArray<std::int64_t> ids(kQueries * 10);
  const DeviceArray<double> distances(kQueries * 10);
  const CancelToken token;
  const Context ctx = Context::cuda({.progress =
                                         [&](std::string_view, double fraction) {
                                           if (fraction > 0.2) token.cancel();
                                         },
                                     .cancel = token});
  const KnnOptions options = {.k = 10, .metric = Metric::minkowski, .p = 2.5, .method = Method::direct};
  EXPECT_EQ(code_of([&] {
              (void)knn_into(ctx, index, queries, options, {ids.data(), distances.data(), Memory::cuda});
            }),
            ErrorCode::cancelled);
  const std::vector<double> at_once = distances.host_beside();
  EXPECT_EQ(at_once, distances.host());
  EXPECT_EQ(ids.host_beside(), ids.host());
}

TEST_F(Cuda, WhatIsNotServedIsRefused) {
  const Rows rows = make_rows(Family::gaussian, {100, 3, 10}, 1);
  const TableView table(rows.table.data(), 100, 3);
  std::string sentence;
  const Rows line = make_rows(Family::gaussian, {3000, 1, 1}, 1);
  const TableView long_table(line.table.data(), 3000, 1);
  EXPECT_EQ(code_of([&] { (void)knn(cuda(), long_table, {.k = 2500, .method = Method::kdtree}); }, &sentence),
            ErrorCode::invalid_argument);
  EXPECT_NE(sentence.find("kdtree"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("2500"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("cuda:0"), std::string::npos) << sentence;
  EXPECT_EQ(code_of([&] { (void)radius(cuda(), table, {.radius = 1, .method = Method::insertion}); }, &sentence),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)knn(cuda(), table, {.k = 3, .method = Method::fused, .screen = ScreenType::int8}); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { (void)Context::cuda({.devices = {99}}); }, &sentence), ErrorCode::device_unavailable);
  EXPECT_NE(sentence.find("cuda:99"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace vicinal::contract
