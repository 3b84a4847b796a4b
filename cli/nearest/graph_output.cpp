// See graph_output.hpp.
#include "nearest/graph_output.hpp"

#include <fmt/core.h>

#include "vicinal/symmetrize.hpp"

namespace vicinal::cli {
namespace {

[[noreturn]] void refuse_graph_option(const std::string& option, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", option, why));
}

}  // namespace

void GraphOutput::add_to(const Parser& app) {
  const std::string group = "Graphs for other programs";
  app.add_flag("--include-self", include_self,
               "List each row first among its own neighbors, at distance 0; it counts as one of the K of -k")
      .group(group);
  app.add_choice("--symmetric", symmetric, {"no", "union", "mutual"},
                 "Make the lists symmetric; union: pairs that either row lists; mutual: pairs that both list")
      .group(group);
  app.add_choice("--layout", layout, {"lists", "scipy"},
                 "Arrays of the .npz; lists: ids, distances, offsets; scipy: a matrix for scipy.sparse.load_npz")
      .group(group);
  app.add_choice("--distances", distances, {"float64", "float32"}, "Type of the distances in the .npz").group(group);
}

std::string GraphOutput::given() const {
  if (include_self) return "--include-self";
  if (symmetric != "no") return "--symmetric";
  if (layout != "lists") return "--layout";
  return distances != "float64" ? "--distances" : "";
}

void GraphOutput::check(const std::string& queries, const std::string& metric, const std::string& output) const {
  const std::string option = given();
  if (changes_lists() && !queries.empty()) {
    refuse_graph_option(option, "needs the graph of a table within itself; leave out QUERIES");
  }
  if (include_self && metric == "inner_product") {
    refuse_graph_option("--include-self", "by inner_product a row is not its own nearest; choose another --metric");
  }
  if ((layout != "lists" || distances != "float64") && !output.ends_with(".npz")) {
    refuse_graph_option(layout != "lists" ? "--layout" : "--distances", "needs an output file, -o FILE.npz");
  }
}

NeighborGraph GraphOutput::changed(const Context& ctx, const NeighborGraph& graph) const {
  if (symmetric == "no") return with_self(ctx, graph);
  NeighborGraph made = symmetrize(ctx, graph, symmetry_from(symmetric));
  return include_self ? with_self(ctx, made) : made;
}

GraphWriteOptions GraphOutput::options() const {
  return {.layout = layout == "scipy" ? GraphLayout::scipy : GraphLayout::lists,
          .distances = distances == "float32" ? DType::float32 : DType::float64};
}

std::uint64_t GraphOutput::bytes(const Context& ctx, std::int64_t rows, std::int64_t neighbors) const {
  std::uint64_t bytes = 0;
  if (symmetric != "no") {
    bytes += symmetrize_bytes(ctx, rows, neighbors, symmetry_from(symmetric));
    neighbors *= symmetric == "union" ? 2 : 1;
  }
  const auto size = static_cast<std::uint64_t>(neighbors + (include_self ? rows : 0));
  if (include_self) bytes += 16 * size + 8 * (static_cast<std::uint64_t>(rows) + 1);
  if (layout != "lists") bytes += 4 * size + 12 * (static_cast<std::uint64_t>(rows) + 1);
  return bytes + (distances != "float64" ? 4 * size : 0);
}

}  // namespace vicinal::cli
