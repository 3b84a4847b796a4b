// The command `vicinal` as a function: of its program, and of the Python package, which brings it along.
#pragma once

namespace vicinal::cli {

/// Runs the command and returns its exit code. It sets handlers of signals and keeps them: the process is the
/// command's.
int run_vicinal(int argc, char** argv);

}  // namespace vicinal::cli
