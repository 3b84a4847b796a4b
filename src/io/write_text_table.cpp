// Tables as CSV, JSON lines, libsvm and the classical k-means tools' text (table_output.hpp). A number is the shortest
// text that reads back as the same float64; NaN and infinity, which no reader of ours takes from text, are refused.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/table_access.hpp"
#include "io/csv_fields.hpp"
#include "io/table_output.hpp"

namespace vicinal::io {
namespace {

void append_number(std::string& out, double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Rows of a table as numbers, and what goes before and between them.
class TextRows {
 public:
  explicit TextRows(const TableOutput& output) : output_(output), view_(output.table.view) {
    if (output.format != FileFormat::json_lines || !has_names()) return;
    for (std::int64_t j = 0; j < view_.cols(); ++j) keys_.push_back(json_text(column_name(j)) + ":");
  }

  void encode(std::int64_t begin, std::int64_t end, std::string& out) const {
    const std::int64_t d = view_.cols();
    std::vector<double> values(static_cast<std::size_t>((end - begin) * d));
    core::widen_rows(view_, begin, end, values.data());
    for (std::int64_t i = begin; i < end; ++i) {
      const double* row = values.data() + (i - begin) * d;
      for (std::int64_t j = 0; j < d; ++j) {
        if (!std::isfinite(row[j])) refuse(i, j, row[j]);
      }
      if (output_.format == FileFormat::csv) csv(i, row, out);
      if (output_.format == FileFormat::json_lines) json(i, row, out);
      if (output_.format == FileFormat::libsvm) libsvm(i, row, out);
      if (output_.format == FileFormat::kmeans_text) kmeans(i, row, out);
      out += '\n';
    }
  }

  [[nodiscard]] std::string csv_header() const {
    const Table& table = output_.table;
    if (!has_names() && !begins_like_a_header()) return {};
    std::string line;
    if (table.ids) line += csv_field(id_name(), output_.delimiter) + output_.delimiter;
    for (std::int64_t j = 0; j < view_.cols(); ++j) {
      if (j > 0) line += output_.delimiter;
      line += csv_field(column_name(j), output_.delimiter);
    }
    if (table.labels) line += output_.delimiter + csv_field(label_name(), output_.delimiter);
    return line + "\n";
  }

 private:
  [[nodiscard]] bool has_names() const {
    return !output_.table.columns.empty() || output_.table.labels || output_.table.ids;
  }
  [[nodiscard]] std::string label_name() const {
    return output_.table.label_name.empty() ? "label" : output_.table.label_name;
  }
  [[nodiscard]] std::string id_name() const { return output_.table.ids->name.empty() ? "id" : output_.table.ids->name; }
  [[nodiscard]] std::string column_name(std::int64_t j) const {
    const auto at = static_cast<std::size_t>(j);
    return at < output_.table.columns.size() ? output_.table.columns[at] : fmt::format("x{}", j);
  }
  /// The first row is 0, 1, .., d - 1, which a reader of CSV takes for the names of the columns (read_table).
  [[nodiscard]] bool begins_like_a_header() const {
    if (view_.cols() < 2) return false;
    std::vector<double> first(static_cast<std::size_t>(view_.cols()));
    core::widen_rows(view_, 0, 1, first.data());
    for (std::size_t j = 0; j < first.size(); ++j) {
      if (first[j] != static_cast<double>(j)) return false;
    }
    return true;
  }
  void csv(std::int64_t i, const double* row, std::string& out) const {
    const auto& categories = output_.table.categories;
    if (output_.table.ids) out += csv_field((*output_.table.ids)[i], output_.delimiter) + output_.delimiter;
    for (std::int64_t j = 0; j < view_.cols(); ++j) {
      if (j > 0) out += output_.delimiter;
      const auto at = static_cast<std::size_t>(j);
      if (at < categories.size() && !categories[at].empty()) {
        if (!std::isnan(row[j])) out += csv_field(categories[at][static_cast<std::size_t>(row[j])], output_.delimiter);
      } else {
        append_number(out, row[j]);
      }
    }
    if (output_.table.labels) out += output_.delimiter + csv_field(label(i), output_.delimiter);
  }

  void json(std::int64_t i, const double* row, std::string& out) const {
    const auto& categories = output_.table.categories;
    out += keys_.empty() ? '[' : '{';
    if (output_.table.ids) {
      const std::string_view id = (*output_.table.ids)[i];
      out += json_text(id_name()) + ":";
      out += output_.table.ids->are_whole_numbers() ? std::string(id) : json_text(id);
      out += ',';
    }
    for (std::int64_t j = 0; j < view_.cols(); ++j) {
      if (j > 0) out += ',';
      const auto at = static_cast<std::size_t>(j);
      if (!keys_.empty()) out += keys_[at];
      if (at < categories.size() && !categories[at].empty()) {
        out += json_text(categories[at][static_cast<std::size_t>(row[j])]);
      } else {
        append_number(out, row[j]);
      }
    }
    if (output_.table.labels) {
      out += "," + json_text(label_name()) + ":";
      out += output_.table.labels->is_text() ? json_text(label(i)) : label(i);
    }
    out += keys_.empty() ? ']' : '}';
  }

  void libsvm(std::int64_t i, const double* row, std::string& out) const {
    out += output_.table.labels ? label(i) : "0";
    for (std::int64_t j = 0; j < view_.cols(); ++j) {
      // Row 0 names its last column whatever it holds, so that the file says how many there are.
      const bool width = i == 0 && j + 1 == view_.cols();
      if (row[j] == 0 && !std::signbit(row[j]) && !width) continue;
      fmt::format_to(std::back_inserter(out), " {}:", j + 1);
      append_number(out, row[j]);
    }
  }

  void kmeans(std::int64_t i, const double* row, std::string& out) const {
    fmt::format_to(std::back_inserter(out), "{}", i + 1);
    for (std::int64_t j = 0; j < view_.cols(); ++j) {
      out += ' ';
      append_number(out, row[j]);
    }
  }

  [[nodiscard]] std::string label(std::int64_t i) const {
    const Labels& labels = *output_.table.labels;
    return labels.name_of(labels.codes[static_cast<std::size_t>(i)]);
  }

  [[noreturn]] void refuse(std::int64_t row, std::int64_t column, double value) const {
    throw Error(ErrorCode::bad_data, fmt::format("cannot write '{}': row {}, column {} is {}, which {} does not hold",
                                                 output_.path.string(), row, column, value, name_of(output_.format)));
  }

  const TableOutput& output_;
  const TableView& view_;
  std::vector<std::string> keys_;  ///< of JSON, each with its colon; none for rows that are arrays
};

}  // namespace

void write_text_table(const TableOutput& output, PackedFile& file) {
  const TextRows rows(output);
  if (output.format == FileFormat::csv) file.write(rows.csv_header());
  write_rows(output, file,
             [&](std::int64_t begin, std::int64_t end, std::string& out) { rows.encode(begin, end, out); });
}

}  // namespace vicinal::io
