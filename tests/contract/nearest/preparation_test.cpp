// Preparation against the reference (contract clause 20), and models that have one: asked with rows as they were before
// they were prepared, they answer as the same rows prepared by hand do, also after they were saved and loaded.

#include "reference/preparation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kRows = 700;

/// Columns of very different sizes; zeros of both signs, a constant, numbers at both ends of float64, and texts.
std::vector<reference::RawColumn> raw_table(std::int64_t rows, std::uint64_t seed) {
  std::vector<reference::RawColumn> table(7);
  std::uint64_t state = seed;
  const auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
  };
  const std::vector<std::string> texts = {"udp", "tcp", "\xc3\xa9", "", "Gre", "zz"};
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto x = static_cast<double>(next() % 100'000) / 7;
    table[0].numbers.push_back(x * std::pow(10.0, static_cast<double>(next() % 9)));
    table[1].texts.push_back(texts[next() % (seed == 1 ? 5 : 6)]);
    table[2].numbers.push_back(next() % 2 == 0 ? 0.0 : next() % 3 == 0 ? -0.0 : x);  // the first zero decides a sign
    table[3].numbers.push_back(7);
    table[4].numbers.push_back((x - 7000) * 1e299);
    table[5].numbers.push_back(x * 1e-320);
    table[6].numbers.push_back(next() % 2 == 0 ? -0.0 : 0.0);
  }
  return table;
}

/// The same as a table that a reader made, with its storage.
Table table_of(const std::vector<reference::RawColumn>& columns) {
  const std::size_t n = std::max(columns[0].numbers.size(), columns[0].texts.size());
  const auto values = std::make_shared<std::vector<double>>(n * columns.size());
  Table table;
  table.categories.resize(columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    table.columns.push_back("c" + std::to_string(j));
    std::vector<double> x = columns[j].numbers;
    if (!columns[j].texts.empty()) {
      const Labels labels = encode_labels(columns[j].texts);
      table.categories[j] = std::get<std::vector<std::string>>(labels.classes);
      x.assign(labels.codes.begin(), labels.codes.end());
    }
    for (std::size_t i = 0; i < n; ++i) (*values)[i * columns.size() + j] = x[i];
  }
  table.view = TableView(values->data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(columns.size()));
  table.storage = values;
  return table;
}

std::vector<double> values_of(const TableView& view) {
  const auto* const data = static_cast<const double*>(view.data());
  return {data, data + view.rows() * view.cols()};
}

struct PreparedCase {
  Scaling scaling;
  TextCodes texts;
};

std::string text_of_case(const PreparedCase& one) {
  return std::string(name_of(one.scaling)) + "_" + std::string(name_of(one.texts));
}

class PreparationOf : public ::testing::TestWithParam<PreparedCase> {
 protected:
  [[nodiscard]] PreparationOptions options() const {
    return {.scaling = GetParam().scaling, .texts = GetParam().texts};
  }
};

TEST_P(PreparationOf, EqualsTheReference) {
  const auto raw = raw_table(kRows, 1);
  const auto others = raw_table(211, 2);
  const Table table = table_of(raw);
  const Table asked = table_of(others);
  const auto rules =
      reference::fit_columns(raw, std::string(name_of(options().scaling)), options().texts == TextCodes::one_hot);
  for (const Context& ctx : contexts(3)) {
    SCOPED_TRACE(ctx.device() + ", threads " + std::to_string(ctx.threads()));
    const Preparation found = Preparation::fit(ctx, table, options());
    ASSERT_EQ(found.columns().size(), rules.size());
    for (std::size_t j = 0; j < rules.size(); ++j) {
      EXPECT_TRUE(same_bits({found.columns()[j].shift, found.columns()[j].scale}, {rules[j].shift, rules[j].scale}))
          << "column " << j;
      EXPECT_EQ(found.columns()[j].categories, rules[j].texts);
      EXPECT_EQ(found.columns()[j].one_hot, rules[j].one_hot);
    }
    const Table prepared = found.apply(ctx, table);
    EXPECT_EQ(prepared.view.cols(), found.width());
    EXPECT_TRUE(same_bits(values_of(prepared.view), reference::apply_columns(rules, raw)));
    EXPECT_TRUE(same_bits(values_of(found.apply(ctx, asked).view), reference::apply_columns(rules, others)));
    EXPECT_EQ(found.name_of(0), "c0");
    EXPECT_EQ(found.name_of(1), options().texts == TextCodes::one_hot ? "c1=" : "c1");
    // The same rows in blocks, from one thread.
    Table blocks = table;
    blocks.view = TableView::blocks(DType::float64, kRows, table.view.cols(), [&](auto begin, auto end, void* rows) {
      const std::vector<double> all = values_of(table.view);
      std::copy(all.begin() + begin * table.view.cols(), all.begin() + end * table.view.cols(),
                static_cast<double*>(rows));
    });
    const Preparation by_blocks = Preparation::fit(ctx, blocks, options());
    EXPECT_TRUE(same_bits(values_of(by_blocks.apply(ctx, blocks).view), values_of(prepared.view)));
  }
}

