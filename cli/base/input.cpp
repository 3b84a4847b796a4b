// See input.hpp.
#include "base/input.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "base/output.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

/// Half precision: 1 sign, 5 exponent, 10 mantissa bits. Every value is exact in float64.
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double magnitude = std::ldexp(mantissa, -24);
  if (exponent == 31) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent != 0) {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

bool begins_with_word(const std::string& file, std::string_view word) {
  std::string start(4096, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.find(word) != std::string::npos;
}

void naming_files(const std::string& table_file, const std::string& queries_file, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string what = error.what();
    if (error.code() != ErrorCode::bad_data) throw;
    const std::size_t begin = what.starts_with("rank ") ? what.find(": ") + 2 : 0;  // a rank is named before its error
    for (const auto& [argument, file] : {std::pair("table: ", table_file), std::pair("queries: ", queries_file)}) {
      if (!what.substr(begin).starts_with(argument)) continue;
      throw Error(error.code(), what.substr(0, begin) + file + what.substr(begin + std::string(argument).size() - 2));
    }
    throw;
  }
}

ReadOptions read_options(const InputOptions& options) {
  ReadOptions read;
  if (options.header) read.header = true;
  if (options.no_header) read.header = false;
  if (!options.delimiter.empty()) {
    const bool tab = options.delimiter == "tab" || options.delimiter == "\\t";
    if (!tab && options.delimiter.size() != 1) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--delimiter: '{}' is not one character, nor tab", options.delimiter));
    }
    read.delimiter = tab ? '\t' : options.delimiter[0];
  }
  if (options.decimal.size() > 1 || (!options.decimal.empty() && options.decimal != "." && options.decimal != ",")) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--decimal: '{}' is neither . nor ,", options.decimal));
  }
  if (!options.decimal.empty()) read.decimal = options.decimal[0];
  if (options.comment.size() > 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--comment: '{}' is not one character", options.comment));
  }
  if (!options.comment.empty()) read.comment = options.comment[0];
  if (options.format != "auto") read.format = file_format_from(options.format);
  read.keep_index = options.keep_index;
  read.bfloat16 = options.dtype == "bfloat16";
  if (options.sparse_columns < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--sparse-columns is {}, not above 0", options.sparse_columns));
  }
  read.columns = options.sparse_columns;
  read.member = options.member;
  read.drop = options.drop;
  return read;
}

Table read_rows(const Context& ctx, const std::string& file, const ReadOptions& options) {
  Table table = read_table(ctx, file, options);
  for (const std::string& note : table.notes) add_note(note);
  return table;
}

void refuse_labels_twice(const std::string& label, const std::string& file) {
  if (label.empty() || file.empty()) return;
  throw Error(ErrorCode::invalid_argument, "--labels: cannot be combined with --label; give one of the two");
}

void require_labels(const std::string& option, const std::string& file, const Labels& labels, std::int64_t rows) {
  if (std::ssize(labels.codes) == rows) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("{}: {} has {} labels for a table of {} rows", option, file, labels.codes.size(), rows));
}

std::vector<std::string> references_of(const FileInfo& info) {
  std::vector<std::string> references;
  const auto width = static_cast<std::size_t>(info.arrays[0].shape[1]);
  for (std::size_t j = 0; j < width; ++j) {
    const std::string position = fmt::format("{}", j);
    const bool a_name = std::find(info.columns.begin(), info.columns.end(), position) != info.columns.end();
    references.push_back(a_name ? info.columns[j] : position);
  }
  return references;
}

Table load_table(const Runtime& runtime, const CommonOptions& common, const std::string& file,
                 const ReadOptions& options) {
  Table table = read_rows(runtime.ctx, file, options);
  if (table.stored_values >= 0) {
    const std::int64_t cells = table.view.rows() * table.view.cols();
    tell(runtime, common,
         fmt::format("{}: {} values of a sparse table, made dense: {} x {} ({})", file,
                     format_count(table.stored_values), format_count(table.view.rows()), table.view.cols(),
                     format_bytes(8 * static_cast<double>(cells))));
  }
  return table;
}

std::vector<std::uint64_t> read_filter(const Context& ctx, const std::string& path, std::int64_t rows) {
  if (path.empty()) return {};
  const Labels labels = read_labels(ctx, path);
  const auto size = static_cast<std::int64_t>(labels.codes.size());
  if (size != rows) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--filter: {} has {} values for a table of {} rows", path, size, rows));
  }
  std::vector<std::uint64_t> words(static_cast<std::size_t>((rows + 63) / 64), 0);
  constexpr std::int64_t kPollRows = std::int64_t{1} << 16;
  std::int64_t zero = -1;
  std::int64_t one = -1;
  for (std::int64_t code = 0; code < labels.class_count(); ++code) {
    if (code % kPollRows == 0) ctx.check_cancelled();
    const std::string name = labels.name_of(code);
    if (name == "0") zero = code;
    if (name == "1") one = code;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % kPollRows == 0) ctx.check_cancelled();
    const std::int64_t code = labels.codes[static_cast<std::size_t>(i)];
    if (code != zero && code != one) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("--filter: {} holds '{}' at row {}, not 0 or 1", path, labels.name_of(code), i));
    }
    if (code == one) words[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64);
  }
  return words;
}

double value_at(const TableView& view, std::int64_t i, std::int64_t j) {
  const std::int64_t at = i * view.row_stride() + j * view.col_stride();
  switch (view.dtype()) {
    case DType::uint8:
      return static_cast<const std::uint8_t*>(view.data())[at];
    case DType::float16:
      return half_value(static_cast<const float16*>(view.data())[at].bits);
    case DType::bfloat16:
      return std::bit_cast<float>(std::uint32_t{static_cast<const bfloat16*>(view.data())[at].bits} << 16);
    case DType::float32:
      return static_cast<const float*>(view.data())[at];
    case DType::float64:
      return static_cast<const double*>(view.data())[at];
  }
  return 0;
}

KnnOptions knn_options(const SearchOptions& options, std::int64_t k, const std::vector<std::uint64_t>& filter_words) {
  KnnOptions knn;
  knn.k = k;
  knn.metric = metric_from(options.metric);
  knn.p = options.p;
  knn.method = method_from(options.method);
  knn.screen = screen_from(options.screen);
  knn.filter = filter_words;
  return knn;
}

RadiusOptions radius_options(const SearchOptions& options, double radius,
                             const std::vector<std::uint64_t>& filter_words) {
  RadiusOptions out;
  out.radius = radius;
  out.metric = metric_from(options.metric);
  out.p = options.p;
  out.method = method_from(options.method);
  out.screen = screen_from(options.screen);
  out.filter = filter_words;
  return out;
}

}  // namespace vicinal::cli
