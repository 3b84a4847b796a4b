// The oracle of missing values, by the letter of docs/contract.md, clause 24: every pair of rows, all keys sorted.
// Shares no code with the library.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vicinal::reference {

/// Rows [m, cols] with their missing values (NaN) filled from `fitted` [n, cols], both row-major. `filling`: "mean",
/// "median" or "knn". Columns in `texts` are neither compared nor filled.
std::vector<double> impute(const std::vector<double>& fitted, std::size_t cols, const std::vector<double>& rows,
                           const std::string& filling, std::size_t k, const std::vector<std::size_t>& texts = {});

}  // namespace vicinal::reference
