// CSV: what is accepted, what is guessed, that numbers are those of strtod, and that neither threads nor chunks show.
#include "io/csv.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "core/philox.hpp"
#include "io_testing.hpp"

namespace vicinal {
namespace {

using namespace io_testing;
using CsvValues = std::vector<double>;
using Names = std::vector<std::string>;

class IoCsv : public ::testing::Test {
 protected:
  Table read(const std::string& text, const ReadOptions& options = {}) {
    return read_table(ctx_, folder_.put("t.csv", text), options);
  }
  Table read_csv_in_chunks(const std::string& text, std::int64_t chunk) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    return io::read_csv(ctx_, io::Bytes{bytes, text.size(), nullptr}, "t.csv", {}, chunk);
  }
  Context ctx_ = Context::cpu({.threads = 2});
  Folder folder_;
};

TEST_F(IoCsv, PlainForms) {
  const CsvValues four = {1, 2, 3, 4};
  EXPECT_EQ(values_of(read("1,2\n3,4\n")), four);
  EXPECT_EQ(values_of(read("1,2\n3,4")), four);
  EXPECT_EQ(values_of(read("1,2\r\n3,4\r\n")), four);
  EXPECT_EQ(values_of(read("1,2\r\n3,4\r")), four);
  EXPECT_EQ(values_of(read("\xef\xbb\xbf"
                           "1,2\n3,4\n")),
            four);
  EXPECT_EQ(values_of(read("\n\n1,2\n\n  \n3,4\n\n")), four);
  EXPECT_EQ(values_of(read("# made by hand\n#\n1,2\n3,4\n")), four);
  EXPECT_EQ(values_of(read(" 1 ,\t2\n +3, 4 \n")), four);
  EXPECT_EQ(values_of(read("\"1\",\"2\"\n\" 3 \",4\n")), four);
  EXPECT_EQ(values_of(read("1;2\n3;4\n")), four);
  EXPECT_EQ(values_of(read("1\t2\n3\t4\n")), four);
  EXPECT_EQ(values_of(read("1|2\n3|4\n")), four);
  EXPECT_EQ(values_of(read("1 2\n3 4\n")), four);
  EXPECT_EQ(values_of(read("  1   2 \n 3\t4  \n")), four);
  EXPECT_EQ(values_of(read("1\n2\n\n3\n4")), four);
  EXPECT_EQ(read("1\n2\n").view.cols(), 1);
  EXPECT_EQ(values_of(read("1,2")), (CsvValues{1, 2}));
  EXPECT_EQ(values_of(read("1., .5\n-0,1E3\n")), (CsvValues{1, 0.5, -0.0, 1000}));
  EXPECT_EQ(values_of(read(gzip("1,2\n3,4\n"))), four);
  ReadOptions options;
  options.delimiter = '/';
  EXPECT_EQ(values_of(read("1/2\n3/4\n", options)), four);
}

TEST_F(IoCsv, Headers) {
  EXPECT_EQ(read("a,b\n1,2\n").columns, (Names{"a", "b"}));
  EXPECT_EQ(read("0,b\n1,2\n").columns, (Names{"0", "b"}));
  EXPECT_EQ(read("\"a, long\",\"b \"\"q\"\"\"\n1,2\n").columns, (Names{"a, long", "b \"q\""}));
  EXPECT_EQ(read("\"two\nlines\",b\n1,2\n").columns, (Names{"two\nlines", "b"}));
  EXPECT_TRUE(read("1,2\n3,4\n").columns.empty());
  EXPECT_EQ(read("sepal length\n5.1\n4.9\n").columns, Names{"sepal length"});
  ReadOptions options;
  options.header = true;
  const Table table = read("1,2\n3,4\n", options);
  EXPECT_EQ(table.columns, (Names{"1", "2"}));
  EXPECT_EQ(values_of(table), (CsvValues{3, 4}));
  options.header = false;
  expect_error(ErrorCode::bad_data, {"line 1", "column 0", "'a'"}, [&] { read("a,b\n1,2\n", options); });
}

TEST_F(IoCsv, HeadersOfNumbers) {
  // pandas: DataFrame(array).to_csv(index=False)
  EXPECT_EQ(read("0,1,2\n5,6,7\n8,9,1\n").columns, (Names{"0", "1", "2"}));
  EXPECT_EQ(values_of(read("0,1,2\n5,6,7\n8,9,1\n")), (CsvValues{5, 6, 7, 8, 9, 1}));
  EXPECT_EQ(read("0,1,2\n5,6,7\n").notes.size(), 1U);
  EXPECT_EQ(read("0,1\n0.5,1\n2,3\n").view.rows(), 2);
  // Data: rows that count on, edges, other numbers, one row, and what the caller says.
  EXPECT_EQ(read("0,1,2\n3,4,5\n6,7,8\n").view.rows(), 3);
  EXPECT_EQ(read("0,1\n1,2\n0,2\n").view.rows(), 3);
  EXPECT_EQ(read("0,1,3\n5,6,7\n").view.rows(), 2);
  EXPECT_EQ(read("00,1,2\n5,6,7\n").view.rows(), 2);
  EXPECT_EQ(read("0,1,2\n").view.rows(), 1);
  EXPECT_EQ(read("0\n1\n2\n").view.rows(), 3);
  ReadOptions options;
  options.header = false;
  EXPECT_EQ(read("0,1,2\n5,6,7\n", options).view.rows(), 2);
  EXPECT_TRUE(read("0,1,2\n5,6,7\n", options).notes.empty());
}

TEST_F(IoCsv, IndexColumns) {
  // pandas: to_csv(); R: write.csv and write.table
  for (const char* const text :
       {",a,b\n0,5,6\n1,7,8\n", ",0,1\n0,5,6\n1,7,8\n", "\"\",\"a\",\"b\"\n\"1\",5,6\n\"2\",7,8\n",
        "\"a\" \"b\"\n\"1\" 5 6\n\"2\" 7 8\n", "Unnamed: 0,a,b\n0,5,6\n1,7,8\n"}) {
    const Table table = read(text);
    EXPECT_EQ(values_of(table), (CsvValues{5, 6, 7, 8})) << text;
    EXPECT_EQ(table.columns.size(), 2U) << text;
    ASSERT_FALSE(table.notes.empty()) << text;
    EXPECT_NE(table.notes.back().find("an index, left out"), std::string::npos) << table.notes.back();
  }
  ReadOptions keep;
  keep.keep_index = true;
  EXPECT_EQ(read(",a\n0,5\n1,7\n", keep).view.cols(), 2);
  // A name makes it a column, and so do numbers that do not count, wherever they stop.
  EXPECT_EQ(read("id,a\n0,5\n1,7\n").view.cols(), 2);
  EXPECT_EQ(read(",a\n3,5\n1,7\n").view.cols(), 2);
  EXPECT_EQ(read(",a\n3,5\n1,7\n").notes.size(), 1U);
  EXPECT_EQ(read(",a\n0,5\n").view.cols(), 2);  // by chance
  std::string late = ",a\n";
  for (int i = 0; i < 5000; ++i) late += std::to_string(i == 4321 ? 0 : i) + ",1\n";
  const Table table = read_csv_in_chunks(late, 1000);
  EXPECT_EQ(table.view.cols(), 2);
  EXPECT_EQ(table.view.rows(), 5000);
  // Names and positions are the file's.
  ReadOptions options;
  options.drop = {"1"};
  EXPECT_EQ(values_of(read(",a,b\n0,5,6\n1,7,8\n", options)), (CsvValues{6, 8}));
  options.drop = {"0"};
  EXPECT_EQ(values_of(read(",a,b\n0,5,6\n1,7,8\n", options)), (CsvValues{5, 6, 7, 8}));
}

TEST_F(IoCsv, DecimalCommas) {
  // R's write.csv2, Excel in most of Europe
  const CsvValues four = {1.5, 2, -3.25, 4e3};
  EXPECT_EQ(values_of(read("a;b\n1,5;2\n-3,25;4e3\n")), four);
  EXPECT_EQ(values_of(read("1,5;2,0\n-3,25;4,0e3\n")), four);
  EXPECT_EQ(values_of(read("\"\";\"a\";\"b\"\n\"1\";1,5;2\n\"2\";-3,25;4e3\n")), four);
  EXPECT_EQ(values_of(read("1.5;2\n-3.25;4e3\n")), four);
  EXPECT_EQ(values_of(read("1,5\n2,3\n")), (CsvValues{1, 5, 2, 3}));
  EXPECT_EQ(values_of(read("1,5;2\n3,4;5\n")), (CsvValues{1.5, 2, 3.4, 5}));
  ReadOptions options;
  options.decimal = ',';
  options.delimiter = '\t';
  EXPECT_EQ(values_of(read("1,5\t2\n-3,25\t4e3\n", options)), four);
  options.delimiter = ',';
  expect_error(ErrorCode::invalid_argument, {"parted by commas"}, [&] { read("1,5\n", options); });
  options.decimal = ':';
  expect_error(ErrorCode::invalid_argument, {"decimal"}, [&] { read("1,5\n", options); });
  // Points and commas in one file, and what is found to be wrong later.
  expect_error(ErrorCode::bad_data, {"'1,5', a number with a decimal comma"}, [&] { read("a;b\n1,5;2\n3.5;4\n"); });
  expect_error(ErrorCode::bad_data, {"'1.000,5', a number with marks between thousands"},
               [&] { read("a;b\n1,5;2\n1.000,5;4\n"); });
}

TEST_F(IoCsv, BareReturnsAreNamed) {
  expect_error(ErrorCode::bad_data, {"CR alone", "tr"}, [&] { read("a,b\r1,2\r3,4\r"); });
  EXPECT_EQ(read("1,2\r").view.rows(), 1);
}

TEST_F(IoCsv, WordsOfTruth) {
  EXPECT_EQ(values_of(read("a,b\nTrue,no\nFALSE,Yes\n")), (CsvValues{1, 0, 0, 1}));
  ReadOptions labels;
  labels.label = "b";
  EXPECT_TRUE(read("a,b\n1,True\n0,False\n", labels).labels->is_text());
  ReadOptions texts;
  texts.find_text = true;
  EXPECT_EQ(read("a,b\n1,yes\n0,no\n2,maybe\n", texts).categories[1], (Names{"maybe", "no", "yes"}));
  expect_error(ErrorCode::bad_data, {"not a number"}, [&] { read("a,b\n1,yes\n0,maybe\n"); });
}

TEST_F(IoCsv, LabelsAndDrops) {
  ReadOptions options;
  options.label = "class";
  options.drop = {"id", "2"};
  const std::string text = "id,x,name,y,class\na,1,\"n, 1\",2,dog\nb,3,n2,4,\"the \"\"cat\"\"\"\nc,5,,6,dog\n";
  Table table = read(text, options);
  EXPECT_EQ(table.columns, (Names{"x", "y"}));
  EXPECT_EQ(values_of(table), (CsvValues{1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(table.labels.has_value());
  EXPECT_EQ(std::get<1>(table.labels->classes), (Names{"dog", "the \"cat\""}));
  EXPECT_EQ(table.labels->codes, (std::vector<std::int32_t>{0, 1, 0}));
  options.label = "4";
  options.drop = {"0", "name"};
  EXPECT_EQ(values_of(read(text, options)), values_of(table));
  options.drop.clear();
  options.label = "0";
  table = read("10,1\n-2,2\n10,3\n", options);
  EXPECT_EQ(std::get<0>(table.labels->classes), (std::vector<std::int64_t>{-2, 10}));
  table = read("1.0,1\n2e0,2\n", options);
  EXPECT_EQ(std::get<0>(table.labels->classes), (std::vector<std::int64_t>{1, 2}));
  table = read("1.5,1\n2,2\n", options);
  EXPECT_TRUE(table.labels->is_text());
  // Columns of one name matter only when they are referred to.
  EXPECT_EQ(read("a,a,b\n1,2,3\n").columns, (Names{"a", "a", "b"}));
  options.label = "a";
  expect_error(ErrorCode::bad_data, {"2 columns named 'a'"}, [&] { read("a,a,b\n1,2,3\n", options); });
}

std::vector<std::string> texts_of(const RowIds& ids) {
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < ids.size(); ++row) texts.emplace_back(ids[row]);
  return texts;
}

TEST_F(IoCsv, IdsOfRowsAreTextsAndNoPartOfTheTable) {
  ReadOptions options;
  options.id = "name";
  options.label = "class";
  const std::string text = "x,name,y,class\n1,ash,2,0\n3,\"the \"\"oak\"\", old\",4,1\n5, 007 ,6,0\n";
  Table table = read(text, options);
  EXPECT_EQ(table.columns, (Names{"x", "y"}));
  EXPECT_EQ(values_of(table), (CsvValues{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(table.label_name, "class");
  ASSERT_TRUE(table.ids.has_value());
  EXPECT_EQ(table.ids->name, "name");
  EXPECT_EQ(texts_of(*table.ids), (Names{"ash", "the \"oak\", old", "007"}));
  EXPECT_FALSE(table.ids->are_whole_numbers());
  options = {};
  options.id = "0";
  options.find_text = true;
  table = read("12,a\n-7,b\n12,a\n0,a\n", options);  // the same twice is allowed
  EXPECT_EQ(texts_of(*table.ids), (Names{"12", "-7", "12", "0"}));
  EXPECT_TRUE(table.ids->are_whole_numbers() && table.ids->name.empty());
  EXPECT_EQ(table.categories, (std::vector<Names>{{"a", "b"}}));
  for (const char* const no_number : {"07", "-0", "1.0", "1e3", "+1", "-", "1234567890123456789"}) {
    RowIds ids;
    ids.add(no_number);
    EXPECT_FALSE(ids.are_whole_numbers()) << no_number;
  }
  options.id = "n";
  EXPECT_EQ(texts_of(*read("{\"n\": 5, \"x\": 1}\n{\"x\": 2, \"n\": \"e\\u00e9\"}\n", options).ids),
            (Names{"5", "e\u00e9"}));
  expect_error(ErrorCode::bad_data, {"line 3", "column 'n'", "missing id"}, [&] { read("n,x\na,1\n,2\n", options); });
  expect_error(ErrorCode::invalid_argument, {"'n'", "for id", "a, b"}, [&] { read("a,b\n1,2\n", options); });
  options.label = "n";
  expect_error(ErrorCode::invalid_argument, {"'n'", "both as id and as label"}, [&] { read("n,x\na,1\n", options); });
  options = {};
  options.id = "a";
  folder_.put("t.npy", npy("|u1", "(1, 1)", "x"));
  expect_error(ErrorCode::invalid_argument, {"npy", "id"}, [&] { read_table(ctx_, folder_ / "t.npy", options); });
}

TEST_F(IoCsv, IdsAreCountedBeforeTheyAreTaken) {
  constexpr std::int64_t kRows = 20'000;
  const std::string id(50, 'x');
  std::string text;
  for (std::int64_t i = 0; i < kRows; ++i) text += id + ",1\n";
  ReadOptions options;
  options.id = "0";
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const auto read_within = [&](std::uint64_t limit) {
    const Context ctx = Context::cpu({.threads = 2, .memory_limit = limit});
    return io::read_csv(ctx, io::Bytes{bytes, text.size(), nullptr}, "t.csv", options).ids->size();
  };
  // Values, views of the ids, their ends and their texts.
  constexpr std::uint64_t kEnough = kRows * (8 + 16 + 8 + 50);
  EXPECT_EQ(read_within(kEnough), kRows);
  expect_error(ErrorCode::over_memory, {"ids of 't.csv'"}, [&] { read_within(kEnough - 1); });
  expect_error(ErrorCode::over_memory, {"reading 't.csv'"}, [&] { read_within(kRows * (8 + 16) - 1); });
}

TEST_F(IoCsv, OnlySomeColumnsInAnotherOrder) {
  ReadOptions options;
  options.only = {"c", "t", "a"};
  options.text = {"t"};
  options.id = "i";
  const std::string text = "a,b,t,i,c\n1,oops,v,r0,3\n4,,u,r1,6\n";
  for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{1} << 20}) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    const Table table = io::read_csv(ctx_, io::Bytes{bytes, text.size(), nullptr}, "t.csv", options, chunk);
    EXPECT_EQ(table.columns, (Names{"c", "t", "a"}));
    EXPECT_EQ(values_of(table), (CsvValues{3, 1, 1, 6, 0, 4}));
    EXPECT_EQ(table.categories, (std::vector<Names>{{}, {"u", "v"}, {}}));
    EXPECT_EQ(texts_of(*table.ids), (Names{"r0", "r1"}));
  }
  options = {};
  options.only = {"2", "0"};
  EXPECT_EQ(values_of(read("1,x,3\n4,y,6\n", options)), (CsvValues{3, 1, 6, 4}));
  options.only = {"a", "q", "x,y"};
  expect_error(ErrorCode::invalid_argument, {"no column 'q', 'x,y'"}, [&] { read("a,b\n1,2\n", options); });
  options.only = {"a", "0"};
  expect_error(ErrorCode::invalid_argument, {"'0' twice"}, [&] { read("a,b\n1,2\n", options); });
  options.only = {"a"};
  expect_error(ErrorCode::bad_data, {"several columns named 'a'"}, [&] { read("a,a\n1,2\n", options); });
  options.label = "a";
  expect_error(ErrorCode::invalid_argument, {"'a'", "label"}, [&] { read("a,b\n1,2\n", options); });
}

TEST_F(IoCsv, Options) {
  ReadOptions options;
  options.label = "nope";
  expect_error(ErrorCode::invalid_argument, {"'nope'", "a, b"}, [&] { read("a,b\n1,2\n", options); });
  expect_error(ErrorCode::invalid_argument, {"no header"}, [&] { read("1,2\n3,4\n", options); });
  options.label = "2";
  expect_error(ErrorCode::invalid_argument, {"2 columns", "0 to 1"}, [&] { read("1,2\n3,4\n", options); });
  options.label = "1";
  options.drop = {"1"};
  expect_error(ErrorCode::invalid_argument, {"both"}, [&] { read("1,2\n3,4\n", options); });
  options.drop = {"0"};
  expect_error(ErrorCode::invalid_argument, {"no column left"}, [&] { read("1,2\n3,4\n", options); });
  ReadOptions delimiter;
  delimiter.delimiter = '.';
  expect_error(ErrorCode::invalid_argument, {"'.'"}, [&] { read("1,2\n3,4\n", delimiter); });
  ReadOptions member;
  member.member = "x";
  expect_error(ErrorCode::invalid_argument, {"csv", "member"}, [&] { read("1,2\n3,4\n", member); });
  folder_.put("t.npy", npy("|u1", "(1, 1)", "x"));
  options = {};
  options.label = "a";
  expect_error(ErrorCode::invalid_argument, {"npy", "label"}, [&] { read_table(ctx_, folder_ / "t.npy", options); });
}

TEST_F(IoCsv, FaultsNameLineAndColumn) {
  const auto bad = [&](const std::string& text, std::initializer_list<std::string_view> words) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::bad_data, words, [&] { read(text); });
  };
  bad("", {"t.csv", "empty"});
  bad("\n\n", {"no data rows"});
  bad("# only\n", {"no data rows"});
  bad("a,b\n", {"header", "no data rows"});
  bad("a,b", {"header", "no data rows"});
  bad("1,2\n3,4,5\n", {"line 2", "3 fields where 2 are"});
  bad("1,2\n3\n", {"line 2", "1 field where 2 are"});
  bad("a,b\n1,2\n\n3,4\n5\n", {"line 5", "1 field"});
  bad("a,b\n1,x y\n", {"line 2", "column 'b'", "'x y'"});
  bad("1,2\n3,oops\n", {"line 2", "column 1", "'oops'", "not a number"});
  bad("1,2\n,4\n", {"line 2", "column 0", "empty", "missing"});
  bad("1,2\n3,\n", {"line 2", "column 1", "missing"});
  bad("1,2\n3,NA\n", {"line 2", "column 1", "'NA'", "missing"});
  bad("1,2\n3,nan\n", {"line 2", "column 1", "'nan'", "finite"});
  bad("1,2\n-inf,4\n", {"line 2", "column 0", "'-inf'", "finite"});
  bad("1,2\n1e999,4\n", {"line 2", "column 0", "too large"});
  bad("1,2\n3,0x10\n", {"line 2", "'0x10'"});
  bad("1,2\n3,+-4\n", {"line 2", "'+-4'"});
  bad("1,2\n3,4 5\n", {"line 2", "'4 5'"});
  bad("1,2\n3,\"4\n5,6\n", {"line 2", "never closed"});
  bad("1,2\n3,4\"\n", {"line 2", "quote inside"});
  bad("1,2\n3,\"4\"5\n", {"line 2", "quote inside"});
  bad("a,b\n\"1\",\"x\ny\"\n", {"line 2", "column 'b'"});
  bad("a,b\n\"1\",2\n\n\"\n3\",x\n", {"line 4", "'\?3'"});
  bad("1,2\n3," + std::string(1000, 'z') + "\n", {"line 2", "zzz..."});
  // A faulty row is first of all one with the wrong number of fields.
  bad("1,2\n3,x,5\n", {"line 2", "3 fields"});
}

/// Text that is awkward to cut: quotes, line ends in quotes, blank lines, CRLF.
std::string awkward_text(std::uint64_t seed, std::int64_t rows, std::int64_t fault_row) {
  std::string text = "x,\"y\nz\",label\n";
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto draw = core::philox(seed, 7, static_cast<std::uint64_t>(i));
    text += std::to_string(draw[0] % 1000) + "." + std::to_string(i) + ",";
    text += draw[1] % 3 == 0 ? "\"" + std::to_string(i) + "\"" : std::to_string(i);
    if (i == fault_row) text += "x";
    const char* labels[] = {"plain", "\"a\nb\"", "\"say \"\"hi\"\"\n\n,\"", "\"\"\"\"", "l e"};
    text += std::string(",") + labels[draw[2] % 5];
    if (draw[3] % 5 == 0) text += "\r";
    text += "\n";
    if (draw[3] % 7 == 0) text += " \n\n";
  }
  return text;
}

