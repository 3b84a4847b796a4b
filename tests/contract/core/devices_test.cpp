// Several devices as one: the same bits as one device and the CPU (contract clause 4), and one sentence where a device
// fails. On the fake devices, or on as many of the machine's as there are.
// fake device, threads: *
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/devices_check.hpp"
#include "device_check.hpp"
#include "kmeans/kmeans_check.hpp"
#include "ranks.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract::several {
namespace {

struct Bits {
  std::vector<std::uint64_t> words;

  template <class T>
  Bits& operator<<(const std::vector<T>& values) {
    words.push_back(values.size());
    for (const T& value : values) {
      std::uint64_t word = 0;
      std::memcpy(&word, &value, sizeof value);
      words.push_back(word);
    }
    return *this;
  }
  Bits& operator<<(const NeighborGraph& graph) { return *this << graph.ids << graph.distances << graph.offsets; }
  bool operator==(const Bits&) const = default;
};

/// What is asked, by name.
using Job = std::function<Bits(const Context& ctx)>;
using Jobs = std::map<std::string, Job>;

class Data {
 public:
  static constexpr std::int64_t n = 301;
  static constexpr std::int64_t d = 5;
  std::vector<double> values = rows_of(n, d, 7);
  std::vector<double> asked = rows_of(40, d, 7);
  std::vector<std::uint64_t> few = {0, 0, 1ULL << 5 | 1ULL << 63, 0x17, 0};
  std::vector<std::int64_t> exclude = std::vector<std::int64_t>(40, -1);
  std::vector<double> radii = std::vector<double>(40, 3);
  std::vector<double> weights = std::vector<double>(n, 1);
  TableView table{values.data(), n, d};
  TableView queries{asked.data(), 40, d};
  TableView two = queries.slice(0, 2);
  Labels labels;

