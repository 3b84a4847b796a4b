// What an embedding will cost, before its neighbors are known: small samples of the table are embedded, and what their
// factors and products take is carried on to all rows by the power of the size by which it grew among the samples.
#pragma once

#include <cstdint>
#include <string>

#include "vicinal/lle.hpp"

namespace vicinal::ops {

struct LleForecast {
  LleSolver solver = LleSolver::automatic;  ///< that will find the eigenvectors; `automatic`: not foreseen
  double seconds = 0;                       ///< after the search, on the host; 0: not foreseen
  std::uint64_t bytes = 0;                  ///< host memory with which it runs at that speed
  std::string warning;                      ///< what a memory limit costs; empty: nothing
};

/// `least`: bytes that any solver needs. Takes as long as an embedding of some thousand rows.
LleForecast forecast_lle(const Context& ctx, const TableView& table, const LleOptions& options, std::uint64_t least);

/// Seconds on the host with a factor of such a fill and work, without the search.
struct DirectCost {
  double fill = 0;
  double flops = 0;
};
double direct_seconds(const Context& ctx, const TableView& table, const LleOptions& options, const DirectCost& cost);

}  // namespace vicinal::ops
