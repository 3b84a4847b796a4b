// See planned_inputs.hpp. What a reader takes is counted here as the readers of the library take it (read_table).
#include "base/planned_inputs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/input.hpp"
#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "io/format.hpp"
#include "io/member.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

constexpr std::uint64_t kTextPerRow = 16;   // a view of a field
constexpr std::uint64_t kIdPerRow = 8 + 8;  // where it ends; in outputs a whole number
// While a text is numbered, where all of a column differ: its place in a hash table, which has just grown (48), a view
// in a list that does (48). Then its number in their order, its rank (16) and a string (32).
constexpr std::uint64_t kDistinctPerRow = 48 + 48;
constexpr std::uint64_t kCategoryPerRow = 32;
// While labels are read: a view, a whole number and a code, and their numbers, where all of them differ.
constexpr std::uint64_t kLabelPerRow = 16 + 8 + 4 + kDistinctPerRow;
constexpr std::uint64_t kClassPerRow = 4 + 32;  // then: a code, and a string of which no other row has the same
constexpr std::uint64_t kMinForHeaders = std::uint64_t{8} << 20;  // part of what a process takes in any case
constexpr std::uint64_t kSmall =
    16;  // files so many times smaller than the limit are not looked at before they are read

std::uint64_t size_of_file(const std::string& file) {
  std::error_code unknown;
  const auto size = std::filesystem::file_size(io::place_of(file).file, unknown);
  return unknown ? 0 : static_cast<std::uint64_t>(size);
}

struct Element {
  DType dtype = DType::float64;
  std::uint64_t stored = 8;  ///< bytes in the file
  bool converted = true;     ///< to a copy in memory
};

/// Of a NumPy type, as the readers convert it.
Element element_of(const std::string& type, FileFormat format) {
  if (format == FileFormat::hdf5) return {};
  const bool big = type.starts_with(">");
  if (type.ends_with("u1")) return {DType::uint8, 1, false};
  if (type.ends_with("b1")) return {DType::uint8, 1, true};
  if (type.ends_with("f2")) return {DType::float16, 2, big};
  if (type.ends_with("V2")) return {DType::bfloat16, 2, big};
  if (type.ends_with("f4")) return {DType::float32, 4, big};
  if (type.ends_with("f8")) return {DType::float64, 8, big};
  if (type.ends_with("1")) return {DType::float64, 1, true};
  if (type.ends_with("2")) return {DType::float64, 2, true};
  if (type.ends_with("4")) return {DType::float64, 4, true};
  return {DType::float64, 8, true};
}

bool is_text(const FileInfo& info) {
  return info.format == FileFormat::csv || info.format == FileFormat::libsvm ||
         info.format == FileFormat::kmeans_text || info.format == FileFormat::json_lines;
}

/// The array that a table is read from: the one that is named, or the first with two axes.
const FileInfo::Array& array_of(const FileInfo& info, const std::string& member, const std::string& file) {
  const FileInfo::Array* found = nullptr;
  for (const FileInfo::Array& array : info.arrays) {
    if (!member.empty() && array.name == member) return array;
    if (found == nullptr || (found->shape.size() < 2 && array.shape.size() >= 2)) found = &array;
  }
  if (found == nullptr) throw Error(ErrorCode::bad_data, fmt::format("{} holds no table", file));
  return *found;
}

/// A table of n rows and d columns that stands for its shape.
TableView shape_view(DType dtype, std::int64_t n, std::int64_t d) {
  static constexpr double kZero = 0;
  return {&kZero, dtype, n, d, 0, 0};
}

}  // namespace

PlannedInputs::PlannedInputs(const Runtime& runtime, const CommonOptions& common)
    : runtime_(&runtime), common_(&common), strict_(common.explain || !common.memory_limit.empty()), needed_(strict_) {}

Context PlannedInputs::to_look() const {
  CpuOptions options;
  options.threads = common_->threads;
  options.memory_limit = std::max(runtime_->ctx.memory_limit(), kMinForHeaders);
  options.cancel = interrupt_token();
  options.map_files = true;
  return Context::cpu(options);
}