  Data() {
    for (std::int64_t i = 0; i < 40; ++i) exclude[static_cast<std::size_t>(i)] = i % 3 == 0 ? -1 : i * 7 % n;
    for (std::size_t i = 0; i < 40; ++i) radii[i] = 1 + static_cast<double>(i) / 8;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i * 37 % 11) / 4;
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < n; ++i) classes.push_back(i * 13 % 7);
    labels = encode_labels(classes);
  }

  [[nodiscard]] Jobs searches() const {
    Jobs jobs;
    const auto find = [&](const std::string& name, const TableView* asks, const KnnOptions& options) {
      jobs[name] = [this, asks, options](const Context& ctx) {
        return Bits() << (asks == nullptr ? knn(ctx, table, options) : knn(ctx, table, *asks, options));
      };
    };
    find("within itself", nullptr, {.k = 6});
    find("within itself, more than a shard has", nullptr, {.k = 90});
    find("all rows", nullptr, {.k = n - 1});
    find("queries", &queries, {.k = 6});
    find("one query", &two, {.k = 1});
    find("two queries", &two, {.k = 2});
    find("all rows of two queries", &two, {.k = n});
    find("a filter that leaves shards without rows", &two, {.k = 6, .filter = few});
    find("the same within itself", nullptr, {.k = 5, .filter = few});
    find("exclude", &queries, {.k = 6, .exclude = exclude});
    find("a filter and exclude", &queries, {.k = 5, .filter = few, .exclude = exclude});
    find("max_radius", &queries, {.k = 6, .max_radius = 2});
    for (const Method method : {Method::direct, Method::fused, Method::kdtree}) {
      find(std::string(name_of(method)), &queries, {.k = 4, .method = method});
      find(std::string(name_of(method)) + " of two", &two, {.k = 2, .method = method});
    }
    for (const Metric metric : {Metric::sqeuclidean, Metric::manhattan, Metric::chebyshev, Metric::minkowski,
                                Metric::inner_product, Metric::cosine, Metric::hamming}) {
      find(std::string(name_of(metric)), &queries, {.k = 6, .metric = metric, .p = 3});
      find(std::string(name_of(metric)) + " of two", &two, {.k = 2, .metric = metric, .p = 3});
    }
    jobs["an index"] = [this](const Context& ctx) {
      const Index index(ctx, table);
      return Bits() << knn(ctx, index, {.k = 3}) << knn(ctx, index, two, {.k = 3}) << knn(ctx, index, {.k = 3});
    };
    jobs["lists into the caller's memory"] = [this](const Context& ctx) {
      std::vector<std::int64_t> ids(40 * 3);
      std::vector<double> distances(ids.size());
      knn_into(ctx, table, queries, {.k = 3}, {ids.data(), distances.data(), Memory::host});
      return Bits() << ids << distances;
    };
    return jobs;
  }
  [[nodiscard]] Jobs within_radii() const {
    Jobs jobs;
    const auto find = [&](const std::string& name, const RadiusOptions& options, bool self) {
      jobs[name] = [this, options, self](const Context& ctx) {
        const Index index(ctx, table);
        NeighborGraph lists;
        lists.offsets.push_back(0);
        const TakeLists take = [&](std::int64_t first, const NeighborGraph& batch) {
          EXPECT_EQ(first, std::ssize(lists.offsets) - 1) << ctx.device();
          lists.ids.insert(lists.ids.end(), batch.ids.begin(), batch.ids.end());
          lists.distances.insert(lists.distances.end(), batch.distances.begin(), batch.distances.end());
          for (std::size_t i = 1; i < batch.offsets.size(); ++i) {
            lists.offsets.push_back(lists.offsets.back() + batch.offsets[i] - batch.offsets[i - 1]);
          }
        };
        if (self) {
          radius_batches(ctx, index, options, take);
          return Bits() << radius(ctx, index, options) << count(ctx, index, options).counts << lists;
        }
        radius_batches(ctx, index, queries, options, take);
        return Bits() << radius(ctx, index, queries, options) << count(ctx, index, queries, options).counts << lists;
      };
    };
    find("radius within itself", {.radius = 2}, true);
    find("radius", {.radius = 2.5}, false);
    find("no neighbors", {.radius = 0}, false);
    find("radius by id", {.radius = 4, .order = RadiusOrder::id}, false);
    find("radii", {.radii = radii}, false);
    find("radius, filter and exclude", {.radius = 6, .filter = few, .exclude = exclude}, false);
    jobs["count of two"] = [this](const Context& ctx) {
      const Index index(ctx, table);
      return Bits() << count(ctx, index, two, {.radius = 5}).counts;
    };
    return jobs;
  }
  [[nodiscard]] Jobs votes() const {
    Jobs jobs;
    for (const bool many : {false, true}) {
      const TableView& asks = many ? queries : two;
      const std::string name = many ? "" : " of two";
      jobs["classify" + name] = [this, asks](const Context& ctx) {
        const std::vector<Labels> outputs = {labels, labels};
        Bits bits;
        for (const Vote& vote : classify(ctx, table, asks, outputs, {.k = 5}, {.probabilities = true}).votes) {
          bits << vote.codes << vote.probabilities;
        }
        return bits;
      };
      jobs["classify by custom weights" + name] = [this, asks](const Context& ctx) {
        const VoteOptions voting{.weights = Weighting::custom, .custom = [](auto distances, auto made) {
                                   std::copy(distances.begin(), distances.end(), made.begin());
                                 }};
        return Bits() << classify(ctx, table, asks, std::vector<Labels>{labels}, {.k = 5}, voting).votes[0].codes;
      };
      jobs["regress" + name] = [this, asks](const Context& ctx) {
        return Bits() << regress(ctx, table, asks, table, {.k = 5}, {.weights = Weighting::distance}).values;
      };
    }
    jobs["classify by a radius"] = [this](const Context& ctx) {
      const std::vector<Labels> outputs = {labels};
      return Bits() << classify_radius(ctx, table, queries, outputs, {.radius = 3}, {}).votes[0].codes;
    };
    return jobs;
  }
  [[nodiscard]] Jobs scores() const {
    Jobs jobs;
    const auto score = [&](const std::string& name, const LofOptions& options) {
      jobs[name] = [this, options](const Context& ctx) {
        const Lof found = lof(ctx, table, options);
        return Bits() << found.scores << found.k_distances << found.densities << found.caps
                      << std::vector<double>{found.threshold, found.spread}
                      << std::vector<std::int64_t>{found.outliers, found.copied};
      };
    };
    for (int i = 0; i <= static_cast<int>(OutlierScore::cof_pyod); ++i) {
      const auto kind = static_cast<OutlierScore>(i);
      score(std::string(name_of(kind)),
            {.k = 4, .score = kind, .contamination = 0.1, .novelty = i % 2 == 0 && kind != OutlierScore::inflo});
    }
    for (const AcrossK across : {AcrossK::min, AcrossK::max, AcrossK::mean}) {
      score("a range of k " + std::to_string(static_cast<int>(across)),
            {.k = 3, .k_to = 6, .across = across, .novelty = true});
    }
    score("cap", {.k = 1, .duplicates = Duplicates::cap, .novelty = true});
    score("cap of a range", {.k = 1, .k_to = 3, .duplicates = Duplicates::cap});
    score("one", {.k = 2, .duplicates = Duplicates::one});
    score("distinct", {.k = 2, .duplicates = Duplicates::distinct});
    score("ties", {.k = 3, .ties = Ties::all});
    jobs["novelty"] = [this](const Context& ctx) {
      const Index index(ctx, table);
      const Lof model = lof(ctx, index, {.k = 4, .novelty = true});
      return Bits() << novelty(ctx, index, model, queries) << novelty(ctx, index, model, two);
    };
    return jobs;
  }
  [[nodiscard]] Jobs clusters() const {
    Jobs jobs;
    const auto cluster = [&](const std::string& name, const KMeansOptions& options) {
      jobs[name] = [this, options](const Context& ctx) {
        const KMeans found = kmeans(ctx, table, options);
        return Bits() << found.labels << found.sizes << found.centres << found.history
                      << std::vector<double>{found.inertia, static_cast<double>(found.iterations)};
      };
    };
    for (const KMeansInit init :
         {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
      cluster(std::string(name_of(init)), {.clusters = 9, .init = init, .seed = 3});
    }
    cluster("given", {.clusters = 40, .init = KMeansInit::given, .centres = queries, .history = true});
    cluster("empty ones take rows", {.clusters = 90, .init = KMeansInit::random, .seed = 5, .tolerance = 0});
    cluster("empty ones stay", {.clusters = 90, .init = KMeansInit::random, .empty = EmptyClusters::keep});
    cluster("weights", {.clusters = 7, .weights = weights, .runs = 2});
    cluster("cosine", {.clusters = 7, .metric = Metric::cosine});
    cluster("classical",
            {.clusters = 7, .init = KMeansInit::first_k, .changed_share = 0.01, .rule = KMeansRule::classical});
    cluster("mini-batches", {.clusters = 7, .max_iterations = 5, .batch_size = 50});
    jobs["values far apart"] = [this](const Context& ctx) {
      std::vector<double> far = values;
      for (std::size_t i = 0; i < far.size(); i += 7) far[i] *= 0x1p-90;
      for (std::size_t i = 3; i < far.size(); i += 31) far[i] *= 0x1p50;
      const KMeans found = kmeans(ctx, TableView(far.data(), n, d), {.clusters = 5, .init = KMeansInit::first_k});
      return Bits() << found.labels << found.centres << std::vector<double>{found.inertia};
    };
    jobs["as many clusters as rows"] = [this](const Context& ctx) {
      return Bits() << kmeans(ctx, table.slice(0, 3), {.clusters = 3}).centres;
    };
    jobs["components"] = [](const Context& ctx) {
      const std::vector<std::int32_t> a = {0, 1, 2, 2, 5};
      const std::vector<std::int32_t> b = {0, 0, 1, 2, 3};
      const Cocluster found = cocluster(ctx, BipartiteEdges(6, 4, a, b));
      return Bits() << found.labels_a << found.labels_b;
    };
    return jobs;
  }
};

