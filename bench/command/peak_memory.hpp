// How much memory a call takes at its peak, as the system counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace vicinal::cli {

/// The resident memory that is added while the object lives. Unknown where the system does not let a process begin its
/// peak anew (Linux: /proc/self/clear_refs).
class PeakMemory {
 public:
  PeakMemory();
  /// Bytes at the peak above those when the object was made.
  [[nodiscard]] std::optional<double> bytes() const;

 private:
  std::optional<double> before_;
};

}  // namespace vicinal::cli
