// The model file of classify and regress: what is saved comes back and answers the same, whatever else is refused.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "backend/index_access.hpp"
#include "ops/nearest/index_file.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal {
namespace {

class NeighborModelFile : public ::testing::Test {
 protected:
  NeighborModelFile() {
    for (std::int64_t i = 0; i < kRows * 3; ++i) values_.push_back(static_cast<float>(i * 7919 % 101));
    std::filesystem::remove(path_);
  }
  ~NeighborModelFile() override { std::filesystem::remove(path_); }

  [[nodiscard]] TableView table() const { return TableView(values_.data(), kRows, 3); }
  [[nodiscard]] NeighborModel classifier() const {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> words;
    for (std::int64_t i = 0; i < kRows; ++i) {
      numbers.push_back(i % 4 - 2);
      words.push_back(i % 3 == 0 ? "ä" : "b" + std::to_string(i % 3));
    }
    return {.index = Index(ctx_, table()),
            .outputs = {encode_labels(numbers), encode_labels(words)},
            .k = 7,
            .metric = Metric::manhattan,
            .weights = Weighting::distance,
            .notes = "what the caller said"};
  }
  [[nodiscard]] NeighborModel regressor() const {
    std::vector<double> targets;
    for (std::int64_t i = 0; i < kRows * 2; ++i) targets.push_back(static_cast<double>(i) / 3);
    return {
        .index = Index(ctx_, table(), {.tree = true}), .targets = targets, .target_columns = 2, .k = 0, .radius = 0.1};
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }
  std::string refusal(const std::function<void()>& what) const {
    try {
      what();
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::bad_data || error.code() == ErrorCode::invalid_argument) << error.what();
      return error.what();
    }
    return {};
  }

  static constexpr std::int64_t kRows = 60;
  const Context ctx_ = Context::cpu({.threads = 2});
  std::vector<float> values_;
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("neighbors-" + std::to_string(::getpid()) + ".vnm");
};

TEST_F(NeighborModelFile, LabelsComeBack) {
  const NeighborModel saved = classifier();
  saved.save(ctx_, path_);
  const NeighborModel read = NeighborModel::load(ctx_, path_);
  ASSERT_EQ(read.outputs.size(), 2U);
  for (std::size_t o = 0; o < 2; ++o) {
    EXPECT_EQ(read.outputs[o].codes, saved.outputs[o].codes);
    EXPECT_EQ(read.outputs[o].classes, saved.outputs[o].classes);
  }
  EXPECT_EQ(read.k, 7);
  EXPECT_EQ(read.metric, Metric::manhattan);
  EXPECT_EQ(read.weights, Weighting::distance);
  EXPECT_EQ(read.notes, "what the caller said");
  const KnnOptions options{.k = read.k, .metric = read.metric};
  const VoteOptions voting{.weights = read.weights, .probabilities = true};
  const Classification before = classify(ctx_, saved.index, table(), saved.outputs, options, voting);
  const Classification after = classify(ctx_, read.index, table(), read.outputs, options, voting);
  EXPECT_EQ(before.votes[1].codes, after.votes[1].codes);
  EXPECT_EQ(before.votes[1].probabilities, after.votes[1].probabilities);
}

TEST_F(NeighborModelFile, TargetsComeBackAndAnIndexIsInIt) {
  const NeighborModel saved = regressor();
  saved.save(ctx_, path_);
  const NeighborModel read = NeighborModel::load(ctx_, path_);
  EXPECT_EQ(read.targets, saved.targets);
  EXPECT_EQ(read.target_columns, 2);
  EXPECT_EQ(read.k, 0);
  EXPECT_EQ(read.radius, 0.1);
  EXPECT_TRUE(read.outputs.empty());
  const Index index = Index::load(ctx_, path_);
  EXPECT_EQ(knn(ctx_, index, {.k = 3}).ids, knn(ctx_, saved.index, {.k = 3}).ids);
}

Preparation minmax_of(std::int64_t columns) {
  std::vector<Preparation::Column> made(static_cast<std::size_t>(columns));
  made[0] = {"a", {}, -3, 0.1, false};
  return Preparation::of(std::move(made), Scaling::minmax);
}

TEST_F(NeighborModelFile, APreparationComesBackAndIsNoPartOfAnIndex) {
  NeighborModel saved = classifier();
  saved.preparation = minmax_of(saved.index.cols());
  saved.save(ctx_, path_);
  const NeighborModel read = NeighborModel::load(ctx_, path_);
  ASSERT_EQ(read.preparation.columns().size(), saved.preparation.columns().size());
  EXPECT_EQ(read.preparation.columns()[0].shift, -3);
  EXPECT_EQ(read.preparation.columns()[0].scale, 0.1);
  EXPECT_EQ(read.preparation.name_of(0), "a");
  EXPECT_EQ(read.preparation.scaling(), Scaling::minmax);
  EXPECT_EQ(read.notes, saved.notes);
  const std::string what = refusal([&] { Index::load(ctx_, path_); });
  EXPECT_NE(what.find("its rows were prepared (scaling minmax)"), std::string::npos) << what;
  EXPECT_NE(what.find("load it as a NeighborModel"), std::string::npos) << what;
  LleModel{.index = saved.index, .fitted = lle(ctx_, table(), {.k = 8}), .preparation = saved.preparation}.save(ctx_,
                                                                                                                path_);
  EXPECT_EQ(LleModel::load(ctx_, path_).preparation.columns()[0].scale, 0.1);
  EXPECT_NE(refusal([&] { Index::load(ctx_, path_); }), "");
  saved.preparation = minmax_of(saved.index.cols() + 1);
  EXPECT_NE(refusal([&] { saved.save(ctx_, path_); }), "");
}

