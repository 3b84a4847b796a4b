// Sessions: contexts kept between calls, because a context starts threads and looks at the machine's memory. A session
// serves one call at a time, so that what cancels a call cancels no other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vicinal/context.hpp"

namespace vicinal::python {

/// Where a call runs and within which limits.
struct Place {
  std::string device = "auto";  ///< "auto", "cpu", "cuda", "cuda:1", "cuda:0,1"
  std::int64_t threads = 0;     ///< 0: all cores, at most OMP_NUM_THREADS where that is set
  std::uint64_t memory_limit = 0;
  std::uint64_t device_memory_limit = 0;
};

/// A context on loan from the sessions that wait for the next call; it goes back unless its call was cancelled.
class Session {
 public:
  /// Throws what Context::cpu, cuda and automatic throw, and `invalid_argument` for another name of a device.
  explicit Session(Place place);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Context& context() const noexcept { return *context_; }
  /// Whom the context tells of progress; nobody by default.
  void tell(ProgressFn progress);

  struct State;

 private:
  std::unique_ptr<State> state_;
  std::optional<Context> context_;  // that of the state, within the limit of this call
};

/// The threads of a call that names none, by OMP_NUM_THREADS and threadpoolctl; 0: all cores.
int thread_limit();

/// Drops the sessions that wait.
void forget_sessions();

}  // namespace vicinal::python

// How threadpoolctl finds the threads that a call has where it names none. A limit holds for the process; below 1:
// none.
extern "C" [[gnu::visibility("default")]] int vicinal_get_num_threads();
extern "C" [[gnu::visibility("default")]] void vicinal_set_num_threads(int threads);
