// MPI in this process: starting and ending it.
#pragma once

#include "mpi/group.hpp"

namespace vicinal::mpi {

/// Starts MPI unless it runs; what was started here is ended when the process exits. Throws `Fault` if MPI has ended
/// already, and as `require_mpi`.
void start();
/// Throws `Fault` where MPI does not run, or this thread must not call it.
void require_mpi();
/// Whether MPI runs and has not ended.
bool is_running() noexcept;

/// Groups of this process, which leave when MPI ends.
void enlist(Group* group);
void strike_off(Group* group) noexcept;

/// Ranks remain that do not answer: when MPI ends in this process, it ends them, too.
void abort_at_end() noexcept;

}  // namespace vicinal::mpi
