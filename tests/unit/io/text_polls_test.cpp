// Cancel polls of text that becomes labels, ids and columns, counted on one thread. The expected numbers are those of
// the loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/distinct.hpp"
#include "core/encode.hpp"
#include "counted_polls.hpp"
#include "io/csv.hpp"
#include "io/csv_layout.hpp"
#include "io/labels.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kDistinctSteps = std::int64_t{1} << 14;  // between two looks of core::Distinct

io::Bytes bytes_to_poll(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr};
}

/// Looks while values are numbered and sorted, and both the distinct ones and all of them are looked at once more.
template <class Value>
std::int64_t polls_of_numbering(const std::vector<Value>& values) {
  std::int64_t looks = 0;
  core::Distinct<Value> distinct([&looks] { ++looks; });
  for (const Value& value : values) distinct.number_of(value);
  const std::size_t classes = distinct.sorted().size();
  for (std::size_t i = 0; i < classes + values.size(); ++i) distinct.step();
  return looks;
}

/// So many texts, all of them different.
std::vector<std::string> texts_to_poll(std::int64_t count) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) texts.push_back("w" + std::to_string(i * 40503 % count));
  return texts;
}

std::vector<std::int64_t> numbers_to_poll(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i * 40503 % count);
  return numbers;
}

// Values are looked up in a table of twice as many places, which begins with 1,024 and is filled anew each time that it
// is half full; then they are sorted.
TEST(Polls, DistinctValues) {
  const std::vector<std::int64_t> numbers = numbers_to_poll(2 * kDistinctSteps);
  std::int64_t steps = steps_of_sort(numbers, std::less<>());
  for (std::int64_t places = 1024; places < 2 * std::ssize(numbers); places *= 2) steps += places / 2 + 1;
  std::int64_t looks = 0;
  core::Distinct<std::int64_t> distinct([&looks] { ++looks; });
  for (const std::int64_t number : numbers) distinct.number_of(number);
  (void)distinct.sorted();
  EXPECT_GE(looks, (std::ssize(numbers) + steps) / kDistinctSteps);
}

TEST(Polls, LabelsThatAreEncoded) {
  const std::vector<std::int64_t> numbers = numbers_to_poll(2 * kDistinctSteps);
  const std::vector<std::string> owned = texts_to_poll(2 * kDistinctSteps);
  const std::vector<std::string_view> texts(owned.begin(), owned.end());
  std::int64_t looks = 0;
  (void)core::encode(numbers, [&looks] { ++looks; });
  EXPECT_GE(looks, polls_of_numbering(numbers));
  looks = 0;
  (void)core::encode(texts, [&looks] { ++looks; });
  EXPECT_GE(looks, polls_of_numbering(texts));
}

// Equal labels are numbered and get their codes. The first is looked at, and then each 65,536th.
TEST(Polls, LabelsOfAnArray) {
  io::RawArray array;
  array.where = "x";
  array.header.shape = {kDistinctSteps};
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(kDistinctSteps));
  array.bytes.data = reinterpret_cast<const unsigned char*>(zeros.data());
  const Context ctx = polled_context();
  for (const io::ElementType type :
       {io::ElementType{io::ElementKind::signed_int, 8, false}, io::ElementType{io::ElementKind::bytes, 8, false}}) {
    array.header.type = type;
    array.bytes.size = zeros.size() * 8;
    EXPECT_GE(polls_of([&] { (void)io::labels_from_array(ctx, array); }), 1 + 2);
  }
}

TEST(Polls, LabelsOfTexts) {
  const Context ctx = polled_context();
  for (const std::string_view label : {"7", "seven"}) {
    const std::vector<std::string_view> labels(static_cast<std::size_t>(kDistinctSteps), label);
    EXPECT_GE(polls_of([&] { (void)io::labels_from_texts(ctx, labels); }), 1 + 2);
  }
}

// Comments before the first line, its end, lines, those that are numbers, and the labels.
TEST(Polls, LabelsOfLines) {
  std::string text;
  for (std::int64_t i = 0; i <= kBetweenLooks; ++i) text += "7\n";
  const std::vector<std::string_view> labels(static_cast<std::size_t>(kBetweenLooks + 1), "7");
  const Context ctx = polled_context();
  const std::int64_t encoding = polls_of([&] { (void)io::labels_from_texts(ctx, labels); });
  EXPECT_GE(polls_of([&] { (void)io::labels_from_lines(ctx, bytes_to_poll(text), "x"); }), 1 + 2 + 1 + encoding);
}

TEST(Polls, CommentsOfAFile) {
  constexpr std::int64_t kComments = 2 * 4096;
  std::string text;
  for (std::int64_t i = 0; i < kComments; ++i) text += "#\n";
  text += "1\n";
  const char* at = text.data();
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)io::skip_preamble(ctx, at, text.data() + text.size()); }), 3);
}

