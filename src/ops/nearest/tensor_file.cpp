// See tensor_file.hpp.
#include "ops/nearest/tensor_file.hpp"

#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "ops/common/refuse.hpp"

namespace vicinal::ops {

using nlohmann::json;

void refuse_file(const FileKind& kind, const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::bad_data, std::string(kind.noun) + " file '" + path.string() + "': " + why);
}

void TensorLayout::add(const char* name, const std::string& dtype, std::int64_t size, std::vector<std::int64_t> dims) {
  std::int64_t bytes = size;
  for (const std::int64_t dim : dims) fits_ = fits_ && !__builtin_mul_overflow(bytes, dim, &bytes);
  const std::int64_t begin = end_;
  fits_ = fits_ && !__builtin_add_overflow(begin, bytes, &end_);
  tensors_.push_back({name, dtype, std::move(dims), begin, end_});
}

std::optional<std::vector<Tensor>> TensorLayout::finish() {
  add("crc32", "U32", 4, {1});
  if (!fits_) return std::nullopt;
  return std::move(tensors_);
}

json header_of(const FileKind& kind, const std::vector<Tensor>& tensors,
               const std::map<std::string, std::string>& metadata) {
  json header = {{"__metadata__", metadata}};
  header["__metadata__"]["format"] = kind.format;
  header["__metadata__"]["version"] = "1";
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  return header;
}

std::string header_text(const FileKind& kind, const json& header) {
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    refuse(std::string(kind.noun) + ": its texts are not UTF-8, which its file needs");
  }
  constexpr std::int64_t kMaxBlanks = 63;
  if (static_cast<std::int64_t>(text.size()) + kMaxBlanks > kind.longest_header) {
    refuse(std::string(kind.noun) + ": what it says of itself takes " + std::to_string(text.size()) +
           " bytes, more than the " + std::to_string(kind.longest_header) + " that its header may have");
  }
  return text;
}

json read_header(const FileKind& kind, const std::filesystem::path& path, const io::Bytes& bytes,
                 std::int64_t& data_begin) {
  std::uint64_t length = 0;
  if (bytes.size < sizeof length) refuse_file(kind, path, "it is too short to be one");
  std::memcpy(&length, bytes.data, sizeof length);
  if (length > static_cast<std::uint64_t>(kind.longest_header) || length > bytes.size - sizeof length)
    refuse_file(kind, path, "its header's length is wrong");
  data_begin = static_cast<std::int64_t>(sizeof length + length);
  const auto* const text = reinterpret_cast<const char*>(bytes.data) + sizeof length;
  json header = json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) refuse_file(kind, path, "its header is not JSON");
  const json metadata = header.value("__metadata__", json());
  if (!metadata.is_object() || metadata.value("format", json()) != kind.format) {
    refuse_file(kind, path, std::string("it is not ") + kind.what);
  }
  if (metadata.value("version", json()) != "1") {
    refuse_file(kind, path, "its version is not 1; this build reads only version 1");
  }
  return header;
}

std::map<std::string, std::string> texts_in(const FileKind& kind, const std::filesystem::path& path,
                                            const json& header) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : header["__metadata__"].items()) {
    if (!value.is_string()) refuse_file(kind, path, "its metadata are not texts");
    texts[name] = value.get<std::string>();
  }
  return texts;
}

bool is_of_kind(const Context& ctx, const std::filesystem::path& path, const FileKind& kind) try {
  std::int64_t data_begin = 0;
  const io::Bytes bytes =
      io::open_file(ctx, path, sizeof(std::uint64_t) + static_cast<std::uint64_t>(kind.longest_header));
  return read_header(kind, path, bytes, data_begin).is_object();
} catch (const Error& error) {
  if (error.code() == ErrorCode::bad_data || error.code() == ErrorCode::io) return false;
  throw;
}

void SummedFile::write(const void* data, std::size_t bytes) {
  if (bytes == 0) return;  // zlib would start the sum anew for a null pointer
  file_.write(data, bytes);
  sum_ = crc32_z(sum_, static_cast<const Bytef*>(data), bytes);
}

std::uint32_t SummedFile::commit() {
  const auto sum = static_cast<std::uint32_t>(sum_);
  file_.write(&sum, sizeof sum);
  file_.commit();
  return sum;
}

}  // namespace vicinal::ops
