// The systems whose growth `vicinal-bench growth` measures: what a call of each does, on which data, and for which
// sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/papers_check.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

enum class GrowthAxis : std::uint8_t { n, d, k, m };
/// "n".
std::string letter_of(GrowthAxis axis);

/// The sizes of a call; 0: the system has no such size.
struct GrowthSizes {
  std::int64_t n = 0;
  std::int64_t d = 0;
  std::int64_t k = 0;
  std::int64_t m = 0;

  [[nodiscard]] std::int64_t of(GrowthAxis axis) const;
  [[nodiscard]] GrowthSizes with(GrowthAxis axis, std::int64_t size) const;
};

/// What a call says of itself.
struct GrowthCall {
  std::map<std::string, double> counts = {};  ///< counters of the library, by name
  std::map<std::string, double> parts = {};   ///< seconds of parts
  std::string how = {};                       ///< method or solver
  std::optional<double> seconds = {};         ///< if not the time of the whole call counts, but that of a part
};

/// Data of some sizes, and the call that is timed. Its answer is kept until the next call.
struct GrowthJob {
  std::function<GrowthCall()> call;
  std::function<Verdict()> check;  ///< of the last answer, against src/reference; O(n^2) or more
  std::function<void()> spoil;     ///< changes the last answer, so that the check must find it
};

struct GrowthSweep {
  GrowthAxis axis = GrowthAxis::n;
  GrowthSizes sizes;  ///< but for that of the axis
  std::vector<std::int64_t> along;
};

struct GrowthSystem {
  std::string name;                           ///< "knn-fused"
  std::string title;                          ///< what is timed
  std::map<GrowthAxis, std::string> meaning;  ///< of the sizes that it has: "rows"
  GrowthJob (*make)(const Context&, const GrowthSizes&);
  std::vector<GrowthSweep> sweeps;  ///< the first begins with sizes whose answer is checked
};

const std::vector<GrowthSystem>& growth_systems();

}  // namespace vicinal::cli