const Data& data() {
  static const Data kData;
  return kData;
}

class DevicesSameBits : public Devices, public ::testing::WithParamInterface<Jobs (Data::*)() const> {};

// Faults: ids of a shard, lists merged by distances, a cut filter, sums on several grids, densities of own rows alone.
TEST_P(DevicesSameBits, AsOneDeviceAndTheCpu) {
  for (const auto& [name, job] : (data().*GetParam())()) {
    const Bits expected = job(cpu());
    for_each_count(
        [&](const Context& ctx, const std::string& on) { EXPECT_EQ(job(ctx), expected) << name << ", " << on; });
  }
}

INSTANTIATE_TEST_SUITE_P(OnDevice, DevicesSameBits,
                         ::testing::Values(&Data::searches, &Data::within_radii, &Data::votes, &Data::scores,
                                           &Data::clusters));

// Faults: the table copied whole to each device, streamed, or refused.
TEST_F(Devices, ATableThatFitsOnlyDividedIsDivided) {
  const std::int64_t n = is_fake() ? 3000 : 300'000;
  const std::int64_t d = 40;
  const std::vector<double> values = rows_of(n, d, 3);
  const std::vector<float> rows(values.begin(), values.end());
  const TableView table(rows.data(), n, d);
  // Half of the limit is for tables: 480 kB or 48 MB do not fit, a part of two does.
  const std::uint64_t limit = is_fake() ? 600'000 : 60'000'000;
  const Context one = Context::cuda({.device_memory_limit = limit, .threads = 2});
  const Context two = Context::cuda({.devices = {0, 1}, .device_memory_limit = limit, .threads = 2});
  const TableView queries = table.slice(0, 20);
  const NeighborGraph expected = knn(one, table, queries, {.k = 9, .metric = Metric::manhattan});
  const NeighborGraph got = knn(two, table, queries, {.k = 9, .metric = Metric::manhattan});
  expect_same(got, expected, "divided");
  EXPECT_NE(expected.plan.reason.find("streamed"), std::string::npos) << expected.plan.reason;
  EXPECT_EQ(got.plan.reason.find("streamed"), std::string::npos) << got.plan.reason;
}

