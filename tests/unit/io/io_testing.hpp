// What the tests of src/io share: a folder of their own, files made byte by byte (not by our writers), and errors
// checked for code and words.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/table_access.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io_testing {

/// A temporary folder, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "vicinal-io-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file and gives its path.
  std::filesystem::path put(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }
  [[nodiscard]] std::string get(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

/// The bytes of values as they lie in memory (little-endian).
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

template <class T>
std::string big_endian(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) {
    const std::string little = raw<T>({value});
    bytes.append(little.rbegin(), little.rend());
  }
  return bytes;
}

/// A .npy file; `dictionary` is the whole header text.
inline std::string npy_with(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file.push_back(static_cast<char>(version));
  file.push_back('\0');
  const std::string length = raw<std::uint32_t>({static_cast<std::uint32_t>(dictionary.size())});
  file += version == 1 ? length.substr(0, 2) : length;
  return file + dictionary + data;
}

/// Padded as NumPy pads: the elements begin at a multiple of 64.
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       bool fortran = false, int version = 1) {
  std::string text =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  const std::size_t fixed = version == 1 ? 10 : 12;
  while ((fixed + text.size() + 1) % 64 != 0) text.push_back(' ');
  return npy_with(text + "\n", data, version);
}

inline std::string deflated(const std::string& bytes, int window_bits) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string gzip(const std::string& bytes) {
  return deflated(bytes, 16 + MAX_WBITS);
}

/// One xz stream, its dictionary 256 KiB.
inline std::string xz(const std::string& bytes, std::uint32_t dictionary = 1 << 18) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 0);
  options.dict_size = dictionary;
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(
      lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                bytes.size(), reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  return out;
}

inline std::string bzip2(const std::string& bytes) {
  std::string out(bytes.size() + bytes.size() / 100 + 700, '\0');
  auto size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()),
                                     static_cast<unsigned>(bytes.size()), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

struct ZipPart {
  std::string name;
  std::string content;
  int method = 0;
  int flags = 0;
  bool zip64 = false;  ///< sizes and offset saturated, the real ones in the extra field
};

/// A zip archive made by hand.
inline std::string zip(const std::vector<ZipPart>& parts, bool zip64_end = false) {
  const auto u16 = [](std::uint64_t v) { return raw<std::uint16_t>({static_cast<std::uint16_t>(v)}); };
  const auto u32 = [](std::uint64_t v) { return raw<std::uint32_t>({static_cast<std::uint32_t>(v)}); };
  const auto u64 = [](std::uint64_t v) { return raw<std::uint64_t>({v}); };
  std::string file;
  std::string directory;
  for (const ZipPart& part : parts) {
    const std::string body = part.method == 8 ? deflated(part.content, -MAX_WBITS) : part.content;
    const auto* data = reinterpret_cast<const Bytef*>(part.content.data());
    const std::string crc = u32(crc32(0, data, static_cast<uInt>(part.content.size())));
    const std::string method = u16(part.flags) + u16(part.method) + u32(0) + crc;
    const std::string sizes =
        part.zip64 ? u32(0xffffffff) + u32(0xffffffff) : u32(body.size()) + u32(part.content.size());
    const std::string extra =
        part.zip64 ? u16(1) + u16(24) + u64(part.content.size()) + u64(body.size()) + u64(file.size()) : "";
    directory += "PK\1\2" + u16(45) + u16(45) + method + sizes + u16(part.name.size()) + u16(extra.size()) + u16(0) +
                 u16(0) + u16(0) + u32(0) + u32(part.zip64 ? 0xffffffff : file.size()) + part.name + extra;
    file += "PK\3\4" + u16(45) + method + sizes + u16(part.name.size()) + u16(0) + part.name + body;
  }
  const std::uint64_t offset = file.size();
  file += directory;
  if (zip64_end) {
    file += "PK\6\6" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(parts.size()) + u64(parts.size()) +
            u64(directory.size()) + u64(offset);
    file += "PK\6\7" + u32(0) + u64(offset + directory.size()) + u32(1);
    return file + "PK\5\6" + u16(0) + u16(0) + u16(0xffff) + u16(0xffff) + u32(0xffffffff) + u32(0xffffffff) + u16(0);
  }
  return file + "PK\5\6" + u16(0) + u16(0) + u16(parts.size()) + u16(parts.size()) + u32(directory.size()) +
         u32(offset) + u16(0);
}

inline std::vector<double> values_of(const Table& table) {
  std::vector<double> values(static_cast<std::size_t>(table.view.rows() * table.view.cols()));
  core::widen_rows(table.view, 0, table.view.rows(), values.data());
  return values;
}

/// Runs `call`, which must throw an Error of that code whose sentence has all the words.
template <class Call>
void expect_error(ErrorCode code, std::initializer_list<std::string_view> words, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << sentence;
    for (const std::string_view word : words) {
      EXPECT_NE(sentence.find(word), std::string_view::npos) << "'" << word << "' missing in: " << sentence;
    }
  }
}

}  // namespace vicinal::io_testing