TEST_P(PreparationOf, ManyBlocksGiveTheSameBitsWhateverTheThreads) {
  const Table table = table_of(raw_table(40'000, 1));
  const Context one = Context::cpu({.threads = 1});
  const Preparation expected = Preparation::fit(one, table, options());
  for (const int threads : {2, 7}) {
    const Context ctx = Context::cpu({.threads = threads});
    const Preparation found = Preparation::fit(ctx, table, options());
    EXPECT_TRUE(same_bits(values_of(found.apply(ctx, table).view), values_of(expected.apply(one, table).view)));
  }
}

TEST_P(PreparationOf, ModelsAnswerRawRowsAsPreparedOnes) {
  // Without the columns at the ends of float64, whose distances overflow.
  auto raw = raw_table(kRows, 1);
  auto others = raw_table(60, 2);
  for (auto* table : {&raw, &others}) table->erase(table->begin() + 4, table->begin() + 6);
  const Table table = table_of(raw);
  const Table asked = table_of(others);
  const Context ctx = Context::cpu({.threads = 2});
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("vicinal_prepared_" + std::to_string(getpid()) + text_of_case(GetParam()));
  const Preparation made = Preparation::fit(ctx, table, options());
  const Table rows = made.apply(ctx, table);
  const Table queries = made.apply(ctx, asked);
  const Index index(ctx, rows.view);
  std::vector<std::int64_t> numbers;
  std::vector<double> targets;
  for (std::int64_t i = 0; i < kRows; ++i) {
    numbers.push_back(i % 5);
    targets.push_back(static_cast<double>(i * i % 97));
  }

  for (const std::int64_t k : {4, 0}) {
    SCOPED_TRACE(k);
    const double within = knn(ctx, index, queries.view, {.k = 6}).distances[5];
    NeighborModel model{
        .index = index, .outputs = {encode_labels(numbers)}, .k = k, .radius = within, .preparation = made};
    const VoteOptions voting{.probabilities = true};
    const Classification direct =
        k > 0 ? classify(ctx, index, queries.view, model.outputs, {.k = k}, voting)
              : classify_radius(ctx, index, queries.view, model.outputs, {.radius = within}, voting);
    EXPECT_EQ(classify(ctx, model, asked, true).votes[0].codes, direct.votes[0].codes);
    model.save(ctx, path);
    const Classification loaded = classify(ctx, NeighborModel::load(ctx, path), asked, true);
    EXPECT_EQ(loaded.votes[0].codes, direct.votes[0].codes);
    EXPECT_TRUE(same_bits(loaded.votes[0].probabilities, direct.votes[0].probabilities));
    refused([&] { (void)regress(ctx, model, asked); }, ErrorCode::invalid_argument, "it has labels, not targets");
    if (made.changes_rows()) {
      refused([&] { (void)Index::load(ctx, path); }, ErrorCode::invalid_argument, "its rows were prepared");
    }

    model.outputs.clear();
    model.targets = targets;
    model.target_columns = 1;
    model.save(ctx, path);
    const TableView target(targets.data(), kRows, 1);
    const Regression means =
        k > 0 ? regress(ctx, index, queries.view, target, {.k = k})
              : regress_radius(ctx, index, queries.view, target, {.radius = within}, {.outlier = -1});
    EXPECT_TRUE(same_bits(regress(ctx, NeighborModel::load(ctx, path), asked, -1).values, means.values));
    refused([&] { (void)classify(ctx, model, asked); }, ErrorCode::invalid_argument, "it has targets, not labels");
    refused([&] { (void)regress(ctx, model, asked.view); }, ErrorCode::invalid_argument, "c1 holds text");
  }

  const Lof scores = lof(ctx, index, {.k = 12, .novelty = true});
  LofModel{.index = index, .fitted = scores, .preparation = made}.save(ctx, path);
  EXPECT_TRUE(same_bits(novelty(ctx, LofModel::load(ctx, path), asked), novelty(ctx, index, scores, queries.view)));

  const KMeans clusters = kmeans(ctx, rows.view, {.clusters = 5, .seed = 2});
  KMeansModel{.fitted = clusters, .preparation = made}.save(ctx, path);
  const KMeansModel centres = KMeansModel::load(ctx, path);
  EXPECT_EQ(predict(ctx, centres, asked), predict(ctx, clusters, queries.view));
  EXPECT_TRUE(same_bits(transform(ctx, centres, asked), transform(ctx, clusters, queries.view)));
  EXPECT_EQ(score(ctx, centres, asked), score(ctx, clusters, queries.view));
  refused([&] { (void)predict(ctx, centres, asked.view); }, ErrorCode::invalid_argument, "c1 holds text");

  refused(
      [&] {
        NeighborModel{.index = Index(ctx, table.view.slice(0, 9)),
                      .targets = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                      .target_columns = 1,
                      .k = 2,
                      .preparation = Preparation::fit(ctx, TableView(targets.data(), 5, 2), {})}
            .save(ctx, path);
      },
      ErrorCode::invalid_argument, "its preparation makes 2 columns, but its rows have 5");
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Prepared, PreparationOf,
                         ::testing::Values(PreparedCase{Scaling::none, TextCodes::ordinal},
                                           PreparedCase{Scaling::none, TextCodes::one_hot},
                                           PreparedCase{Scaling::standard, TextCodes::ordinal},
                                           PreparedCase{Scaling::standard, TextCodes::one_hot},
                                           PreparedCase{Scaling::minmax, TextCodes::ordinal},
                                           PreparedCase{Scaling::minmax, TextCodes::one_hot}),
                         [](const auto& one) { return text_of_case(one.param); });

TEST(Preparation, NumbersOfEveryTypeAndAModelWithoutAPreparation) {
  const Context ctx = Context::cpu({.threads = 3});
  const std::vector<std::uint8_t> bytes = {3, 200, 7, 1, 0, 255, 9, 9};
  const std::vector<double> wide(bytes.begin(), bytes.end());
  const TableView narrow(bytes.data(), 4, 2);
  const PreparationOptions standard{.scaling = Scaling::standard};
  const Preparation found = Preparation::fit(ctx, narrow, standard);
  const Preparation expected = Preparation::fit(ctx, TableView(wide.data(), 4, 2), standard);
  EXPECT_TRUE(same_bits(values_of(found.apply(ctx, narrow).view),
                        values_of(expected.apply(ctx, TableView(wide.data(), 4, 2)).view)));
  const NeighborModel model{.index = Index(ctx, narrow), .targets = {1, 2, 3, 4}, .target_columns = 1, .k = 1};
  EXPECT_EQ(regress(ctx, model, narrow).values, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(Preparation().apply(ctx, narrow).view.data(), bytes.data());
}

Preparation::Column column_of(std::vector<std::string> categories, double scale) {
  Preparation::Column column;
  column.categories = std::move(categories);
  column.scale = scale;
  return column;
}

TEST(Preparation, FindsTheColumnsOfAFileByTheirNames) {
  using Strings = std::vector<std::string>;
  const auto named = [](const std::string& name, Strings categories) {
    Preparation::Column column = column_of(std::move(categories), 1);
    column.name = name;
    return column;
  };
  const Preparation made = Preparation::of({named("b", {}), named("t", {"u", "v"}), named("a", {})}, Scaling::none);
  EXPECT_TRUE(made.has_names());
  ReadOptions options;
  options.drop = {"d"};
  options.label = "y";
  options.id = "0";
  const Strings names = {"i", "a", "x", "y", "t", "d", "b"};
  Preparation::Matched found = made.matched(options, names, "x.csv");
  EXPECT_EQ(found.options.only, (Strings{"b", "t", "a"}));
  EXPECT_EQ(found.options.text, Strings{"t"});
  EXPECT_TRUE(found.options.drop == Strings{"d"} && found.options.label == "y" && found.options.id == "0");
  EXPECT_NE(found.note.find("column 'x' is left out"), std::string::npos) << found.note;
  EXPECT_EQ(made.matched({}, {"", "a", "b", "t"}, "x.csv").note, "");  // an index
  refused(
      [&] {
        (void)made.matched({}, {"a", "x", "y"}, "x.csv");
      },
      ErrorCode::bad_data,
      "x.csv has no columns 'b', 't' as the table that rows are compared with; its columns are 'a', 'x', 'y'");
  options.drop = {"a"};
  refused([&] { (void)made.matched(options, names, "x.csv"); }, ErrorCode::bad_data,
          "x.csv: column 'a' is dropped, but");
  options.drop.clear();
  options.id = "1";
  refused([&] { (void)made.matched(options, names, "x.csv"); }, ErrorCode::bad_data, "column 'a' is the id, but");
  // Without names on one side, or with one twice, columns are those of the same place.
  found = made.matched({}, {}, "x.csv");
  EXPECT_TRUE(found.options.only.empty() && found.options.text == Strings{"1"});
  const Preparation twice = Preparation::of({named("a", {}), named("a", {"u"})}, Scaling::none);
  EXPECT_FALSE(twice.has_names() || Preparation().has_names() || Preparation::of({column_of({}, 1)}, {}).has_names());
  EXPECT_EQ(twice.matched({}, {"a", "a"}, "x.csv").options.text, Strings{"1"});
  refused([&] { (void)twice.matched({}, {"a", "b"}, "x.csv"); }, ErrorCode::bad_data, "'b'");
  // Files as they are read.
  const Context ctx = Context::cpu({.threads = 2});
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("vicinal_matched_" + std::to_string(getpid()) + ".csv");
  std::ofstream(file) << "a,x,t,b\n1,9,v,2\n3,9,new,4\n";
  const Table read = made.read(ctx, file);
  std::filesystem::remove(file);
  EXPECT_EQ(read.columns, (Strings{"b", "t", "a"}));
  EXPECT_EQ(values_of(made.apply(ctx, read).view), (std::vector<double>{2, 1, 1, 4, 2, 3}));
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("'x'"), std::string::npos);
}

TEST(Preparation, RefusesWhatItCannotDo) {
  const Context ctx = Context::cpu({.threads = 2});
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values(40'000, 1);
  const TableView table(values.data(), 20'000, 2);
  const PreparationOptions minmax{.scaling = Scaling::minmax};
  const Preparation made = Preparation::fit(ctx, table, minmax);
  values[39'001] = inf;
  values[39'999] = inf;
  refused([&] { (void)Preparation::fit(ctx, table, minmax); }, ErrorCode::bad_data,
          "table: row 19500, column 1 is not finite");
  refused([&] { (void)made.apply(ctx, table, "x.csv"); }, ErrorCode::bad_data,
          "x.csv row 19500, column 1 is not finite");
  const std::vector<double> ends = {1e308, -1e308};
  refused([&] { (void)Preparation::fit(ctx, TableView(ends.data(), 2, 1), minmax); }, ErrorCode::bad_data,
          "range beyond");
  refused([&] { (void)made.apply(ctx, TableView(values.data(), 3, 3), "x.csv"); }, ErrorCode::invalid_argument,
          "x.csv has 3 columns, the table that rows are compared with has 2");
  refused([&] { (void)Preparation::fit(ctx, table, {.scaling = static_cast<Scaling>(9)}); },
          ErrorCode::invalid_argument, "scaling: unknown value");
  refused(
      [&] {
        (void)Preparation::of({column_of({"b", "a"}, 1)}, Scaling::none);
      },
      ErrorCode::invalid_argument, "column 0 has categories that do not ascend");
  refused([&] { (void)Preparation::of({column_of({}, 0)}, Scaling::none); }, ErrorCode::invalid_argument, "scale");
  Table texts = table_of({{{}, {"a", "b"}}});
  const Preparation of_texts = Preparation::fit(ctx, texts);
  texts.view = TableView(values.data() + 39'998, 2, 1);
  refused([&] { (void)of_texts.apply(ctx, texts); }, ErrorCode::bad_data, "is not the number of one of its 2 texts");
  texts.categories.clear();
  refused([&] { (void)of_texts.apply(ctx, texts); }, ErrorCode::bad_data, "has numbers in c0");
  texts.columns = {"other"};
  refused([&] { (void)of_texts.apply(ctx, texts); }, ErrorCode::bad_data, "'other'");
  const Context small = Context::cpu({.threads = 2, .memory_limit = 100'000});
  values.assign(values.size(), 1);
  refused([&] { (void)Preparation::fit(small, table, minmax); }, ErrorCode::over_memory, "fitting the preparation");
  refused([&] { (void)made.apply(small, table); }, ErrorCode::over_memory, "preparing table needs 320000 bytes");
  const CancelToken token;
  token.cancel();
  const Context stopped = Context::cpu({.threads = 2, .cancel = token});
  refused([&] { (void)Preparation::fit(stopped, table, minmax); }, ErrorCode::cancelled, "");
  refused([&] { (void)made.apply(stopped, table); }, ErrorCode::cancelled, "");
}

}  // namespace
}  // namespace vicinal::contract
