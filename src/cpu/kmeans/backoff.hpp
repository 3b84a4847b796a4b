// Exponential backoff: what did not pay is tried again, after longer and longer pauses.
#pragma once

#include <cstdint>

namespace vicinal::cpu {

class Backoff {
 public:
  explicit Backoff(std::int64_t first_pause) : first_pause_(first_pause), next_pause_(first_pause) {}

  /// Call once a turn: whether it belongs to a pause.
  [[nodiscard]] bool waits() noexcept {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  /// This turn did not pay. A pause begins with the next one; it is twice as long as the last.
  void fail() noexcept {
    left_ = next_pause_;
    next_pause_ *= 2;
  }
  void reset() noexcept { *this = Backoff(first_pause_); }

 private:
  std::int64_t first_pause_;
  std::int64_t next_pause_;
  std::int64_t left_ = 0;  // turns of the pause
};

}  // namespace vicinal::cpu