TEST_F(IoCsv, ThreadsAndChunksDoNotShow) {
  ReadOptions options;
  options.label = "label";
  for (const std::int64_t fault : {-1, 0, 57, 199}) {
    const std::string text = awkward_text(5, 200, fault);
    io::Bytes bytes;
    bytes.data = reinterpret_cast<const unsigned char*>(text.data());
    bytes.size = text.size();
    std::string wanted_error;
    CsvValues wanted;
    std::vector<std::int32_t> wanted_codes;
    for (const int threads : {1, 2, 3, 7}) {
      const Context ctx = Context::cpu({.threads = threads});
      for (const std::int64_t chunk : {1 << 20, 1, 2, 3, 7, 64, 1000}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, chunks of " + std::to_string(chunk));
        std::string error;
        CsvValues values;
        std::vector<std::int32_t> codes;
        try {
          const Table table = io::read_csv(ctx, bytes, "t.csv", options, chunk);
          values = values_of(table);
          codes = table.labels->codes;
        } catch (const Error& caught) {
          error = caught.what();
        }
        if (threads == 1 && chunk == 1 << 20) {
          EXPECT_EQ(error.empty(), fault < 0) << error;
          wanted_error = error;
          wanted = values;
          wanted_codes = codes;
        }
        EXPECT_EQ(error, wanted_error);
        EXPECT_EQ(values, wanted);
        EXPECT_EQ(codes, wanted_codes);
      }
    }
    if (fault < 0) {
      EXPECT_EQ(wanted.size(), 400U);
      EXPECT_EQ(wanted[399], 199);
    }
  }
}

