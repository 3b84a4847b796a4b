// Hostile input: files that lie, end early, promise too much, or are no files. Each is one vicinal::Error of the right
// code whose sentence names the file; then thousands of mutations of small valid files, where nothing else may happen.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/philox.hpp"
#include "io/shown.hpp"
#include "io_testing.hpp"

namespace vicinal {
namespace {

using namespace io_testing;

const std::string kFour = raw<double>({1, 2, 3, 4});

std::string zipped() {
  return zip({{"a.npy", npy("<f8", "(2, 2)", kFour), 8, 0, false}});
}
std::string stored() {
  return zip({{"a.npy", npy("<f8", "(2, 2)", kFour), 0, 0, false}});
}

std::string patched(std::string bytes, std::size_t at, const std::string& with) {
  return bytes.replace(at, with.size(), with);
}

struct Hostile {
  const char* what;
  std::string bytes;
  std::vector<std::string> words;
};

std::vector<Hostile> hostile_files() {
  const std::string plain = npy("<f8", "(2, 2)", kFour);
  const std::string magic("\0\0", 2);
  const std::string zip_file = zipped();
  const std::size_t directory = zip_file.rfind("PK\1\2");
  const std::size_t end = zip_file.rfind("PK\5\6");
  const auto header = [](const std::string& text) { return npy_with(text, kFour); };
  return {
      {"nothing", "", {"empty"}},
      {"binary", std::string("\1\2\3\0\4", 5), {"not a format", "npz"}},
      {"utf-16", std::string("\xff\xfe\x31\x00\x2c\x00", 6), {"UTF-16 text", "iconv"}},
      {"npy magic only", "\x93NUMPY", {"truncated"}},
      {"npy without header", plain.substr(0, 10), {"truncated"}},
      {"npy header cut", plain.substr(0, 60), {"truncated"}},
      {"npy version", patched(plain, 6, "\7"), {"version 7.0"}},
      {"npy data cut", plain.substr(0, plain.size() - 1), {"31 bytes", "32"}},
      {"npy data long", plain + "x", {"33 bytes", "32"}},
      {"npy shape overflow", npy("<f8", "(4294967296, 4294967296)", kFour), {"2^63"}},
      {"npy bytes overflow", npy("<f8", "(4611686018427387904, 1)", kFour), {"2^64"}},
      {"npy length overflow", npy("<f8", "(99999999999999999999, 1)", kFour), {"2^63"}},
      {"npy empty with huge axes", npy("<f8", "(0, 9000000000000000000, 9000000000000000000)", ""), {"no rows"}},
      {"npy negative", npy("<f8", "(-2, -2)", kFour), {"malformed"}},
      {"npy no rows", npy("<f8", "(0, 2)", ""), {"no rows"}},
      {"npy no columns", npy("<f8", "(2, 0)", ""), {"no columns"}},
      {"npy number", npy("<f8", "()", raw<double>({1})), {"single number"}},
      {"npy objects", npy("|O", "(2, 2)", kFour), {"Python objects"}},
      {"npy structured",
       npy_with("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (4,), }", kFour),
       {"structured"}},
      {"npy complex", npy("<c16", "(2,)", kFour), {"complex"}},
      {"npy text", npy("<U4", "(2,)", kFour), {"text"}},
      {"npy dates", npy("<M8[ns]", "(4,)", kFour), {"dates"}},
      {"npy long double", npy("<f16", "(2,)", kFour), {"<f16"}},
      {"npy odd type", npy("<i3", "(2,)", "123456"), {"<i3"}},
      {"npy type with huge size", npy("<U99999999999999", "(2,)", kFour), {"no type"}},
      {"npy type without size", npy("<f", "(2,)", kFour), {"<f"}},
      {"npy not a dictionary", header("[1, 2]"), {"malformed"}},
      {"npy key missing", header("{'descr': '<f8', 'shape': (4,)}"), {"malformed"}},
      {"npy key twice",
       header("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (4,)}"),
       {"repeated"}},
      {"npy unknown key", header("{'descr': '<f8', 'evil': 1, 'fortran_order': False, 'shape': (4,)}"), {"unknown"}},
      {"npy text behind", header("{'descr': '<f8', 'fortran_order': False, 'shape': (4,)} evil"), {"behind"}},
      {"npy shape no tuple", header("{'descr': '<f8', 'fortran_order': False, 'shape': (4)}"), {"comma"}},
      {"npy order no truth", header("{'descr': '<f8', 'fortran_order': 1, 'shape': (4,)}"), {"True or False"}},
      {"npy quote open", header("{'descr': '<f8"), {"quote"}},
      {"npy many axes", npy("|u1", "(" + std::string(200, '1') + ",)", "x"), {"2^63"}},
      {"npy 40 axes",
       npy(
           "|u1",
           [] {
             std::string s = "(";
             for (int i = 0; i < 40; ++i) s += "1, ";
             return s + ")";
           }(),
           "x"),
       {"axes"}},
      {"npy absurd header", std::string("\x93NUMPY\2\0\xff\xff\xff\x7f", 12) + std::string(100, ' '), {"absurd"}},
      {"npy bool 2", npy("|b1", "(1, 2)", "\1\2"), {"row 0, column 1"}},
      {"npy int64 beyond 2^53",
       npy("<i8", "(2, 2)", raw<std::int64_t>({1, 2, 3, -(1LL << 53) - 1})),
       {"2^53", "row 1, column 1"}},
      {"npy uint64 beyond 2^53", npy("<u8", "(1, 2)", raw<std::uint64_t>({1, ~0ULL})), {"2^53", "row 0, column 1"}},
      {"gzip header only", std::string("\x1f\x8b", 2), {"truncated"}},
      {"gzip cut", gzip(plain).substr(0, gzip(plain).size() - 9), {"truncated"}},
      {"gzip checksum cut", gzip(plain).substr(0, gzip(plain).size() - 3), {"truncated"}},
      {"gzip checksum wrong", patched(gzip(plain), gzip(plain).size() - 6, "zz"), {"damaged"}},
      {"gzip garbage behind", gzip(plain) + "garbage", {"7 bytes of something else"}},
      {"gzip second member cut", gzip(plain) + std::string("\x1f\x8b\x08", 3), {"truncated"}},
      {"gzip of nothing", gzip(""), {"empty"}},
      {"gzip in gzip", gzip(gzip(plain)), {"packed twice"}},
      {"xz header only", xz(plain).substr(0, 6), {"truncated"}},
      {"xz cut", xz(plain).substr(0, xz(plain).size() / 2), {"truncated"}},
      {"xz footer cut", xz(plain).substr(0, xz(plain).size() - 1), {"truncated"}},
      {"xz header damaged", patched(xz(plain), 8, "z"), {"damaged"}},
      {"xz check of a kind not known", patched(xz(plain), 6, std::string("\0\x0f", 2)), {}},
      {"xz data damaged", patched(xz(plain), 40, "zzzz"), {"damaged"}},
      {"xz garbage behind", xz(plain) + "garbage behind", {"something else"}},
      {"xz padding of no length of its own", xz(plain) + std::string(3, '\0'), {"something else"}},
      {"xz second stream cut", xz(plain) + xz(plain).substr(0, 20), {"truncated"}},
      {"xz of nothing", xz(""), {"empty"}},
      {"xz in gzip", gzip(xz(plain)), {"packed twice"}},
      {"zip cut", zip_file.substr(0, zip_file.size() - 5), {"truncated"}},
      {"zip without directory", zip_file.substr(0, directory), {"truncated"}},
      {"zip directory offset", patched(zip_file, end + 16, "\xff\xff\xff\x7f"), {"outside"}},
      {"zip entries", patched(zip_file, end + 8, std::string("\xff\0\xff\0", 4)), {"too short"}},
      {"zip split", patched(zip_file, end + 4, std::string("\2\0", 2)), {}},
      {"zip directory damaged", patched(zip_file, directory, "XX"), {"damaged"}},
      {"zip name length", patched(zip_file, directory + 28, "\xff\xff"), {"damaged"}},
      {"zip crc", patched(zip_file, directory + 16, "zzzz"), {"checksum"}},
      {"zip stored crc", patched(stored(), stored().rfind("PK\1\2") + 16, "zzzz"), {"checksum"}},
      {"zip data damaged", patched(stored(), 30 + 5 + 130, "x"), {"checksum"}},
      {"zip size lie, more", patched(zip_file, directory + 24, std::string("\xff\xff\0\0", 4)), {"fewer"}},
      {"zip size lie, less", patched(zip_file, directory + 24, std::string("\7\0\0\0", 4)), {"more"}},
      {"zip stored two sizes",
       patched(stored(), stored().rfind("PK\1\2") + 24, std::string("\7\0\0\0", 4)),
       {"two different sizes"}},
      {"zip member beyond", patched(stored(), stored().rfind("PK\1\2") + 20, "\xff\xff\xff\x7f"), {"truncated"}},
      {"zip local header", patched(zip_file, directory + 42, std::string("\7\0\0\0", 4)), {"local"}},
      {"zip method", zip({{"a.npy", plain, 12, 0, false}}), {"method 12"}},
      {"zip encrypted", zip({{"a.npy", plain, 0, 1, false}}), {"encrypted"}},
      {"zip of text that is no table", zip({{"a.txt", "hello", 0, 0, false}}), {"evil.bin:a.txt", "no data rows"}},
      {"zip of folders", zip({{"a/", "", 0, 0, false}}), {"no files"}},
      {"bzip2 cut", bzip2(plain).substr(0, bzip2(plain).size() - 3), {"truncated"}},
      {"bzip2 damaged", patched(bzip2(plain), 30, "zzzz"), {"damaged"}},
      {"bzip2 garbage behind", bzip2(plain) + "garbage", {"7 bytes of something else"}},
      {"bzip2 second stream cut", bzip2(plain) + bzip2(plain).substr(0, 14), {"truncated"}},
      {"bzip2 of nothing", bzip2(""), {"empty"}},
      {"bzip2 in gzip", gzip(bzip2(plain)), {"packed twice", "bzip2"}},
      {"json of a ragged line", "[1,2]\n[3]\n", {"line 2", "1 values"}},
      {"json, deep", std::string(1 << 20, '['), {"one value of JSON"}},
      {"json, a name twice", "{\"a\":1,\"a\":2}\n", {"line 1", "'a' twice"}},
      {"json, huge", "{\"a\":1}\n{\"a\":1e400}\n", {"line 2", "too large"}},
      {"zip empty", zip({}), {"no arrays"}},
      {"zip zip64 size 2^64 - 1",
       patched(zip({{"a.npy", plain, 8, 0, true}}), zip({{"a.npy", plain, 8, 0, true}}).rfind("PK\1\2") + 46 + 5 + 4,
               "\xff\xff\xff\xff\xff\xff\xff\xff"),
       {}},
      {"zip array lies", zip({{"a.npy", npy("<f8", "(3, 2)", kFour), 8, 0, false}}), {"array 'a'", "48"}},
      {"idx cut header", magic + "\x08\x03" + std::string("\0\0\0\1", 4), {"truncated"}},
      {"idx cut data", magic + "\x08\x01" + big_endian<std::uint32_t>({5}) + "1234", {"4 bytes", "5"}},
      {"idx long", magic + "\x08\x01" + big_endian<std::uint32_t>({3}) + "1234", {"4 bytes", "3"}},
      {"idx overflow", magic + "\x0e\x03" + big_endian<std::uint32_t>({~0U, ~0U, ~0U}) + "1234", {"2^63"}},
      {"idx bytes overflow", magic + "\x0e\x02" + big_endian<std::uint32_t>({1U << 31, ~0U}) + "1234", {"2^64"}},
      {"idx no rows", magic + "\x08\x02" + big_endian<std::uint32_t>({0, 3}), {"no rows"}},
      {"idx type", magic + "\x0a\x01" + big_endian<std::uint32_t>({1}) + "1", {"not a format"}},
      {"idx 255 axes", magic + "\x08\xff" + std::string(1020, '\x7f') + "1", {"2^63"}},
  };
}

class IoHostile : public ::testing::Test {
 protected:
  Context ctx_ = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{8} << 20});
  Folder folder_;
};