TEST(Polls, LinesThatAreBlank) {
  const Context ctx = polled_context();
  const auto polls = [&](std::size_t lines) {
    const std::string text = "1,2\n" + std::string(lines, '\n') + "3,4\n";
    return polls_of([&] { (void)io::read_csv(ctx, bytes_to_poll(text), "x", {}, 1 << 26); });
  };
  // In blocks of 4 MiB: when the form of the file is looked for, and when its lines are counted and read.
  EXPECT_GE(polls(std::size_t{16} << 20) - polls(std::size_t{8} << 20), 3 * 2);
}

/// Looks while a file is read, less those of a file of few lines.
std::int64_t polls_of_lines(const std::string& begin, const std::vector<std::string>& lines,
                            const ReadOptions& options) {
  const Context ctx = polled_context();
  const auto polls = [&](std::size_t count) {
    std::string text = begin;
    for (std::size_t i = 0; i < count; ++i) text += lines[i] + "\n";
    return polls_of([&] { (void)io::read_csv(ctx, bytes_to_poll(text), "x", options, 1 << 26); });
  };
  return polls(lines.size()) - polls(2);
}

// Equal texts are looked up and given their numbers; distinct ones are sorted, too.
TEST(Polls, ColumnsOfText) {
  ReadOptions options;
  options.text = {"word"};
  options.header = true;
  options.delimiter = ',';
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>(static_cast<std::size_t>(2 * kDistinctSteps), "w"),
        texts_to_poll(2 * kDistinctSteps)}) {
    const std::vector<std::string_view> texts(lines.begin(), lines.end());
    EXPECT_GE(polls_of_lines("word\n", lines, options), polls_of_numbering(texts));
  }
}

// Their lengths are added up, then they are copied; each begins with a look.
TEST(Polls, ColumnsOfIds) {
  ReadOptions options;
  options.id = "name";
  options.header = true;
  options.delimiter = ',';
  const std::vector<std::string> lines(static_cast<std::size_t>(kBetweenLooks + 1), "a,1");
  EXPECT_GE(polls_of_lines("name,number\n", lines, options), 1 + 1);
}

/// Looks that one column more causes, where one row of so many is laid out.
template <class Options>
std::int64_t polls_of_another_column(const Options& options_of) {
  const Context ctx = polled_context();
  const auto polls = [&](std::int64_t columns) {
    std::string names;
    std::string numbers;
    ReadOptions options;
    options.delimiter = ',';
    options_of(options);
    for (std::int64_t j = 0; j < columns; ++j) {
      names += (j > 0 ? ",a" : "a") + std::to_string(j);
      numbers += j > 0 ? ",1" : "1";
      if (!options.only.empty() && j > 0) options.only.push_back("a" + std::to_string(j));
    }
    const std::string text = (options.header.value_or(false) ? names + "\n" : "") + numbers + "\n" + numbers + "\n";
    return polls_of([&] { (void)io::lay_out_csv(ctx, bytes_to_poll(text), "x", options); });
  };
  return polls(kBetweenLooks + 1) - polls(kBetweenLooks);
}

// Without a header each column is looked at for one.
TEST(Polls, ColumnsWithoutAHeader) {
  EXPECT_GE(polls_of_another_column([](ReadOptions&) {}), 1);
}

// Of either row.
TEST(Polls, ColumnsThatMayBeText) {
  EXPECT_GE(polls_of_another_column([](ReadOptions& options) {
              options.header = false;
              options.find_text = true;
            }),
            2);
}

// The names of columns, and those that are wanted.
TEST(Polls, ColumnsThatAreNamed) {
  EXPECT_GE(polls_of_another_column([](ReadOptions& options) {
              options.header = true;
              options.only = {"a0"};
            }),
            2);
}

// A line of more than 4 MiB is looked through for its end and for its fields.
TEST(Polls, FieldsOfALongLine) {
  constexpr std::int64_t kBlock = std::int64_t{4} << 20;
  ReadOptions options;
  options.delimiter = ',';
  options.header = false;
  const Context ctx = polled_context();
  const auto polls = [&](std::int64_t bytes) {
    std::string line;
    for (std::int64_t i = 0; i < bytes / 1024; ++i) line.append(1023, '1').append(1, ',');
    line += "1,1\n";
    return polls_of([&] { (void)io::lay_out_csv(ctx, bytes_to_poll(line), "x", options); });
  };
  EXPECT_GE(polls(kBlock + 1024), polls(kBlock / 2) + 2);
}

}  // namespace
}  // namespace vicinal
