// States between two iterations of k-means: when they are handed out, and whether one fits a call that is to go on from
// it (contract clause 12).
#pragma once

#include <chrono>
#include <cstdint>

#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

/// Hands states to the caller's function, where there is one.
class Checkpoints {
 public:
  explicit Checkpoints(const KMeansOptions& options) : options_(options) {}

  /// Whether the next state is to be given.
  [[nodiscard]] bool due() const;
  void give(const KMeansCheckpoint& state);

 private:
  const KMeansOptions& options_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Refuses a state whose arrays do not fit together; sentences begin with `name`. Throws `bad_data` for centers that
/// are not finite.
void check_checkpoint(const KMeansCheckpoint& state, const char* name);
/// Refuses a state that is not of a call with these options.
void check_resume(const KMeansOptions& options, std::int64_t cols, std::int64_t weighted);

}  // namespace vicinal::ops