TEST_F(IoHostile, EveryFileIsOneSentence) {
  const std::vector<Hostile> files = hostile_files();
  EXPECT_GE(files.size(), 70U);
  for (const Hostile& file : files) {
    SCOPED_TRACE(file.what);
    const auto path = folder_.put("evil.bin", file.bytes);
    try {
      (void)read_table(ctx_, path);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string sentence = error.what();
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ErrorCode::bad_data)) << sentence;
      EXPECT_NE(sentence.find("evil.bin"), std::string::npos) << sentence;
      for (const std::string& word : file.words) EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
    }
    // The other readers must hold out as well, whatever they make of it.
    try {
      (void)read_labels(ctx_, path);
    } catch (const Error&) {
    }
    try {
      (void)describe_file(ctx_, path);
    } catch (const Error&) {
    }
  }
}

TEST(IoShown, IsShortPrintableUnicode) {
  EXPECT_EQ(io::shown("plain"), "plain");
  EXPECT_EQ(io::shown("\xc3\xa9 \xf0\x9f\x98\x80"), "\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(io::shown("a\x1b[2J\n\x7f"), "a?[2J??");
  EXPECT_EQ(io::printable("a\x1b[2J\n\x7f \xc2\x9b \xc3\xa9\xe9"), "a\\x1b[2J\\x0a\\x7f \\xc2\\x9b \xc3\xa9\\xe9");
  EXPECT_EQ(io::shown("\xe9t\xe9"), "?t?");                             // Latin-1
  EXPECT_EQ(io::shown("\xc0\x80 \xed\xa0\x80 \xc2\x9b"), "?? ??? ??");  // overlong, surrogate, control
  EXPECT_EQ(io::shown(std::string(41, 'x')), std::string(40, 'x') + "...");
  EXPECT_EQ(io::shown(std::string(39, 'x') + "\xc3\xa9"), std::string(39, 'x') + "...");
}

TEST_F(IoHostile, MembersMustBeNamed) {
  const std::string plain = npy("<f8", "(2, 2)", kFour);
  const auto path = folder_.put("n.npz", zip({{"a.npy", plain}, {"b.npy", plain}}));
  expect_error(ErrorCode::invalid_argument, {"2 arrays of 2 axes", "a, b"}, [&] { read_table(ctx_, path); });
  expect_error(ErrorCode::invalid_argument, {"no array 'c'", "a, b"}, [&] {
    ReadOptions options;
    options.member = "c";
    read_table(ctx_, path, options);
  });
  folder_.put("n.npz", zip({{"a.npy", plain}, {"a.npy", plain}}));
  expect_error(ErrorCode::bad_data, {"2 arrays named 'a'"}, [&] {
    ReadOptions options;
    options.member = "a";
    read_table(ctx_, path, options);
  });
}

TEST_F(IoHostile, LabelsOfTheWrongKind) {
  const auto bad = [&](const std::string& bytes, std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::bad_data, words, [&] { read_labels(ctx_, folder_.put("l", bytes)); });
  };
  bad(npy("<f8", "(2, 2)", kFour), {"(2, 2)", "one column"});
  bad(npy("<f8", "(4,)", raw<double>({1, 2, 2.5, 4})), {"2.5", "row 2"});
  bad(npy("<f8", "(1,)", raw<double>({std::numeric_limits<double>::quiet_NaN()})), {"row 0"});
  bad(npy("<u8", "(2,)", raw<std::uint64_t>({1, ~0ULL})), {"2^63", "row 1"});
  bad(npy("<U1", "(2,)", raw<std::uint32_t>({'a', 0xd800})), {"Unicode", "row 1"});
  bad(npy("<i8", "(0,)", ""), {"no labels"});
  bad(npy("|O", "(1,)", kFour), {"Python objects"});
}

TEST_F(IoHostile, FilesThatCannotBeRead) {
  expect_error(ErrorCode::io, {"none.npy", "No such file"}, [&] { read_table(ctx_, folder_ / "none.npy"); });
  expect_error(ErrorCode::io, {"is a folder"}, [&] { read_table(ctx_, folder_.path()); });
  expect_error(ErrorCode::io, {"none.npy"}, [&] { describe_file(ctx_, folder_ / "none.npy"); });
  if (::geteuid() != 0) {
    const auto path = folder_.put("secret", "1,2\n");
    ::chmod(path.c_str(), 0);
    expect_error(ErrorCode::io, {"secret", "Permission denied"}, [&] { read_table(ctx_, path); });
  }
}

// A field that is too long is refused before it is read to its end, a row of very many fields before they are kept.
TEST_F(IoHostile, LongFieldsAndRows) {
  const Context ctx = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{100} << 20});
  const std::string longest(std::size_t{16} << 20, '1');
  const auto refused = [&](const std::string& text) {
    expect_error(ErrorCode::bad_data, {"evil", "line 2 has a field of more than 16 MiB"},
                 [&] { read_table(ctx, folder_.put("evil", text)); });
  };
  refused("1,2\n3," + longest + "1\n");
  refused("1,2\n3,\"" + longest + "1\"\n");
  refused("1,2\n3,1" + std::string(longest.size(), ' ') + "\n");
  refused("1,2\n" + std::string(longest.size() + 1, ' ') + "\n");
  expect_error(ErrorCode::bad_data, {"evil", "label of more than 16 MiB behind 1 others"},
               [&] { read_labels(ctx, folder_.put("evil", "a\n" + longest + "1\n")); });
  EXPECT_EQ(read_labels(ctx, folder_.put("evil", "a\nb" + longest.substr(1))).class_count(), 2);
  std::string row;
  for (int i = 0; i < (1 << 21); ++i) row += "1,";
  expect_error(ErrorCode::over_memory, {"evil", "memory limit"},
               [&] { read_table(ctx, folder_.put("evil", row + "1\n" + row + "1\n")); });
  expect_error(ErrorCode::over_memory, {"evil", "memory limit"},
               [&] { describe_file(ctx, folder_.put("evil", row + "1\n"), FileFormat::csv); });
}

