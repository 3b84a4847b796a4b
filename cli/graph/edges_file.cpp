// See edges_file.hpp.
#include "graph/edges_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/input.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

/// Where a column stands among `names`, or at the position that `wanted` is.
std::int64_t position_of(const std::vector<std::string>& names, std::int64_t columns, const std::string& wanted,
                         const std::string& file) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return found - names.begin();
  const bool digits = !wanted.empty() && wanted.size() < 10 && wanted.find_first_not_of("0123456789") == wanted.npos;
  if (digits && std::stoll(wanted) < columns) return std::stoll(wanted);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' has no column '{}': it has {}, numbered from 0", file, wanted, columns));
}

struct Columns {
  std::int64_t a = 0;
  std::int64_t b = 1;
  std::optional<std::int64_t> weight;
};

Columns columns_of(const FileInfo& info, const EdgesFile& file) {
  if (info.format != FileFormat::csv && info.format != FileFormat::json_lines) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}': edges are read from delimited text and JSON lines", file.path));
  }
  const std::int64_t count = info.arrays.at(0).shape.at(1);
  Columns columns;
  // An index of the rows holds no ids.
  const std::int64_t first = info.has_index && file.a == "0" && file.b == "1" ? 1 : 0;
  columns.a = first == 1 ? 1 : position_of(info.columns, count, file.a, file.path);
  columns.b = first == 1 ? 2 : position_of(info.columns, count, file.b, file.path);
  if (columns.a == columns.b) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--a and --b: are both column {}", columns.a));
  }
  if (!file.weight.empty()) {
    columns.weight = position_of(info.columns, count, file.weight, file.path);
  } else if (count - first == 3) {
    columns.weight = 3 * first + 3 - columns.a - columns.b;
  }
  if (columns.weight && (*columns.weight == columns.a || *columns.weight == columns.b)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--weight: column {} holds ids", *columns.weight));
  }
  if (!columns.weight && file.above >= 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--above: '{}' has no column of weights", file.path));
  }
  return columns;
}

/// Only these columns, ids as texts.
ReadOptions options_of(const Columns& columns, const FileInfo& info, const EdgesFile& file) {
  ReadOptions options = read_options(file.input);
  const std::vector<std::string> references = references_of(info);
  for (std::size_t at = 0; at < references.size(); ++at) {
    const auto j = static_cast<std::int64_t>(at);
    if (j == columns.a || j == columns.b) {
      options.text.push_back(references[at]);
    } else if (!columns.weight || j != *columns.weight) {
      options.drop.push_back(references[at]);
    }
  }
  return options;
}

}  // namespace

ReadOptions edges_reading(const FileInfo& info, const EdgesFile& file) {
  return options_of(columns_of(info, file), info, file);
}

NamedEdges read_edges(const Context& ctx, const FileInfo& info, const EdgesFile& file) {
  const Columns columns = columns_of(info, file);
  const std::int64_t count = info.arrays.at(0).shape.at(1);
  Table table = read_rows(ctx, file.path, options_of(columns, info, file));
  // Columns stay in the file's order.
  const auto rank = [&](std::int64_t column) {
    std::int64_t before = 0;
    for (const std::int64_t other : {columns.a, columns.b, columns.weight.value_or(count)}) before += other < column;
    return before;
  };
  const std::int64_t at_a = rank(columns.a);
  const std::int64_t at_b = rank(columns.b);
  NamedEdges edges;
  edges.ids_a = std::move(table.categories.at(static_cast<std::size_t>(at_a)));
  edges.ids_b = std::move(table.categories.at(static_cast<std::size_t>(at_b)));
  const auto rows = static_cast<std::size_t>(table.view.rows());
  edges.a.reserve(rows);
  edges.b.reserve(rows);
  if (columns.weight) edges.weights.reserve(rows);
  for (std::int64_t i = 0; i < table.view.rows(); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    double weight = 0;
    if (columns.weight) {
      weight = value_at(table.view, i, rank(*columns.weight));
      if (!(weight >= 0)) {
        throw Error(ErrorCode::bad_data, fmt::format("'{}': row {}, column {}: weight {} is below 0", file.path, i,
                                                     *columns.weight, weight));
      }
      if (weight <= file.above) continue;
      edges.weights.push_back(weight);
    }
    edges.a.push_back(static_cast<std::int64_t>(value_at(table.view, i, at_a)));
    edges.b.push_back(static_cast<std::int64_t>(value_at(table.view, i, at_b)));
  }
  return edges;
}

}  // namespace vicinal::cli