TEST_F(IoCsv, FirstFaultWhateverTheChunk) {
  // Random damage, quotes above all: every cut must report what one chunk reports.
  const std::string intact = awkward_text(9, 40, -1);
  const Context ctx = Context::cpu({.threads = 3});
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::string text = intact;
    const auto draw = core::philox(11, 3, round);
    const char damage[] = {'"', '\n', ',', 'x', ' '};
    text[draw[0] % text.size()] = damage[draw[1] % 5];
    if (draw[2] % 2 == 0) text[draw[3] % text.size()] = '"';
    io::Bytes bytes;
    bytes.data = reinterpret_cast<const unsigned char*>(text.data());
    bytes.size = text.size();
    const auto outcome = [&](std::int64_t chunk) -> std::string {
      ReadOptions options;
      options.label = "2";
      options.header = true;
      try {
        const Table table = io::read_csv(ctx, bytes, "t.csv", options, chunk);
        return std::to_string(table.view.rows());
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
        return error.what();
      }
    };
    const std::string whole = outcome(1 << 20);
    for (const std::int64_t chunk : {5, 33, 200}) EXPECT_EQ(outcome(chunk), whole) << round;
  }
}

TEST_F(IoCsv, NumbersAreThoseOfStrtod) {
  std::string text;
  CsvValues wanted;
  const auto add = [&](const char* number) {
    text += std::string(number) + "\n";
    wanted.push_back(std::strtod(number, nullptr));
  };
  for (const char* number :
       {"0", "-0", "1e-400", "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
        "2.2250738585072011e-308", "1.7976931348623157e308", "1.7976931348623158e308", "9007199254740993",
        "9007199254740992.5", "0.1000000000000000055511151231257827021181583404541015625", "1e22", "1e23", "8.5e-17",
        "123456789012345678901234567890", "00000000000000000000000000000000000000001e-5", "1E+05"}) {
    add(number);
  }
  char number[64];
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto draw = core::philox(1, 2, i);
    const double any = std::bit_cast<double>(std::uint64_t{draw[0]} << 32 | draw[1]);
    if (!std::isfinite(any)) continue;
    const int digits = static_cast<int>(draw[2] % 25);
    std::snprintf(number, sizeof number, draw[3] % 2 == 0 ? "%.*e" : "%.*g", digits, any);
    if (!std::isfinite(std::strtod(number, nullptr))) continue;
    add(number);
  }
  ASSERT_GT(wanted.size(), 19000U);
  const CsvValues found = values_of(read(text));
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(found[i]), std::bit_cast<std::uint64_t>(wanted[i])) << i;
  }
}

