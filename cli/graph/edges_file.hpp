// Edges of a bipartite graph from a file: two columns of ids, of any kind, and one of weights if there is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

/// How columns are found, and which edges count.
struct EdgesFile {
  std::string path;
  std::string a = "0";  ///< name of a column, or its position
  std::string b = "1";
  std::string weight;  ///< empty: the third column of a file of three
  double above = -1;   ///< edges of smaller and of this weight are left out, but their members are not; below 0: none
  InputOptions input;  ///< delimiter and header
};

/// Members are numbered in the order of their ids' bytes.
struct NamedEdges {
  std::vector<std::string> ids_a;  ///< as the file has them
  std::vector<std::string> ids_b;
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  std::vector<double> weights;  ///< none where the file has none

  [[nodiscard]] BipartiteEdges edges() const {
    return {static_cast<std::int64_t>(ids_a.size()), static_cast<std::int64_t>(ids_b.size()), a, b, weights};
  }
};

/// How the table of ids and weights is read; `info` describes the file.
ReadOptions edges_reading(const FileInfo& info, const EdgesFile& file);

/// `info` describes the file. Throws what `read_table` throws, and `bad_data` naming file, row and column of a weight
/// below 0.
NamedEdges read_edges(const Context& ctx, const FileInfo& info, const EdgesFile& file);

}  // namespace vicinal::cli