// Where votes are counted, why, and whether the host has memory for lists there.
TEST_F(Devices, PlansOfVotes) {
  const Data& of = data();
  const Context ctx = devices(2);
  const std::vector<Labels> labels = {of.labels};
  VoteOptions custom;
  custom.weights = Weighting::custom;
  custom.custom = [](std::span<const double>, std::span<double> weights) {
    std::fill(weights.begin(), weights.end(), 1);
  };
  const auto plan_of = [&](const TableView& queries, std::int64_t k, const VoteOptions& voting) {
    return classify(ctx, of.table, queries, labels, {.k = k, .method = Method::direct}, voting).plan;
  };
  const auto bytes_of_lists = [&](const TableView& queries, const VoteOptions& voting) {
    return static_cast<std::int64_t>(plan_of(queries, 9, voting).memory) -
           static_cast<std::int64_t>(plan_of(queries, 6, voting).memory);
  };
  const std::string by_rows = "the devices divide the table's rows, so votes are counted on the host";
  const std::string by_custom = "custom weights are a function on the host, so votes are counted there";
  const auto says = [](const Plan& plan, const std::string& why) { return plan.reason.find(why) != std::string::npos; };
  const Plan by_queries = plan_of(of.queries, 6, {});
  EXPECT_FALSE(says(by_queries, by_custom)) << by_queries.reason;
  EXPECT_FALSE(says(by_queries, by_rows)) << by_queries.reason;
  EXPECT_LT(bytes_of_lists(of.queries, {}), 40 * 3 * 16) << "lists that stay on the devices";
  const Plan of_two = plan_of(of.two, 6, {});
  EXPECT_FALSE(says(of_two, by_custom)) << of_two.reason;
  EXPECT_TRUE(says(of_two, by_rows)) << of_two.reason;
  EXPECT_GE(bytes_of_lists(of.two, {}), 2 * 3 * 16);
  for (const TableView& queries : {of.queries, of.two}) {
    const Plan plan = plan_of(queries, 6, custom);
    EXPECT_TRUE(says(plan, by_custom)) << plan.reason;
    EXPECT_FALSE(says(plan, by_rows)) << plan.reason;
    EXPECT_GE(bytes_of_lists(queries, custom), queries.rows() * 3 * 16);
  }
}

