// The oracle of clauses 22 and 23 of docs/contract.md: samples by the letter; eigenvalues of the whole covariance
// matrix. Shares no code with the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vicinal::reference {

/// The rows of a sample of s of n.
std::vector<std::int64_t> sampled_rows(std::int64_t n, std::int64_t s, std::uint64_t seed);

/// The shares of the variance of rows [n, d] in all directions, descending. O(n d^2 + d^3).
std::vector<double> variance_ratios(std::span<const double> rows, std::int64_t d);

}  // namespace vicinal::reference
