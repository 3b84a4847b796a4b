// What becomes of a neighbor graph before it is written for other programs (docs/graphs.md): rows among their own
// neighbors, symmetric lists, the layout of the arrays and the type of the distances.
#pragma once

#include <cstdint>
#include <string>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

struct GraphOutput {
  bool include_self = false;
  std::string symmetric = "no";
  std::string layout = "lists";
  std::string distances = "float64";

  void add_to(const Parser& app);
  /// Refuses options that do not go with queries, the metric or the output's file.
  void check(const std::string& queries, const std::string& metric, const std::string& output) const;
  /// Whether lists are others than those that a search finds.
  [[nodiscard]] bool changes_lists() const { return include_self || symmetric != "no"; }
  /// The name of an option that was given, with two hyphens; empty where none was.
  [[nodiscard]] std::string given() const;

  /// The lists to write.
  [[nodiscard]] NeighborGraph changed(const Context& ctx, const NeighborGraph& graph) const;
  /// How they are written.
  [[nodiscard]] GraphWriteOptions options() const;
  /// Bytes that these take at most, beside a graph of `rows` rows and `neighbors` neighbors.
  [[nodiscard]] std::uint64_t bytes(const Context& ctx, std::int64_t rows, std::int64_t neighbors) const;
};

}  // namespace vicinal::cli
