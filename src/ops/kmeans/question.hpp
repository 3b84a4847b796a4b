// Questions to the shards of a table, and their answers, as bytes (include/vicinal/kmeans_shards.hpp): numbers of 8
// bytes, and arrays with their sizes before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/cluster_parts.hpp"
#include "vicinal/error.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal::ops {

enum class QuestionKind : std::int64_t {
  ranges,    ///< what the rows are like
  assign,    ///< labels by `centres`, and the integers of the clusters
  parts,     ///< the integers of the clusters, by `labelled_by` and `moves`
  keys,      ///< of each row to the center of its label (`labelled_by`, `moves`), as it is in `centres`
  inertia,   ///< their exact sum
  rows,      ///< the values of some rows
  masses,    ///< of each row relative to `centres`, and which of these is nearest
  left_out,  ///< labels by `centres` of the rows of weight 0
};

struct Move {
  std::int64_t row;
  std::int64_t cluster;
};

/// Rows are numbered among those with a weight, over all shards.
struct Question {
  QuestionKind kind = QuestionKind::ranges;
  Metric metric = Metric::euclidean;
  std::int64_t clusters = 0;
  std::int64_t cols = 0;
  bool weighted = false;
  std::vector<std::int64_t> first_rows = {};  ///< [shards] of each shard, in the table
  std::vector<std::int64_t> begins = {};      ///< [shards + 1] the first row with a weight of each; empty in `ranges`
  kernels::TableRanges ranges = {};           ///< of all shards; in `ranges` without columns
  std::vector<double> labelled_by = {};
  std::vector<double> centres = {};
  std::vector<Move> moves = {};
  std::vector<std::int64_t> rows = {};
};

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(sizeof(T) == 8 && std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  template <class T>
  void array(std::span<const T> values) {
    number(static_cast<std::int64_t>(values.size()));
    append(values.data(), values.size_bytes());
  }
  template <class T>
  void array(const std::vector<T>& values) {
    array(std::span<const T>(values));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  /// `what`: "question", "answer of shard 3"; in sentences.
  ByteReader(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  template <class T>
  T number() {
    static_assert(sizeof(T) == 8 && std::is_trivially_copyable_v<T>);
    T value;
    take(&value, sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> array() {
    const auto size = number<std::int64_t>();
    if (size < 0 || static_cast<std::uint64_t>(size) > bytes_.size() / sizeof(T)) refuse_bytes("is too short");
    std::vector<T> values(static_cast<std::size_t>(size));
    take(values.data(), values.size() * sizeof(T));
    return values;
  }
  /// An array of a size that is known.
  template <class T>
  std::vector<T> array(std::size_t size) {
    std::vector<T> values = array<T>();
    require(values.size() == size, "has an array of another size than expected");
    return values;
  }
  void require(bool is_right, const char* else_what) const {
    if (!is_right) refuse_bytes(else_what);
  }
  void finish() const { require(bytes_.empty(), "has more bytes than expected"); }

 private:
  [[noreturn]] void refuse_bytes(const char* what) const { throw Error(ErrorCode::bad_data, what_ + ": " + what); }
  void take(void* to, std::size_t size) {
    require(size <= bytes_.size(), "is too short");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
  std::string what_;
};

void write(ByteWriter& to, const kernels::TableRanges& ranges);
kernels::TableRanges read_ranges(ByteReader& from);
std::vector<std::byte> bytes_of(const Question& question);
/// Throws `bad_data` for bytes that are no question.
Question question_of(std::span<const std::byte> bytes);

/// Labels in as few bytes as `clusters` allow: 1, 2 or 4.
void write_labels(ByteWriter& to, std::span<const std::int32_t> labels, std::int64_t clusters);
/// Throws `bad_data` for a label that is no cluster.
void read_labels(ByteReader& from, std::span<std::int32_t> labels, std::int64_t clusters);

}  // namespace vicinal::ops
