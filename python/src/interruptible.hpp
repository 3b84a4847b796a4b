// Work without the GIL that Ctrl-C can stop. Python runs signal handlers on its main thread only, so while that thread
// waits for the library the work is done by a thread of ours, and the main thread looks for signals every 20 ms. This
// also holds in stages in which the library reports no progress. Calls from other threads compute where they are.
#pragma once

#include <functional>

#include "vicinal/context.hpp"

namespace vicinal::python {

/// Work of fewer operations, about a millisecond, ends before Ctrl-C could matter: it is not worth handing over.
inline constexpr double kFewOperations = 1e6;

/// Runs `work` without the GIL, and throws what it throws. If a signal handler raises meanwhile, `cancel` is set, and
/// when `work` has ended that Python error is thrown instead. Called with the GIL. The thread is started by the first
/// call on the main thread, kept, and started anew in a forked child; handing the work over takes about 10 us.
void run_interruptibly(const std::function<void()>& work, const CancelToken& cancel);

}  // namespace vicinal::python