TEST_F(IoHostile, ArchivesOfVeryManyMembers) {
  std::vector<ZipPart> members;
  for (int i = 0; i < 5000; ++i) members.push_back({"a" + std::to_string(i) + ".npy", npy("|u1", "(1,)", "1")});
  const auto path = folder_.put("evil", zip(members));
  const Context small = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{3} << 20});
  expect_error(ErrorCode::over_memory, {"evil", "directory", "memory limit"}, [&] { describe_file(small, path); });
  EXPECT_EQ(describe_file(ctx_, path).arrays.size(), 5000U);
}

TEST_F(IoHostile, BombsMeetTheMemoryLimit) {
  const std::string bomb = gzip(std::string(12 << 20, '1'));
  ASSERT_LT(bomb.size(), 40000U);
  const auto over = [&](const std::string& bytes) {
    expect_error(ErrorCode::over_memory, {"evil", "memory limit"},
                 [&] { read_table(ctx_, folder_.put("evil", bytes)); });
  };
  over(bomb);
  over(xz(std::string(12 << 20, '1')));
  over(bzip2(std::string(12 << 20, '1')));
  over(xz("1,2\n", 64 << 20));  // a dictionary that no content of this size needs
  over(zip({{"a.npy", npy("|u1", "(12582912,)", std::string(12 << 20, '1')), 8, 0, false}}));
  over(npy("<i1", "(2097152,)", std::string(2 << 20, '1')));  // mapped, but eight times as much when widened
  std::string text = "1\n";
  while (text.size() < (4 << 20)) text += text;
  over(text);  // four bytes of table for one of text
}

