// Errors: one exception type with a code and one sentence that says what is wrong. Contract clause 10: the library
// never prints, aborts or exits.
#pragma once

#include <stdexcept>
#include <string>

#if defined(_WIN32)
#define VICINAL_API
#else
#define VICINAL_API __attribute__((visibility("default")))
#endif

namespace vicinal {

/// The kind of an error. It determines the exit code of the command (`exit_code`).
enum class ErrorCode {
  internal,            ///< a defect of vicinal itself; exit 1
  invalid_argument,    ///< an argument outside its domain (k = 0, unknown metric, other column count); exit 2
  bad_data,            ///< a file or a value that cannot be used (NaN, ragged row, wrong header); exit 3
  io,                  ///< a file that cannot be opened, read or written (missing, disk full); exit 3
  over_memory,         ///< the job needs more than the memory limit; exit 4
  device_unavailable,  ///< CUDA was requested, but cannot be used; exit 5
  cancelled,           ///< the cancel token was set; exit 130
};

/// The command's exit code for an error: 1, 2, 3, 3, 4, 5, 130 in the order of `ErrorCode`.
VICINAL_API int exit_code(ErrorCode code) noexcept;

/// The only exception type that the library itself throws. `what()` is one sentence that names the argument and, if
/// there is one, file, row and column. Rows and columns count from 0, lines of text files from 1.
class VICINAL_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace vicinal
