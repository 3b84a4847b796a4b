// Files in the layout of safetensors: the header's length (8 bytes, little-endian), a JSON header, then the tensors
// without gaps, of which the last is the CRC-32 of every byte before it. Reading needs no trust: the header must
// describe exactly the layout that its own sizes lead to, which must fill the file exactly, and the sum must be right
// (contract clauses 6 and 11).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/atomic_file.hpp"
#include "io/bytes.hpp"

namespace vicinal::ops {

static_assert(std::endian::native == std::endian::little, "these files are little-endian and used in place");

/// What a file says it is, first thing.
struct FileKind {
  const char* noun;             ///< what sentences call it
  const char* what;             ///< what another file is not
  const char* format;           ///< in its metadata
  std::int64_t longest_header;  ///< in bytes
  bool has_arrays;              ///< beyond those of an index
};

/// Throws `bad_data`: "index file 'x': it is too short to be one".
[[noreturn]] void refuse_file(const FileKind& kind, const std::filesystem::path& path, const std::string& why);

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  ///< within the data
  std::int64_t end = 0;
};

/// Tensors in file order, one after the other.
class TensorLayout {
 public:
  /// `size`: bytes of an element.
  void add(const char* name, const std::string& dtype, std::int64_t size, std::vector<std::int64_t> dims);
  /// Adds the checksum. Nothing where all bytes are more than 2^63.
  std::optional<std::vector<Tensor>> finish();

 private:
  std::vector<Tensor> tensors_;
  std::int64_t end_ = 0;
  bool fits_ = true;
};

nlohmann::json header_of(const FileKind& kind, const std::vector<Tensor>& tensors,
                         const std::map<std::string, std::string>& metadata);
/// Throws `invalid_argument` for texts that are not UTF-8, and for a header that is too long; up to 63 blanks may
/// follow it.
std::string header_text(const FileKind& kind, const nlohmann::json& header);

/// The header of a file from its first bytes, or an error that says what the file is not. `data_begin`: where tensors
/// begin.
nlohmann::json read_header(const FileKind& kind, const std::filesystem::path& path, const io::Bytes& bytes,
                           std::int64_t& data_begin);
/// The metadata, all of which must be texts.
std::map<std::string, std::string> texts_in(const FileKind& kind, const std::filesystem::path& path,
                                            const nlohmann::json& header);
/// Whether a file says that it is of this kind; false for whatever cannot be read.
bool is_of_kind(const Context& ctx, const std::filesystem::path& path, const FileKind& kind);

/// Writes and sums.
class SummedFile {
 public:
  explicit SummedFile(const std::filesystem::path& path, const CancelToken* token = nullptr) : file_(path, token) {}
  void write(const void* data, std::size_t bytes);
  template <class T>
  void write(const std::vector<T>& values) {
    write(values.data(), values.size() * sizeof(T));
  }
  /// Returns the check sum that ends the file.
  std::uint32_t commit();

 private:
  io::AtomicFile file_;
  std::uint64_t sum_ = 0;
};

}  // namespace vicinal::ops
