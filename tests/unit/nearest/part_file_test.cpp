// Files of parts: there and back for every kind, and thousands of damaged files refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check_sum.hpp"
#include "core/philox.hpp"
#include "refusal.hpp"
#include "vicinal/parts.hpp"

namespace vicinal {
namespace {

namespace fs = std::filesystem;

class PartFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("vicinal_part_" + std::to_string(getpid()) + "_" +
                                              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "0.part";
    for (int i = 0; i < 60; ++i) rows_.push_back(static_cast<float>((i * 37) % 23) / 4);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] TableView table() const { return {rows_.data(), 20, 3}; }
  [[nodiscard]] TableView shard() const { return table().slice(4, 15); }
  [[nodiscard]] NeighborPart lists_of(std::int64_t k) const {
    return knn_part(ctx_, shard(), table(), {.k = k, .metric = Metric::minkowski, .p = 1.5}, place_);
  }
  [[nodiscard]] std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  fs::path folder_;
  fs::path path_;
  std::vector<float> rows_;
  PartOptions place_ = {.first_id = 4, .first_query = 0, .self = true, .total_rows = 20, .total_queries = 20};
  Context ctx_ = Context::cpu({.threads = 2});
};

void expect_same(const NeighborPart& got, const NeighborPart& wanted) {
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.keys, wanted.keys);
  EXPECT_EQ(got.offsets, wanted.offsets);
  EXPECT_EQ(got.radii, wanted.radii);
  EXPECT_EQ(got.counts, wanted.counts);
  EXPECT_EQ(got.info.kind, wanted.info.kind);
  EXPECT_EQ(got.info.metric, wanted.info.metric);
  EXPECT_EQ(got.info.p, wanted.info.p);
  EXPECT_EQ(got.info.k, wanted.info.k);
  EXPECT_EQ(got.info.radius, wanted.info.radius);
  EXPECT_EQ(got.info.has_radii, wanted.info.has_radii);
  EXPECT_EQ(got.info.order, wanted.info.order);
  EXPECT_EQ(got.info.rows, wanted.info.rows);
  EXPECT_EQ(got.info.cols, wanted.info.cols);
  EXPECT_EQ(got.info.queries, wanted.info.queries);
  EXPECT_EQ(got.info.place.first_id, wanted.info.place.first_id);
  EXPECT_EQ(got.info.place.first_query, wanted.info.place.first_query);
  EXPECT_EQ(got.info.place.self, wanted.info.place.self);
  EXPECT_EQ(got.info.place.total_rows, wanted.info.place.total_rows);
  EXPECT_EQ(got.info.place.total_queries, wanted.info.place.total_queries);
  EXPECT_EQ(got.stats.survivors, wanted.stats.survivors);
  EXPECT_EQ(got.stats.search_seconds, wanted.stats.search_seconds);
}

TEST_F(PartFileTest, EveryKindIsReadAsItWasWritten) {
  std::vector<double> radii(20, 1.5);
  radii[3] = 0.1;
  const std::vector<NeighborPart> parts = {
      lists_of(3),
      lists_of(11),  // of which queries of the shard have 10
      radius_part(ctx_, shard(), table(), {.radius = 1.5}, place_),
      radius_part(ctx_, shard(), table(), {.order = RadiusOrder::id, .radii = radii}, place_),
      radius_part(ctx_, shard(), table(), {.radius = std::numeric_limits<double>::infinity()}, place_),
      radius_part(ctx_, shard(), table(), {.radius = 0}, place_),
      count_part(ctx_, shard(), table(), {.radius = 1.5}, place_),
      count_part(ctx_, shard(), table(), {.radii = radii}, {.first_id = 4}),
  };
  for (const NeighborPart& part : parts) {
    write_part(ctx_, path_, part);
    EXPECT_TRUE(is_part_file(ctx_, path_));
    expect_same(read_part(ctx_, path_), part);
    const PartSource source = open_part(ctx_, path_);
    EXPECT_EQ(source.name, "'" + path_.string() + "'");
    const NeighborPart some = source.read(4, 9);
    EXPECT_EQ(some.info.queries, 5);
    EXPECT_EQ(some.info.place.first_query, 4);
    if (part.info.kind == PartKind::count) {
      EXPECT_TRUE(std::equal(some.counts.begin(), some.counts.end(), part.counts.begin() + 4, part.counts.begin() + 9));
      continue;
    }
    const auto at = [&](std::int64_t i) {
      return part.offsets.empty() ? i * part.info.k : part.offsets[static_cast<std::size_t>(i)];
    };
    EXPECT_EQ(source.neighbors(4, 9), at(9) - at(4));
    EXPECT_TRUE(std::equal(some.ids.begin(), some.ids.end(), part.ids.begin() + at(4), part.ids.begin() + at(9)));
    EXPECT_TRUE(std::equal(some.keys.begin(), some.keys.end(), part.keys.begin() + at(4), part.keys.begin() + at(9)));
    EXPECT_TRUE(source.read(20, 20).ids.empty());
    refusal(ErrorCode::invalid_argument, [&] { static_cast<void>(source.read(-1, 3)); });
    refusal(ErrorCode::invalid_argument, [&] { static_cast<void>(source.neighbors(5, 21)); });
  }
}

