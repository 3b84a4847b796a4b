// Ctrl-C and a polite kill (contract clause 11): the first signal sets the cancel token, and the command ends in order
// with exit code 130; the second removes the temporaries and ends at once. A closed pipe is no signal but a write
// error.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {

/// Installs the handler of SIGINT, SIGTERM, SIGHUP and SIGQUIT, but for those that the command was started to ignore,
/// and ignores SIGPIPE. A file that shrinks while it is mapped (SIGBUS) ends the command with one sentence that names
/// it, the temporaries removed. Call once, before any work.
void install_signal_handlers();
/// That sentence is written to stdout, too, as JSON.
void report_lost_files_as_json();

/// The token that the first signal sets; every context of the command carries it.
const CancelToken& interrupt_token();

/// Throws `cancelled` once that token is set; every 65,536th call looks. For comparisons and loops over rows, so that
/// sorting millions of them ends within 100 ms of a signal.
inline void poll_interrupt() {
  constexpr std::uint32_t kCalls = 1 << 16;
  thread_local std::uint32_t calls = 0;
  if (++calls % kCalls == 0 && interrupt_token().cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
}

}  // namespace vicinal::cli