TEST_F(IoCsv, LabelFiles) {
  const auto labels = [&](const std::string& text, const std::string& column = {}) {
    return read_labels(ctx_, folder_.put("l.txt", text), column);
  };
  EXPECT_EQ(labels("3\n1\r\n\n3").codes, (std::vector<std::int32_t>{1, 0, 1}));
  EXPECT_EQ(labels("label\n3\n1\n").codes, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(std::get<1>(labels("T-shirt top\n Bag \n\"a \"\"b\"\"\"\n").classes),
            (Names{"Bag", "T-shirt top", "a \"b\""}));
  EXPECT_EQ(std::get<1>(labels("1\nx\n2\n").classes), (Names{"1", "2", "x"}));
  EXPECT_EQ(labels("row,label\n0,b\n1,a\n", "label").codes, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(labels("0,7\n1,5\n", "1").codes, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(labels(gzip("3\n1\n")).codes, (std::vector<std::int32_t>{1, 0}));
  expect_error(ErrorCode::invalid_argument, {"2 columns"}, [&] { labels("0,7\n1,5\n"); });
  expect_error(ErrorCode::bad_data, {"no labels"}, [&] { labels("\n \n"); });
  expect_error(ErrorCode::bad_data, {"line 2", "missing label"}, [&] { labels("a,b\n1,\n", "b"); });
}

TEST_F(IoCsv, Describes) {
  const FileInfo info = describe_file(ctx_, folder_.put("d.csv", "a,b,c\n1,2,x\n3,4,\"y\nz\"\n"));
  EXPECT_EQ(info.format, FileFormat::csv);
  EXPECT_EQ(info.columns, (Names{"a", "b", "c"}));
  EXPECT_EQ(info.arrays.at(0).shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(info.compression, Compression::none);
  EXPECT_EQ(describe_file(ctx_, folder_.put("d.gz", gzip("1,2\n"))).compression, Compression::gzip);
}

TEST_F(IoCsv, DescribesAsItReads) {
  ReadOptions options;
  options.header = true;
  options.comment = '%';
  options.delimiter = ';';
  options.drop = {"nowhere"};
  const auto file = folder_.put("d.csv", "% a, b, c\n1;2\n% d\n0,5;3\n");
  FileInfo info = describe_file(ctx_, file, options);
  EXPECT_EQ(info.columns, (Names{"1", "2"}));
  EXPECT_EQ(info.arrays.at(0).shape, (std::vector<std::int64_t>{1, 2}));
  options.header = false;
  info = describe_file(ctx_, file, options);
  EXPECT_TRUE(info.columns.empty() && info.arrays.at(0).shape.at(0) == 2);
  const auto indexed = folder_.put("i.csv", ",a\n0,5\n1,7\n");
  EXPECT_TRUE(describe_file(ctx_, indexed, ReadOptions{}).has_index);
  ReadOptions keeping;
  keeping.keep_index = true;
  EXPECT_FALSE(describe_file(ctx_, indexed, keeping).has_index);
  // Lines that may be those of the classical k-means tools are CSV where an option says so.
  const auto plain = folder_.put("k.txt", "0 1 2\n1 3 4\n");
  ReadOptions dropping;
  dropping.drop = {"0"};
  EXPECT_EQ(describe_file(ctx_, plain).format, FileFormat::kmeans_text);
  EXPECT_EQ(describe_file(ctx_, plain, dropping).format, FileFormat::csv);
}

}  // namespace
}  // namespace vicinal