TEST_F(IoHostile, CancelledWork) {
  CpuOptions options;
  options.threads = 2;
  const Context ctx = Context::cpu(options);
  options.cancel.cancel();
  for (const std::string& bytes :
       {gzip("1,2\n"), xz("1,2\n"), bzip2("1,2\n"), std::string("1,2\n"), std::string("[1,2]\n"), zipped()}) {
    expect_error(ErrorCode::cancelled, {}, [&] { read_table(ctx, folder_.put("c", bytes)); });
  }
  // A pipe whose writer never comes.
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::cancelled, {}, [&] { read_table(ctx, pipe); });
}

TEST_F(IoHostile, PipesAreRead) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes = npy("<f8", "(2, 2)", kFour);
  std::thread writer(
      [&] { std::ofstream(pipe, std::ios::binary) << bytes.substr(0, 50) << std::flush << bytes.substr(50); });
  EXPECT_EQ(values_of(read_table(ctx_, pipe)), (std::vector<double>{1, 2, 3, 4}));
  writer.join();
}

std::string mutated(std::string bytes, std::uint64_t seed, std::uint64_t round) {
  const auto draw = core::philox(seed, 1, round);
  const auto more = core::philox(seed, 2, round);
  const int edits = 1 + static_cast<int>(draw[0] % 4);
  for (int i = 0; i < edits; ++i) {
    if (bytes.empty()) break;
    const auto words = core::philox(seed, 3 + static_cast<std::uint64_t>(i), round);
    const std::size_t at = words[0] % bytes.size();
    static constexpr unsigned char kSpecial[] = {0, 0xff, 0x7f, 0x80, '"', '\n', ',', '(', ')', '9'};
    switch (words[1] % 6) {
      case 0:
        bytes[at] = static_cast<char>(words[2]);
        break;
      case 1:
        bytes[at] = static_cast<char>(kSpecial[words[2] % sizeof kSpecial]);
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (words[2] % 8)));
        break;
      case 3:
        bytes.erase(at, 1 + words[2] % 8);
        break;
      case 4:
        bytes.insert(at, bytes.substr(words[2] % bytes.size(), 1 + words[3] % 8));
        break;
      default:
        if (more[0] % 4 == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

TEST_F(IoHostile, MutationsOfEveryFormat) {
  const std::string magic("\0\0", 2);
  const std::string csv = "a,\"b\nc\",l\n1,2,x\n3,\"4\",\"y \"\"z\"\"\"\n\n5,6e-3,x\r\n";
  const std::vector<std::string> seeds = {
      npy("<f8", "(2, 2)", kFour),
      npy(">i8", "(2, 2)", big_endian<std::int64_t>({1, 2, 3, 4}), true, 2),
      npy("<U2", "(2,)", raw<std::uint32_t>({'a', 'b', 'c', 0})),
      npy("<f4", "(2, 1, 2)", raw<float>({1, 2, 3, 4}), true),
      zipped(),
      stored(),
      zip({{"a.npy", npy("<f8", "(2, 2)", kFour), 0, 0, true}, {"b.npy", npy("|u1", "(3,)", "123"), 8, 0, true}}, true),
      magic + "\x08\x02" + big_endian<std::uint32_t>({2, 3}) + "123456",
      magic + "\x0d\x01" + big_endian<std::uint32_t>({2}) + big_endian<float>({1, 2}),
      gzip(csv) + gzip("7,8,y\n"),
      xz(csv) + xz("7,8,y\n"),
      xz(npy("<f8", "(2, 2)", kFour)),
      gzip(npy("<f8", "(2, 2)", kFour)),
      csv,
      "# c\n 1 2\n3 4 \n",
      "1;2;\"a\"\n3;4;b\n",
  };
  const Context one = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{8} << 20});
  std::int64_t accepted = 0;
  std::int64_t refused = 0;
  const auto attempt = [&](auto&& call) {
    try {
      call();
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    }
  };
  for (std::size_t seed = 0; seed < seeds.size(); ++seed) {
    for (std::uint64_t round = 0; round < 300; ++round) {
      const auto path = folder_.put("m", mutated(seeds[seed], seed, round));
      attempt([&] {
        const Table table = read_table(one, path);
        (void)values_of(table);
      });
      attempt([&] { (void)read_labels(one, path); });
      attempt([&] { (void)read_labels(one, path, "1"); });
      attempt([&] { (void)describe_file(one, path); });
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

// Files of other tools are named, with the way to one that is read.
TEST_F(IoHostile, ForeignFormatsAreNamed) {
  const std::string zeros(64, '\0');
  const std::pair<std::string, std::string_view> files[] = {
      {"PAR1" + zeros, "Parquet"},
      {"ARROW1" + zeros, "Feather"},
      {"\x80\x04\x95" + zeros, "pickle"},
      {std::string("\xff\xfe"
                   "1\0,\0",
                   6) +
           zeros,
       "UTF-16"},
      {"\x28\xb5\x2f\xfd" + zeros, "unzstd"},
      {"SQLite format 3" + zeros, "CSV"},
      {"MATLAB 5.0 MAT-file" + zeros, "-v7.3"},
  };
  for (const auto& [bytes, word] : files) {
    expect_error(ErrorCode::bad_data, {"which vicinal does not read", word},
                 [&] { read_table(ctx_, folder_.put("t", bytes)); });
  }
  const std::int64_t numbers[] = {0, 1, 2};
  const ArrayView array{numbers, "<i8", {3}};
  const NamedArray parts[] = {
      {"indices", array}, {"indptr", array}, {"format", array}, {"shape", array}, {"data", array}};
  write_npz(folder_ / "sparse.npz", parts);
  expect_error(ErrorCode::bad_data, {"sparse matrix of SciPy", "toarray"},
               [&] { read_table(ctx_, folder_ / "sparse.npz"); });
}

}  // namespace
}  // namespace vicinal