FileInfo PlannedInputs::info(const std::string& file, const ReadOptions& reading) const {
  ReadOptions any_array = reading;
  any_array.member.clear();  // one that is not there is refused where it is read
  return describe_file(to_look(), file, any_array);
}

TableView PlannedInputs::add_table(const std::string& file, const ReadOptions& reading, int shares) {
  const std::uint64_t size = size_of_file(file);
  needed_ = needed_ || size > runtime_->ctx.memory_limit() / kSmall;
  known_ = known_ && size > 0;  // a pipe is read once
  if (!needed_ || !known_) return {};
  const FileInfo info = this->info(file, reading);
  const FileInfo::Array& array = array_of(info, reading.member, file);
  const std::int64_t n = array.shape.empty() ? 0 : array.shape[0];
  std::int64_t d = 1;
  for (std::size_t axis = 1; axis < array.shape.size(); ++axis) d *= array.shape[axis];
  const auto rows = static_cast<std::uint64_t>(n);
  const std::uint64_t pages = strict_ || info.compression != Compression::none ? info.bytes : 0;
  if (is_text(info)) {
    const auto labels = static_cast<std::int64_t>(reading.label.empty() ? 0 : 1);
    const bool has_ids = !reading.id.empty();
    const std::int64_t fields = d;
    if (io::has_named_columns(info.format)) {
      d -= static_cast<std::int64_t>(reading.drop.size()) + labels + (has_ids ? 1 : 0);
    }
    if (reading.columns > 0) d = reading.columns;
    known_ = known_ && n > 0 && d > 0;
    if (!known_) return {};
    const bool has_labels = labels > 0 || info.format == FileFormat::libsvm;
    const auto texts = reading.find_text ? static_cast<std::uint64_t>(d) : reading.text.size();
    const std::uint64_t values = rows * static_cast<std::uint64_t>(d) * sizeof(double);
    const std::uint64_t views = rows * ((texts + (has_ids ? 1 : 0)) * kTextPerRow + (has_labels ? kLabelPerRow : 0));
    // One column is numbered after the other; their strings take what is too long for the object, at most twice the
    // file.
    const std::uint64_t text = std::max(info.bytes, info.unpacked);
    const std::uint64_t strings = texts > 0 ? rows * texts * kCategoryPerRow + 2 * text : 0;
    const std::uint64_t numbering = texts > 0 ? rows * kDistinctPerRow + strings : 0;
    reading_ = std::max(reading_, held_ + values + views + numbering + pages + info.unpacked);
    // Ids take what other fields, a character and what parts them each, leave of the text; and as much again four
    // times in outputs, whose characters may have 4 bytes.
    const std::uint64_t others = 2 * rows * static_cast<std::uint64_t>(fields - 1);
    const std::uint64_t ids = has_ids ? rows * kIdPerRow + 5 * (text - std::min(text, others)) : 0;
    held_ += values + strings + ids + (has_labels ? rows * kClassPerRow : 0);
    if (has_ids) reading_ = std::max(reading_, held_ + views + pages + info.unpacked);
    return shape_view(DType::float64, n, d);
  }
  known_ = known_ && n > 0 && d > 0;
  if (!known_) return {};
  const Element element = element_of(array.dtype, info.format);
  const std::uint64_t cells = rows * static_cast<std::uint64_t>(d);
  const bool packed = info.compression != Compression::none || info.format == FileFormat::hdf5 ||
                      (info.format == FileFormat::npz && cells * element.stored > info.bytes);
  const bool is_shared = !packed && !element.converted;
  const std::uint64_t read = is_shared ? (rows + static_cast<std::uint64_t>(shares) - 1) /
                                             static_cast<std::uint64_t>(shares) * static_cast<std::uint64_t>(d)
                                       : cells;
  const std::uint64_t stored = packed || strict_ ? read * element.stored : 0;
  const auto width = static_cast<std::uint64_t>(vicinal::size_of(element.dtype));
  const std::uint64_t copied = element.converted ? cells * width : 0;
  reading_ = std::max(reading_, held_ + stored + copied + (packed ? pages : 0));
  held_ += element.converted ? copied : stored;
  return shape_view(element.dtype, n, d);
}