TEST_F(Devices, AnIndexMovesBetweenContexts) {
  const Data& of = data();
  const NeighborGraph expected = knn(cpu(), of.table, of.queries, {.k = 5});
  const NeighborGraph few = knn(cpu(), of.table, of.two, {.k = 2});
  const Index made_by_cpu(cpu(), of.table);
  const Index made_by_two(devices(2), of.table);
  for_each_count([&](const Context& ctx, const std::string& on) {
    for (const Index* index : {&made_by_cpu, &made_by_two}) {
      expect_same(knn(ctx, *index, of.queries, {.k = 5}), expected, on);
      expect_same(knn(ctx, *index, of.two, {.k = 2}), few, on);
      expect_same(knn(ctx, *index, of.queries, {.k = 5, .method = Method::kdtree}), expected, on + " kdtree");
    }
  });
  expect_same(knn(cpu(), made_by_two, of.queries, {.k = 5}), expected, "cpu");
}

// Faults: the row of a shard, the sentence of a higher device, a name in front of what is wrong with the data.
TEST_F(Devices, DataIsRefusedByTheSameSentence) {
  std::vector<double> values = data().values;
  const TableView table(values.data(), Data::n, Data::d);
  values[299 * Data::d + 2] = std::numeric_limits<double>::infinity();
  values[130 * Data::d + 3] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::function<void(const Context& ctx)>> jobs = {
      [&](const Context& ctx) { knn(ctx, table, {.k = 2}); },
      [&](const Context& ctx) { knn(ctx, data().table, table, {.k = 2}); },
      [&](const Context& ctx) { kmeans(ctx, table, {.clusters = 2}); },
      [&](const Context& ctx) { knn(ctx, data().table, {.k = Data::n}); },
      [&](const Context& ctx) { lof(ctx, data().table, {.k = Data::n}); },
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string expected = sentence_of([&] { jobs[i](cpu()); });
    EXPECT_FALSE(expected.empty());
    for_each_count([&](const Context& ctx, const std::string& on) {
      EXPECT_EQ(sentence_of([&] { jobs[i](ctx); }), expected) << i << ", " << on;
    });
  }
}

TEST_F(Devices, WhatSeveralDoNotServeIsRefusedByName) {
  const auto open = [](std::vector<int> list) { Context::cuda({.devices = std::move(list)}); };
  refused([&] { open({}); }, ErrorCode::invalid_argument, "devices: none");
  refused([&] { open({0, 1, 0}); }, ErrorCode::invalid_argument, "devices: cuda:0 is given twice");
  refused([&] { open({0, -2}); }, ErrorCode::invalid_argument, "there is no cuda:-2");
  refused([&] { open({0, 99}); }, ErrorCode::device_unavailable, "cuda:99");
  const std::vector<double> rows(60, 1);
  const TableView table(rows.data(), 30, 2);
  const Context& two = devices(2);
  EXPECT_EQ(two.device(), "cuda:0,1");
  const TableView there(rows.data(), DType::float64, 30, 2, 2, 1, Memory::cuda);
  refused([&] { knn(two, there, {.k = 2}); }, ErrorCode::device_unavailable, "which cuda:0,1 cannot divide");
  std::vector<std::int64_t> ids(60);
  std::vector<double> distances(60);
  refused(
      [&] {
        knn_into(two, table, {.k = 2}, {ids.data(), distances.data(), Memory::cuda});
      },
      ErrorCode::device_unavailable, "output: is in CUDA memory, which cuda:0,1 cannot divide");
  EXPECT_EQ(cuda_devices_from("cuda:3,1"), (std::vector<int>{3, 1}));
  for (const char* const wrong : {"", "cpu", "cuda:", "cuda:1,", "cuda:,1", "cuda:a", "cuda:-1", "cuda:0, 1"}) {
    EXPECT_TRUE(cuda_devices_from(wrong).empty()) << wrong;
  }
}

