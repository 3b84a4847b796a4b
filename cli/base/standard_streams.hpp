// Standard input, output and error as the command finds them: perhaps closed, perhaps full.
#pragma once

#include <string_view>

namespace vicinal::cli {

/// Occupies the descriptors 0, 1 and 2 where they are closed, so that no file that is opened later gets their numbers
/// and what is meant for a person ends up in it. Reading from or writing to a stream that was closed still fails, but
/// for words on stderr. Call first.
void occupy_closed_streams();

/// Words for a person. That nobody can read them changes neither the work nor the exit code.
void write_stderr(std::string_view text) noexcept;

}  // namespace vicinal::cli