void PlannedInputs::add_labels(const std::string& file, const std::string& column) {
  const std::uint64_t size = size_of_file(file);
  if (!needed_ || !known_ || size == 0) return;
  ReadOptions reading;
  reading.member = column;
  const FileInfo info = this->info(file, reading);
  const FileInfo::Array& array = array_of(info, column, file);
  const std::uint64_t rows = array.shape.empty() ? 0 : static_cast<std::uint64_t>(array.shape[0]);
  // Texts that are too long for a string object, and those with doubled quotes, take at most twice their file.
  const std::uint64_t text = std::max(info.bytes, info.unpacked);
  reading_ = std::max(reading_, held_ + rows * kLabelPerRow + 2 * text + info.bytes + info.unpacked);
  held_ += rows * kClassPerRow + 2 * text;
}

void PlannedInputs::add_map(const std::string& file, bool is_copied, std::int64_t columns) {
  // Of the smallest features that a format can hold, triangles: 85 bytes of GeoJSON or 110 of GeoPackage in the file,
  // 650 in memory, where GDAL's and our own copy stand beside each other; 400 more while they are written, and 80 a
  // column.
  constexpr std::uint64_t kOfFeatures = 8;
  constexpr std::uint64_t kCopied = 5;
  // Points of TopoJSON, whose steps may be of a digit ("[0,1],"), stand in two borders, and GDAL keeps the file as a
  // tree of objects: 52 bytes for each byte were measured.
  constexpr std::uint64_t kOfArcs = 64;
  if (!strict_) return;
  std::filesystem::path attributes = file;
  attributes.replace_extension(".dbf");
  const bool is_shapefile = std::filesystem::path(file).extension() == ".shp";
  const std::uint64_t bytes = size_of_file(file) + (is_shapefile ? size_of_file(attributes.string()) : 0);
  const std::uint64_t read = begins_with_word(file, "\"Topology\"") ? kOfArcs : kOfFeatures;
  held_ += bytes * ((is_copied ? read + kCopied : read) + static_cast<std::uint64_t>(columns));
}

std::uint64_t PlannedInputs::total(std::uint64_t operation) const noexcept {
  return std::max(reading_, held_ + std::max(operation, planned_));
}

Context PlannedInputs::limited_to(std::uint64_t bytes) const {
  CommonOptions options = *common_;
  options.memory_limit = fmt::format("{}", bytes);
  if (runtime_->ctx.device() == "cpu") options.device = "cpu";  // what computes on the host alone opens no device
  return make_runtime(options).ctx;
}

Context PlannedInputs::rest() const {
  if (!needed_ || held_ == 0) return runtime_->ctx;
  const std::uint64_t limit = runtime_->ctx.memory_limit();
  return limited_to(limit > held_ ? limit - held_ : 1);
}

Context PlannedInputs::to_plan_from(std::string_view job,
                                    const std::function<std::uint64_t(const Context& rest)>& operation) const {
  constexpr std::uint64_t kInAnyCase = std::uint64_t{16} << 20;
  if (!needed_ || !known_ || runtime_->ctx.memory_limit() >= total(0)) return runtime_->ctx;
  if (total(0) > kInAnyCase && !common_->explain) require(job, operation(rest()));
  return limited_to(std::max(runtime_->ctx.memory_limit(), common_->explain ? total(0) : kInAnyCase));
}

Context PlannedInputs::fit(std::string_view job, const std::function<std::uint64_t(const Context& rest)>& operation) {
  Context left = rest();
  if (!needed_ || !known_) return left;
  try {
    planned_ = operation(left);
  } catch (const Error&) {
    return left;  // what else is wrong is found when the inputs are read, and said with their names
  }
  if (!common_->explain) require(job, planned_);
  return left;
}

void PlannedInputs::require(std::string_view job, std::uint64_t operation) const {
  const std::uint64_t bytes = total(operation);
  const std::uint64_t limit = runtime_->ctx.memory_limit();
  if (!needed_ || bytes <= limit) return;
  throw Error(ErrorCode::over_memory,
              fmt::format("{} needs {} ({} bytes) with its inputs, more than the memory limit of {}", job,
                          format_bytes(static_cast<double>(bytes)), bytes, format_bytes(static_cast<double>(limit))));
}

}  // namespace vicinal::cli
