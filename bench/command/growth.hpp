// `vicinal-bench growth`: how time and memory of each system grow with the rows of a table, its columns, the neighbors
// and the queries.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/growth_fit.hpp"
#include "command/growth_systems.hpp"
#include "command/papers_check.hpp"

namespace vicinal::cli {

/// What was measured of a sweep.
struct MeasuredSweep {
  const GrowthSweep* sweep = nullptr;  ///< of a system that growth_systems() holds
  std::vector<GrowthPoint> points;
  std::string stopped;  ///< a sentence: why sizes are left out; empty: none are
};

struct MeasuredSystem {
  const GrowthSystem* system = nullptr;
  std::vector<MeasuredSweep> sweeps;
  Verdict verdict;
};

/// "n (rows)".
std::string axis_text(const GrowthSystem& system, GrowthAxis axis);
/// "d = 3, k = 20": the sizes that a sweep does not change.
std::string fixed_text(const GrowthSystem& system, const GrowthSweep& sweep);
/// "time grows as n^a (a = 1.02 ± 0.03) from n = 1,000 to 1,000,000"; where no power fits, why.
std::string growth_sentence(const MeasuredSweep& measured);
/// Sizes, and values that `of` takes from each point.
std::vector<double> sizes_of(const MeasuredSweep& measured);
std::vector<double> least_seconds(const MeasuredSweep& measured);
/// Of each point, if all points have it; else empty.
std::vector<double> peak_bytes(const MeasuredSweep& measured);
std::vector<double> counts_of(const MeasuredSweep& measured, const std::string& counter);

}  // namespace vicinal::cli