TEST_F(PartFileTest, BytesAreThoseOfTheFile) {
  for (const NeighborPart& part :
       {lists_of(3), lists_of(11), radius_part(ctx_, shard(), table(), {.radius = 1.5}, place_),
        count_part(ctx_, shard(), table(), {.radius = 1.5}, place_)}) {
    write_part(ctx_, path_, part);
    const std::string file = read();
    const std::vector<std::byte> bytes = part_bytes(ctx_, part);
    ASSERT_EQ(bytes.size(), file.size());
    EXPECT_EQ(std::memcmp(bytes.data(), file.data(), file.size()), 0);
    const PartSource source = open_part_bytes(ctx_, bytes, "part 0");
    EXPECT_EQ(source.name, "'part 0'");
    NeighborPart got = source.read(0, 20);
    got.stats = source.stats;
    expect_same(got, part);
    std::vector<std::byte> damaged = bytes;
    for (const std::size_t at : {std::size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
      damaged[at] ^= std::byte{1};
      const std::string sentence = refusal(ErrorCode::bad_data, [&] { open_part_bytes(ctx_, damaged, "part 0"); });
      EXPECT_NE(sentence.find("part file 'part 0'"), std::string::npos) << sentence;
      damaged[at] = bytes[at];
    }
    for (std::size_t size = 0; size < bytes.size(); size += 97) {
      refusal(ErrorCode::bad_data, [&] { open_part_bytes(ctx_, std::span(bytes).first(size), "part 0"); });
    }
  }
  refusal(ErrorCode::bad_data, [&] { open_part_bytes(ctx_, {}, "part 0"); });
  NeighborPart part = lists_of(3);
  refusal(ErrorCode::over_memory, [&] { part_bytes(ctx_.with_memory_limit(100), part); });
  part.ids.pop_back();
  refusal(ErrorCode::invalid_argument, [&] { part_bytes(ctx_, part); });
}

TEST_F(PartFileTest, ListsWithinARadiusAreWrittenAsTheyAreFound) {
  for (const RadiusOrder order : {RadiusOrder::key, RadiusOrder::id}) {
    const RadiusOptions options = {.radius = 1.5, .order = order};
    const NeighborPart whole = radius_part(ctx_, shard(), table(), options, place_);
    std::int64_t neighbors = 0;
    const NeighborPart without = radius_part_file(ctx_, shard(), table(), options, place_, path_, &neighbors);
    EXPECT_TRUE(without.ids.empty());
    EXPECT_EQ(neighbors, std::ssize(whole.ids));
    NeighborPart got = read_part(ctx_, path_);
    got.stats = whole.stats;
    expect_same(got, whole);
  }
  const std::vector<double> radii(20, 1.25);
  const RadiusOptions each = {.radii = radii};
  radius_part_file(ctx_, shard(), table(), each, place_, path_);
  EXPECT_EQ(read_part(ctx_, path_).ids, radius_part(ctx_, shard(), table(), each, place_).ids);
  EXPECT_EQ(read_part(ctx_, path_).radii, radii);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(PartFileTest, FilesMergeToTheWhole) {
  std::vector<PartSource> sources;
  for (const auto& [begin, end] : {std::pair(15, 20), std::pair(0, 4), std::pair(4, 15)}) {
    place_.first_id = begin;
    const fs::path file = folder_ / (std::to_string(begin) + ".part");
    write_part(ctx_, file, knn_part(ctx_, table().slice(begin, end), table(), {.k = 7}, place_));
    sources.push_back(open_part(ctx_, file));
  }
  const NeighborGraph got = merge(ctx_, sources);
  const NeighborGraph wanted = knn(ctx_, table(), {.k = 7});
  EXPECT_EQ(got.ids, wanted.ids);
  EXPECT_EQ(got.distances, wanted.distances);
  EXPECT_EQ(plan_merge(ctx_, sources).memory, got.plan.memory);
  sources.pop_back();
  const std::string sentence = refusal(ErrorCode::invalid_argument, [&] { static_cast<void>(merge(ctx_, sources)); });
  EXPECT_EQ(sentence, "parts: rows 4 to 14 are missing");
}

TEST_F(PartFileTest, OtherFilesAndUnwritablePartsAreRefused) {
  EXPECT_FALSE(is_part_file(ctx_, path_));
  refusal(ErrorCode::io, [&] { open_part(ctx_, path_); });
  refusal(ErrorCode::io, [&] { open_part(ctx_, folder_); });
  write("no part");
  EXPECT_FALSE(is_part_file(ctx_, path_));
  EXPECT_NE(refusal(ErrorCode::bad_data, [&] { open_part(ctx_, path_); }).find("part file '"), std::string::npos);
  Index(ctx_, table()).save(ctx_, path_);
  EXPECT_NE(refusal(ErrorCode::bad_data, [&] { open_part(ctx_, path_); }).find("it is not a part of vicinal"),
            std::string::npos);
  NeighborPart part = lists_of(3);
  refusal(ErrorCode::io, [&] { write_part(ctx_, folder_ / "nowhere" / "0.part", part); });
  refusal(ErrorCode::io,
          [&] { radius_part_file(ctx_, shard(), table(), {.radius = 1}, place_, folder_ / "nowhere" / "0.part"); });
  part.ids.pop_back();
  refusal(ErrorCode::invalid_argument, [&] { write_part(ctx_, path_, part); });
  part.info.queries = 0;
  refusal(ErrorCode::invalid_argument, [&] { write_part(ctx_, path_, part); });
  refusal(ErrorCode::over_memory, [&] {
    write_part(ctx_, path_, lists_of(3));
    static_cast<void>(read_part(ctx_.with_memory_limit(100), path_));
  });
}

TEST_F(PartFileTest, ARefusedFileIsClosed) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  for (int i = 0; i < 10; ++i) refusal(ErrorCode::io, [&] { open_part(ctx_, folder_); });
  EXPECT_EQ(open_files(), before);
}

// An exponent below 1 has no distances, and its root may have no end.
TEST_F(PartFileTest, NumbersOfNoSearchAreRefused) {
  write_part(ctx_, path_, lists_of(3));
  std::string bytes = read();
  const std::string right = "\"p\":\"1.5\"";
  ASSERT_NE(bytes.find(right), std::string::npos);
  for (const char* wrong : {"\"p\":\"0.5\"", "\"p\":\"-.0\"", "\"p\":\"nan\""}) {
    write(summed(std::string(bytes).replace(bytes.find(right), right.size(), wrong)));
    refusal(ErrorCode::bad_data, [&] { open_part(ctx_, path_); });
  }
}

TEST_F(PartFileTest, ACancelLeavesTheTargetAsItWas) {
  const NeighborPart part = lists_of(3);
  const CancelToken token;
  token.cancel();
  const Context cancelled = Context::cpu({.threads = 1, .cancel = token});
  write("before");
  refusal(ErrorCode::cancelled, [&] { write_part(cancelled, path_, part); });
  EXPECT_EQ(read(), "before");
  write_part(ctx_, path_, part);
  refusal(ErrorCode::cancelled, [&] { open_part(cancelled, path_); });
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

class DamagedPart : public PartFileTest {
 protected:
  /// Reading must end in a part that merging accepts or refuses, or in bad_data that names the file.
  void read_or_refuse(const std::string& bytes) {
    write(bytes);
    try {
      const PartSource source = open_part(ctx_, path_);
      ++opened_;
      static_cast<void>(source.read(0, source.info.queries));
      static_cast<void>(merge(ctx_.with_memory_limit(std::uint64_t{1} << 28), std::vector{source}));
      ++merged_;
    } catch (const Error& error) {
      const bool is_known = error.code() == ErrorCode::bad_data || error.code() == ErrorCode::invalid_argument ||
                            error.code() == ErrorCode::over_memory;
      EXPECT_TRUE(is_known) << error.what();
    }
  }

  std::string good(std::int64_t k) {
    place_ = {.first_id = 0, .first_query = 4, .self = true};
    write_part(ctx_, path_, knn_part(ctx_, shard(), table().slice(4, 9), {.k = k}, place_));
    return read();
  }

  int opened_ = 0;
  int merged_ = 0;
};

TEST_F(DamagedPart, EveryTruncationIsRefused) {
  const std::string bytes = good(3);
  for (std::size_t size = 0; size < bytes.size(); ++size) read_or_refuse(bytes.substr(0, size));
  read_or_refuse(bytes + '\0');
  EXPECT_EQ(opened_, 0);
  read_or_refuse(bytes);
  EXPECT_EQ(merged_, 1);
}

TEST_F(DamagedPart, EveryFlippedBitIsNoticed) {
  const std::string bytes = good(11);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1 << i % 8);
    read_or_refuse(flipped);
  }
  EXPECT_EQ(opened_, 0);
}