/// The parts of a model's file that are written as given, as earlier builds of the command wrote them.
void write_parts(const Context& ctx, const std::filesystem::path& path, const NeighborModel& model,
                 const std::string& notes, const std::string& preparation) {
  ops::ModelParts parts;
  parts.metadata = {{"k", "3"},       {"radius", "0"},  {"metric", "euclidean"},     {"p", "2"}, {"weights", "uniform"},
                    {"outputs", "0"}, {"notes", notes}, {"preparation", preparation}};
  parts.arrays = {{"targets", "F64", {model.index.rows(), model.target_columns}, model.targets.data()}};
  ops::write_index(ctx, path, kernels::prepared_of(model.index), ops::kNeighborFile, parts);
}

TEST_F(NeighborModelFile, WhatEarlierBuildsOfTheCommandWroteIsRead) {
  const NeighborModel model = regressor();
  std::string columns;
  for (std::int64_t j = 0; j < model.index.cols(); ++j) {
    columns += (j > 0 ? "," : "") + std::string(R"({"name":"x","categories":[],"one_hot":false,"shift":1,"scale":2})");
  }
  const std::string made = R"({"scale":"standard","columns":[)" + columns + "]}";
  write_parts(ctx_, path_, model, made, "--scale standard");
  EXPECT_EQ(NeighborModel::load(ctx_, path_).preparation.scaling(), Scaling::standard);
  EXPECT_EQ(NeighborModel::load(ctx_, path_).notes, "");
  std::string quoted;
  for (const char letter : made) quoted += (letter == '"' ? "\\" : "") + std::string(1, letter);
  const std::string notes = R"({"columns":["y"],"preparation":")" + quoted + "\"}";
  write_parts(ctx_, path_, model, notes, "--scale standard");
  EXPECT_EQ(NeighborModel::load(ctx_, path_).preparation.columns().at(0).scale, 2);
  EXPECT_EQ(NeighborModel::load(ctx_, path_).notes, notes);
  write_parts(ctx_, path_, model, "what a caller said", "");
  EXPECT_TRUE(NeighborModel::load(ctx_, path_).preparation.columns().empty());
  // Prepared, but not in a way that the file describes.
  for (const char* const text : {"", "what a caller said", "{}", R"({"preparation":3})"}) {
    write_parts(ctx_, path_, model, text, "logarithms");
    const std::string what = refusal([&] { NeighborModel::load(ctx_, path_); });
    EXPECT_NE(what.find("its rows were prepared (logarithms) in a way that it does not describe"), std::string::npos);
  }
  for (const char* const text : {"{}", R"({"scale":"standard","columns":[]})", R"({"scale":"none","columns":3})",
                                 R"({"scale":"odd","columns":[{}]})"}) {
    write_parts(ctx_, path_, model, "", text);
    const std::string what = refusal([&] { NeighborModel::load(ctx_, path_); });
    EXPECT_NE(what.find("its preparation is not one for"), std::string::npos) << what;
  }
}

TEST_F(NeighborModelFile, RefusesToSaveWhatIsNoModel) {
  const auto refused = [&](NeighborModel model) { return refusal([&] { model.save(ctx_, path_); }); };
  NeighborModel both = classifier();
  both.targets = regressor().targets;
  both.target_columns = 2;
  EXPECT_EQ(refused(both), "model: it needs either labels or targets");
  NeighborModel fewer = regressor();
  fewer.targets.pop_back();
  EXPECT_EQ(refused(fewer), "model: it has 119 targets for 60 rows of 2");
  NeighborModel wild = regressor();
  wild.targets[5] = INFINITY;
  EXPECT_EQ(refused(wild), "model: its targets are not all finite");
  NeighborModel custom = classifier();
  custom.weights = Weighting::custom;
  EXPECT_EQ(refused(custom), "model: custom weights are a function, which no file can hold");
  NeighborModel many = classifier();
  many.k = 61;
  EXPECT_EQ(refused(many), "model: k is 61 for 60 rows");
  NeighborModel foreign = classifier();
  foreign.outputs[1].classes = std::vector<std::string>{"\xff", "b1", "b2"};
  EXPECT_EQ(refused(foreign), "model: the classes of its labels do not ascend");
  foreign.outputs[1].classes = std::vector<std::string>{"a", "b", "\xff"};
  EXPECT_EQ(refused(foreign), "model: its classes are not UTF-8, which its file needs");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(NeighborModelFile, RefusesEveryFileThatIsNone) {
  classifier().save(ctx_, path_);
  const std::string whole = bytes();
  const auto refused = [&] { return refusal([&] { NeighborModel::load(ctx_, path_); }); };
  for (std::size_t i = 0; i < whole.size(); i += 41) {  // any byte changed
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    write(changed);
    EXPECT_FALSE(refused().empty()) << "byte " << i;
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    write(whole.substr(0, length));
    EXPECT_FALSE(refused().empty()) << "cut to " << length;
  }
  Index(ctx_, table()).save(ctx_, path_);
  EXPECT_NE(refused().find("it is not a model of vicinal classify or regress"), std::string::npos);
}

}  // namespace
}  // namespace vicinal