/// Rows of `data` that come in blocks; `look` is called before each block.
TableView in_blocks(const std::vector<double>& values, const std::function<void()>& look) {
  constexpr std::int64_t d = Data::d;
  const auto n = static_cast<std::int64_t>(values.size()) / d;
  return TableView::blocks(DType::float64, n, d, [&values, look](std::int64_t begin, std::int64_t end, void* to) {
    look();
    std::copy_n(values.begin() + begin * d, (end - begin) * d, static_cast<double*>(to));
  });
}

// Faults: blocks read on a device's thread, rows of another range, a block that waits for ever.
TEST_F(Devices, BlocksAreReadOnTheCallersThread) {
  const Data& of = data();
  const auto caller = std::this_thread::get_id();
  std::int64_t read = 0;
  const auto look = [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++read;
  };
  const TableView rows = in_blocks(of.values, look);
  const TableView asks = in_blocks(of.asked, look);
  const std::vector<Labels> labels = {of.labels};
  const std::vector<std::function<Bits(const Context& ctx, bool blocks)>> jobs = {
      [&](const Context& ctx, bool blocks) { return Bits() << knn(ctx, blocks ? rows : of.table, {.k = 6}); },
      [&](const Context& ctx, bool blocks) {
        return Bits() << knn(ctx, of.table, blocks ? asks : of.queries, {.k = 6});
      },
      [&](const Context& ctx, bool blocks) {
        return Bits() << knn(ctx, blocks ? rows : of.table, blocks ? asks.slice(3, 5) : of.queries.slice(3, 5),
                             {.k = 2});
      },
      [&](const Context& ctx, bool blocks) {
        return Bits() << radius(ctx, blocks ? rows : of.table, blocks ? asks : of.queries, {.radius = 2.5});
      },
      [&](const Context& ctx, bool blocks) {
        const Index index(ctx, blocks ? rows : of.table);
        Bits bits;
        const TakeLists take = [&](std::int64_t, const NeighborGraph& lists) { bits << lists; };
        radius_batches(ctx, index, {.radius = 2}, take);
        return bits.words.empty() ? bits : Bits() << count(ctx, index, {.radius = 2}).counts;
      },
      [&](const Context& ctx, bool blocks) {
        return Bits() << classify(ctx, blocks ? rows : of.table, of.queries, labels, {.k = 5}, {}).votes[0].codes;
      },
      [&](const Context& ctx, bool blocks) {
        const Lof found = lof(ctx, blocks ? rows : of.table, {.k = 4, .novelty = true});
        return Bits() << found.scores << found.densities;
      },
      [&](const Context& ctx, bool blocks) {
        const KMeans found = kmeans(ctx, blocks ? rows : of.table, {.clusters = 9, .seed = 3});
        return Bits() << found.labels << found.centres << predict(ctx, found, blocks ? asks : of.queries);
      },
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Bits expected = jobs[i](cpu(), false);
    for_each_count([&](const Context& ctx, const std::string& on) {
      read = 0;
      EXPECT_EQ(jobs[i](ctx, true), expected) << i << ", " << on;
      EXPECT_GT(read, 0) << i << ", " << on;
    });
  }
}

// Faults: a device that waits for a block that is not to come, and another exception than the source's.
TEST_F(Devices, WhatABlockThrowsEndsAll) {
  const Watchdog watchdog(std::chrono::seconds(120));
  const Data& of = data();
  CancelToken cancel;
  const Context ctx = Context::cuda({.devices = first_devices(most()), .threads = 2, .cancel = cancel});
  std::int64_t left = 0;
  bool throws = true;
  const TableView rows = in_blocks(of.values, [&] {
    if (left-- > 0) return;
    if (throws) throw std::runtime_error("mine");
    cancel.cancel();
  });
  for (left = 0;;) {
    const std::int64_t from = left;
    try {
      knn(ctx, rows, {.k = 3});
      break;
    } catch (const std::runtime_error& error) {
      if (from > 40) throw;
      EXPECT_STREQ(error.what(), "mine");
    }
    left = from + 1;
  }
  EXPECT_GE(left, 0);
  throws = false;
  left = 1;
  EXPECT_EQ(sentence_of([&] { knn(ctx, rows, {.k = 3}); }),
            std::to_string(static_cast<int>(ErrorCode::cancelled)) + ": cancelled");
}

