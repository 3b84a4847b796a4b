// Columns of text in a CSV: their codes and categories, and text that is parsed from memory.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "io/csv.hpp"
#include "refusal.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

std::vector<double> text_values_of(const Table& table) {
  const auto* const data = static_cast<const double*>(table.view.data());
  return {data, data + table.view.rows() * table.view.cols()};
}

std::string refusal_of(ErrorCode code, const std::string& text, const ReadOptions& options) {
  return vicinal::refusal(code, [&] { parse_table(Context::cpu({.threads = 1}), text, "t.csv", options); });
}

const std::string kTraffic =
    "bytes,proto,kind,flag\n5,udp,good,S1\n7,\"tcp\",bad,\"S,\"\"0\"\n9,icmp,good,S1\n1,tcp,bad,10\n";

TEST(IoCsvText, CodesAreInTheOrderOfTheTexts) {
  ReadOptions options;
  options.find_text = true;
  options.label = "kind";
  const Table table = parse_table(Context::cpu({.threads = 1}), kTraffic, "t.csv", options);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"bytes", "proto", "flag"}));
  EXPECT_EQ(text_values_of(table), (std::vector<double>{5, 2, 2, 7, 1, 1, 9, 0, 2, 1, 1, 0}));
  EXPECT_EQ(table.categories,
            (std::vector<std::vector<std::string>>{{}, {"icmp", "tcp", "udp"}, {"10", "S,\"0", "S1"}}));
  ASSERT_TRUE(table.labels.has_value());
  EXPECT_EQ(table.labels->codes, (std::vector<std::int32_t>{1, 0, 1, 0}));
}

TEST(IoCsvText, ColumnsCanBeNamedAndNumbersReadAsText) {
  ReadOptions options;
  options.text = {"1", "0"};
  options.header = false;
  const Table table = parse_table(Context::cpu({.threads = 1}), "10,a\n9,b\n10,a\n", "t.csv", options);
  EXPECT_EQ(text_values_of(table), (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(table.categories, (std::vector<std::vector<std::string>>{{"10", "9"}, {"a", "b"}}));
  EXPECT_TRUE(table.columns.empty());
  options.text.clear();
  EXPECT_TRUE(parse_table(Context::cpu({.threads = 1}), "10,1\n9,2\n", "t.csv", options).categories.empty());
}

TEST(IoCsvText, MissingValuesAreNanWhereTheyMayBe) {
  const std::string text = "x,word,y\n1,b,\n,NA,nan\nnull,a, ?\n,,None\n";
  ReadOptions options;
  options.find_text = true;
  EXPECT_NE(refusal_of(ErrorCode::bad_data, text, options).find("line 2, column 'y' is empty (a missing value)"),
            std::string::npos);
  options.missing = true;
  const Table table = parse_table(Context::cpu({.threads = 1}), text, "t.csv", options);
  std::vector<double> values = text_values_of(table);
  for (double& value : values) value = std::isnan(value) ? -1 : value;
  EXPECT_EQ(values, (std::vector<double>{1, 1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1}));
  EXPECT_EQ(table.categories, (std::vector<std::vector<std::string>>{{}, {"a", "b"}, {}}));
  EXPECT_NE(refusal_of(ErrorCode::bad_data, "x,y\n1,inf\n", options).find("not a finite number"), std::string::npos);
}

TEST(IoCsvText, ThreadsAndChunksDoNotShow) {
  std::string text = "x,word\n";
  for (int i = 0; i < 500; ++i) {
    text += std::to_string(i) + (i % 3 == 0 ? ",\"two\nlines " : ",\"w\"\"") + std::to_string(i * 7 % 23) + "\"\n";
  }
  const io::Bytes bytes{reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, true};
  ReadOptions options;
  options.text = {"word"};
  const Table wanted = io::read_csv(Context::cpu({.threads = 1}), bytes, "t.csv", options);
  ASSERT_EQ(wanted.view.rows(), 500);
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t chunk : {1, 7, 100, 1000}) {
      const Table got = io::read_csv(Context::cpu({.threads = threads}), bytes, "t.csv", options, chunk);
      EXPECT_EQ(text_values_of(got), text_values_of(wanted));
      EXPECT_EQ(got.categories, wanted.categories);
    }
  }
}

TEST(IoCsvText, WhatCannotBeIsRefused) {
  ReadOptions options;
  options.text = {"proto"};
  options.drop = {"proto", "flag", "kind"};
  EXPECT_NE(refusal_of(ErrorCode::invalid_argument, kTraffic, options).find("both as text and dropped"),
            std::string::npos);
  options.drop = {"flag"};
  options.label = "proto";
  EXPECT_NE(refusal_of(ErrorCode::invalid_argument, kTraffic, options).find("both as text and as label"),
            std::string::npos);
  options.label = "";
  EXPECT_NE(refusal_of(ErrorCode::bad_data, kTraffic, options).find("line 2, column 'kind' is 'good', not a number"),
            std::string::npos);
  options.drop = {};
  options.text = {"nothing"};
  EXPECT_NE(refusal_of(ErrorCode::invalid_argument, kTraffic, options).find("'nothing' for text"), std::string::npos);
  options.text = {"1"};
  EXPECT_NE(
      refusal_of(ErrorCode::bad_data, "1,a\n2,\n3,b\n", options).find("line 2, column 1 is empty (a missing value)"),
      std::string::npos);
}

TEST(IoCsvText, LinesAreCountedFromTheFirst) {
  ReadOptions options;
  options.header = false;
  try {
    parse_table(Context::cpu({.threads = 1}), "1,2\n3,x\n", "standard input", options, 1000);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'standard input' line 1001, column 1 is 'x'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace vicinal