TEST_F(DamagedPart, OffsetsThatDoNotDivideTheListsAreRefused) {
  const NeighborPart part = radius_part(ctx_, shard(), table(), {.radius = 1.5}, place_);
  write_part(ctx_, path_, part);
  const std::string bytes = read();
  const std::string offsets(reinterpret_cast<const char*>(part.offsets.data()), part.offsets.size() * 8);
  const std::size_t at = bytes.find(offsets);
  ASSERT_NE(at, std::string::npos);
  const std::int64_t queries = part.info.queries;
  const std::int64_t beyond = part.offsets.back() + 1;
  for (const auto& [place, wrong] : {std::pair<std::int64_t, std::int64_t>{0, -1}, {0, beyond}, {queries, beyond}}) {
    std::string changed = bytes;
    std::memcpy(changed.data() + at + place * 8, &wrong, 8);
    write(summed(changed));
    const PartSource source = open_part(ctx_, path_);
    for (const auto& use : std::vector<std::function<void()>>{[&] { static_cast<void>(source.neighbors(0, queries)); },
                                                              [&] { static_cast<void>(source.read(0, queries)); }}) {
      EXPECT_NE(refusal(ErrorCode::bad_data, use).find("its offsets do not divide its lists"), std::string::npos)
          << place << ": " << wrong;
    }
  }
}

TEST_F(DamagedPart, MutationsWithARightCheckSumNeverCrash) {
  const std::vector<std::string> words = {
      "0",       "-1",  "9223372036854775807", "\"1e300\"", "null", "[]", "nan", "{}", "99",
      "\"F64\"", "ids", "\"cosine\"",          ",",         "\""};
  for (const std::int64_t k : {3, 10}) {
    const std::string bytes = good(k);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    const std::size_t data_begin = 8 + static_cast<std::size_t>(length);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto x = core::philox(1, 0, i);
      std::string changed = bytes;
      for (std::uint32_t change = 0; change <= x[3] % 3; ++change) {
        const auto y = core::philox(1, 1 + change, i);
        const std::size_t at = y[0] % (y[1] % 2 == 0 ? data_begin : changed.size() - 4);
        if (y[2] % 2 == 0) {
          changed[at] = static_cast<char>(y[3]);
        } else {
          const std::string& word = words[y[3] % words.size()];
          changed.replace(at, std::min(word.size(), changed.size() - at), word);
        }
      }
      read_or_refuse(summed(changed));
    }
  }
  EXPECT_GT(opened_, 0);
  EXPECT_LT(merged_, 4000);
}

}  // namespace
}  // namespace vicinal