// Faults: a hang, the sentence of a device that was only canceled, and a device that stays canceled.
TEST_F(Devices, OneThatIsLostEndsAllWithOneSentence) {
  if (!is_fake()) GTEST_SKIP() << "only fake devices can be lost";
  const Watchdog watchdog(std::chrono::seconds(120));
  const Data& of = data();
  const Jobs jobs = {
      {"within itself", of.searches().at("within itself")},
      {"of two", of.searches().at("two queries")},
      {"kdtree", of.searches().at("kdtree")},
      {"radius", of.within_radii().at("radius")},
      {"classify", of.votes().at("classify")},
      {"lof", of.scores().at("lof")},
      {"kmeans", of.clusters().at("random")},
  };
  const Context& ctx = devices(3);
  std::int64_t losses = 0;
  for (const auto& [name, job] : jobs) {
    const Bits expected = job(cpu());
    for (int device = 0; device < 3; ++device) {
      for (std::int64_t call = 1; call < 40; call += call < 4 ? 1 : 5 * call) {
        lose(device, call);
        const std::string sentence = sentence_of([&] { EXPECT_EQ(job(ctx), expected) << name; });
        lose(-1, 0);
        if (sentence.empty()) break;  // it has fewer calls
        ++losses;
        EXPECT_EQ(sentence, std::to_string(static_cast<int>(ErrorCode::internal)) + ": cuda:" + std::to_string(device) +
                                ": CUDA: synchronize: the device is lost")
            << name << ", call " << call;
      }
    }
    EXPECT_EQ(job(ctx), expected) << name << ", after that";
  }
  EXPECT_GT(losses, 60);
}

// Faults: progress told on a device's thread, beyond 1, or not at all; a cancel that only the calling thread sees.
TEST_F(Devices, ProgressIsToldOnTheCallersThreadAndACancelEndsAll) {
  const auto caller = std::this_thread::get_id();
  CancelToken cancel;
  bool cancels = false;
  std::atomic<int> told = 0;
  const Context ctx = Context::cuda({.devices = first_devices(most()),
                                     .threads = 2,
                                     .progress =
                                         [&](std::string_view stage, double fraction) {
                                           EXPECT_EQ(std::this_thread::get_id(), caller);
                                           EXPECT_FALSE(stage.empty());
                                           EXPECT_TRUE(fraction >= 0 && fraction <= 1) << fraction;
                                           ++told;
                                           if (cancels) cancel.cancel();
                                         },
                                     .cancel = cancel});
  const Data& of = data();
  EXPECT_EQ(Bits() << knn(ctx, of.table, {.k = 3}), Bits() << knn(cpu(), of.table, {.k = 3}));
  EXPECT_GT(told, 0);
  cancels = true;
  const std::string cancelled = std::to_string(static_cast<int>(ErrorCode::cancelled)) + ": cancelled";
  EXPECT_EQ(sentence_of([&] { kmeans(ctx, of.table, {.clusters = 20, .tolerance = 0}); }), cancelled);
  EXPECT_EQ(sentence_of([&] { knn(ctx, of.table, {.k = 3}); }), cancelled);
}

TEST_F(Devices, WhatACallbackThrowsIsThrown) {
  const Context ctx = Context::cuda({.devices = {0, 1}, .threads = 2, .progress = [](std::string_view, double) {
                                       throw std::runtime_error("mine");
                                     }});
  EXPECT_THROW(knn(ctx, data().table, {.k = 3}), std::runtime_error);
  const Index index(devices(2), data().table);
  const auto take = [](std::int64_t, const NeighborGraph&) { throw std::runtime_error("mine"); };
  EXPECT_THROW(radius_batches(devices(2), index, {.radius = 3}, take), std::runtime_error);
}

TEST_F(Devices, CallersTakeTurns) {
  const Data& of = data();
  const Bits expected = Bits() << knn(cpu(), of.table, of.queries, {.k = 3});
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(
        [&] { same += (Bits() << knn(devices(2), of.table, of.queries, {.k = 3})) == expected ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 3);
}

}  // namespace
}  // namespace vicinal::contract::several
