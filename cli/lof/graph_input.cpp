// See graph_input.hpp. The arrays come as tables of numbers; ids are whole ones below 2^53.
#include "lof/graph_input.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/input.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

class GraphFile {
 public:
  GraphFile(const Context& ctx, const std::filesystem::path& path)
      : ctx_(ctx), path_(path), info_(describe_file(ctx, path)) {}

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape_of(const std::string& name) const {
    for (const FileInfo::Array& array : info_.arrays) {
      if (array.name == name) return array.shape;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<double> numbers(const std::string& name) const {
    ReadOptions reading;
    reading.member = name;
    const Table table = read_table(ctx_, path_, reading);
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(table.view.rows() * table.view.cols()));
    for (std::int64_t i = 0; i < table.view.rows(); ++i) {
      if (i % 4096 == 0) ctx_.check_cancelled();
      for (std::int64_t j = 0; j < table.view.cols(); ++j) values.push_back(value_at(table.view, i, j));
    }
    return values;
  }
  [[nodiscard]] std::vector<std::int64_t> whole_numbers(const std::string& name) const {
    std::vector<std::int64_t> whole;
    for (const double value : numbers(name)) {
      if (!(std::fabs(value) <= 0x1p53) || value != std::floor(value)) refuse("its " + name + " are not whole numbers");
      whole.push_back(static_cast<std::int64_t>(value));
    }
    return whole;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' is not a graph: {}", path_.string(), why));
  }

 private:
  const Context& ctx_;
  const std::filesystem::path& path_;
  FileInfo info_;
};

}  // namespace

NeighborGraph read_graph(const Context& ctx, const std::filesystem::path& path) {
  const GraphFile file(ctx, path);
  const auto ids = file.shape_of("ids");
  const auto offsets = file.shape_of("offsets");
  if (!ids || ids != file.shape_of("distances")) file.refuse("it has no ids and distances of one shape");
  if (offsets ? ids->size() != 1 || offsets->size() != 1 : ids->size() != 2) {
    file.refuse("its ids are neither a table nor a list with offsets");
  }
  NeighborGraph graph;
  graph.rows = offsets ? (*offsets)[0] - 1 : (*ids)[0];
  graph.k = offsets ? 0 : (*ids)[1];
  graph.table_rows = graph.rows;
  if (graph.rows < 1) file.refuse("it has no rows");
  graph.ids = file.whole_numbers("ids");
  graph.distances = file.numbers("distances");
  if (!offsets) return graph;
  graph.offsets = file.whole_numbers("offsets");
  if (graph.offsets.front() != 0 || graph.offsets.back() != (*ids)[0]) file.refuse("its offsets do not cover its ids");
  for (std::size_t i = 1; i < graph.offsets.size(); ++i) {
    if (graph.offsets[i] < graph.offsets[i - 1]) file.refuse("its offsets do not ascend");
  }
  return graph;
}

}  // namespace vicinal::cli
