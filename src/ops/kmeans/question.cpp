// See question.hpp.
#include "ops/kmeans/question.hpp"

#include <algorithm>
#include <cmath>

#include "formulas/kmeans/limits.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kFormat = 0x31716b6c6e6376;  // "vcnlkq1", the format's version

template <class Stored>
void write_as(ByteWriter& to, std::span<const std::int32_t> labels) {
  std::vector<Stored> stored(labels.size());
  std::transform(labels.begin(), labels.end(), stored.begin(), [](std::int32_t x) { return static_cast<Stored>(x); });
  to.array(stored);
}

template <class Stored>
void read_as(ByteReader& from, std::span<std::int32_t> labels) {
  const auto stored = from.array<Stored>(labels.size());
  std::transform(stored.begin(), stored.end(), labels.begin(), [](Stored x) { return static_cast<std::int32_t>(x); });
}

bool is_centre(double x) {
  return std::fabs(x) < core::kTooLarge;
}

}  // namespace

void write(ByteWriter& to, const kernels::TableRanges& ranges) {
  to.array(ranges.columns);
  to.number(ranges.rows);
  to.number(ranges.least_weight);
  to.number(ranges.largest_weight);
}

kernels::TableRanges read_ranges(ByteReader& from) {
  kernels::TableRanges ranges;
  ranges.columns = from.array<kernels::NumberRange>();
  ranges.rows = from.number<std::int64_t>();
  ranges.least_weight = from.number<double>();
  ranges.largest_weight = from.number<double>();
  const auto is_size = [](double x) { return x >= 0 && std::isfinite(x); };
  int exponent = 0;
  const bool right = ranges.rows >= 0 && is_size(ranges.least_weight) && is_size(ranges.largest_weight) &&
                     std::all_of(ranges.columns.begin(), ranges.columns.end(), [&](const kernels::NumberRange& x) {
                       return is_size(x.largest) && x.largest < core::kTooLarge && is_size(x.least) &&
                              is_size(x.last_bit) && (x.last_bit == 0 || std::frexp(x.last_bit, &exponent) == 0.5);
                     });
  from.require(right, "has ranges of no table");
  return ranges;
}

std::vector<std::byte> bytes_of(const Question& question) {
  ByteWriter to;
  to.number(kFormat);
  to.number(question.kind);
  to.number(static_cast<std::int64_t>(question.metric));
  to.number(question.clusters);
  to.number(question.cols);
  to.number(static_cast<std::int64_t>(question.weighted ? 1 : 0));
  to.array(question.first_rows);
  to.array(question.begins);
  write(to, question.ranges);
  to.array(question.labelled_by);
  to.array(question.centres);
  to.array(question.moves);
  to.array(question.rows);
  return to.take();
}

Question question_of(std::span<const std::byte> bytes) {
  ByteReader from(bytes, "question");
  from.require(from.number<std::int64_t>() == kFormat, "is none of this version of k-means");
  Question question;
  const auto kind = from.number<std::int64_t>();
  from.require(kind >= 0 && kind <= static_cast<std::int64_t>(QuestionKind::left_out), "is of no kind");
  question.kind = static_cast<QuestionKind>(kind);
  const auto metric = from.number<std::int64_t>();
  question.metric = metric == static_cast<std::int64_t>(Metric::cosine) ? Metric::cosine : Metric::euclidean;
  from.require(metric == static_cast<std::int64_t>(question.metric), "has a metric that k-means does not have");
  question.clusters = from.number<std::int64_t>();
  question.cols = from.number<std::int64_t>();
  question.weighted = from.number<std::int64_t>() != 0;
  question.first_rows = from.array<std::int64_t>();
  question.begins = from.array<std::int64_t>();
  question.ranges = read_ranges(from);
  question.labelled_by = from.array<double>();
  question.centres = from.array<double>();
  question.moves = from.array<Move>();
  question.rows = from.array<std::int64_t>();
  from.finish();
  from.require(question.clusters >= 1 && question.clusters < std::int64_t{1} << 24 && question.cols >= 1,
               "has a number of clusters or columns that k-means does not have");
  const bool first = question.kind == QuestionKind::ranges;
  from.require(first || question.begins.size() == question.first_rows.size() + 1, "does not number its shards");
  from.require(std::is_sorted(question.begins.begin(), question.begins.end()), "does not number its shards");
  from.require(first || question.ranges.columns.size() == static_cast<std::size_t>(question.cols),
               "has ranges of another table");
  from.require(std::all_of(question.centres.begin(), question.centres.end(), is_centre) &&
                   std::all_of(question.labelled_by.begin(), question.labelled_by.end(), is_centre),
               "has centers that are not finite or too large");
  from.require(std::all_of(question.moves.begin(), question.moves.end(),
                           [&](const Move& move) { return move.cluster >= 0 && move.cluster < question.clusters; }),
               "moves a row to a cluster that there is not");
  const auto values = static_cast<std::size_t>(question.clusters) * static_cast<std::size_t>(question.cols);
  const auto fits = [&](const std::vector<double>& centres) { return centres.size() == values; };
  switch (question.kind) {
    case QuestionKind::ranges:
    case QuestionKind::rows:
      break;
    case QuestionKind::masses:
      from.require(question.centres.size() % static_cast<std::size_t>(question.cols) == 0, "has centers of other rows");
      break;
    case QuestionKind::assign:
    case QuestionKind::left_out:
      from.require(fits(question.centres), "has another number of centers");
      break;
    case QuestionKind::parts:
      from.require(fits(question.labelled_by), "has another number of centers");
      break;
    case QuestionKind::keys:
    case QuestionKind::inertia:
      from.require(fits(question.labelled_by) && fits(question.centres), "has another number of centers");
      break;
  }
  return question;
}

void write_labels(ByteWriter& to, std::span<const std::int32_t> labels, std::int64_t clusters) {
  if (clusters <= 256) return write_as<std::uint8_t>(to, labels);
  if (clusters <= 65536) return write_as<std::uint16_t>(to, labels);
  to.array(labels);
}

void read_labels(ByteReader& from, std::span<std::int32_t> labels, std::int64_t clusters) {
  if (clusters <= 256) {
    read_as<std::uint8_t>(from, labels);
  } else if (clusters <= 65536) {
    read_as<std::uint16_t>(from, labels);
  } else {
    read_as<std::int32_t>(from, labels);
  }
  const auto is_label = [&](std::int32_t x) { return x >= 0 && x < clusters; };
  from.require(std::all_of(labels.begin(), labels.end(), is_label), "has a label that is no cluster");
}

}  // namespace vicinal::ops
