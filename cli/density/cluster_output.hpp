// What `vicinal dbscan`, `hdbscan` and `optics` write and print of clusters with noise.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "density/density_command.hpp"

namespace vicinal::cli {

/// A value of each row, as a column of a .csv and an array of an .npz.
struct RowValues {
  std::string name;                             ///< of the column; empty: an array alone
  std::string array;                            ///< of the array; empty: a column alone
  std::span<const double> numbers = {};         ///< either these
  std::span<const std::uint8_t> switches = {};  ///< or these, 0 or 1
  std::span<const std::int64_t> integers = {};  ///< or these
  std::span<const std::int64_t> rows = {};      ///< or these, numbers of rows or -1: none
};

/// .csv: row,label and the values; .npz: labels and the values, rows and ids; .npy: labels.
void write_clusters(const Context& ctx, const std::string& output, const DensityRows& rows,
                    const std::vector<std::int64_t>& labels, const std::vector<RowValues>& values);

/// A table of the clusters' numbers, sizes and one number more, if there is one (`name` is empty: none).
std::string clusters_text(const std::vector<std::int64_t>& sizes, std::int64_t noise, const std::string& name,
                          const std::vector<double>& more);

}  // namespace vicinal::cli
