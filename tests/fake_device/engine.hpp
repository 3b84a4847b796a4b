// One of the fake plug-in's devices.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "vicinal/error.hpp"

namespace vicinal::plugin {

struct Engine {
  std::int32_t device = 0;
  std::uint64_t limit = 0;
  std::atomic<std::uint64_t> resident = 0;  // plans of other callers read it
  std::uint64_t taken = 0;                  // by the call that runs, beside what is resident
  inline static std::atomic<std::uint64_t> most_taken = 0;

  [[nodiscard]] std::uint64_t left() const { return limit - std::min(limit, resident.load()); }
  /// Whether half of the limit has room for what stays.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const { return resident + bytes <= limit / 2; }
};

[[noreturn]] inline void refuse_memory(std::uint64_t needed, std::uint64_t left) {
  throw Error(ErrorCode::over_memory, "the call needs " + std::to_string(needed) + " bytes of device memory, but " +
                                          std::to_string(left) + " are left within the limit");
}

/// Memory of a device that a call has for a while.
class Taken {
 public:
  Taken(Engine& engine, std::uint64_t bytes) : engine_(engine), bytes_(bytes) {
    const std::uint64_t taken = engine.taken + bytes;
    if (taken > engine.left()) refuse_memory(taken, engine.left());
    engine.taken = taken;
    if (taken > Engine::most_taken) Engine::most_taken = taken;
  }
  ~Taken() { engine_.taken -= bytes_; }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  Engine& engine_;
  std::uint64_t bytes_;
};

}  // namespace vicinal::plugin
