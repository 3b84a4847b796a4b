// Errors: one type, one code a kind, one sentence that names what is wrong.
// Contract clause 10: the library never prints, aborts or exits.
#pragma once

#include <stdexcept>
#include <string>

#if defined(_WIN32)
#define VICINAL_API
#else
#define VICINAL_API __attribute__((visibility("default")))
#endif

namespace vicinal {

/// What kind of thing went wrong. The command's exit code follows from it (`exit_code`).
enum class ErrorCode {
  internal,            ///< a defect of vicinal itself; exit 1
  invalid_argument,    ///< an argument outside its domain (k = 0, unknown metric, other column count); exit 2
  bad_data,            ///< a file or a value that cannot be used (NaN, ragged row, lying header); exit 3
  io,                  ///< a file that cannot be opened, read or written (missing, disk full); exit 3
  over_memory,         ///< the job needs more than the memory limit; exit 4
  device_unavailable,  ///< CUDA asked for and not there; exit 5
  cancelled,           ///< the cancel token was set; exit 130
};

/// The command's exit code for an error: 1, 2, 3, 3, 4, 5, 130 in the order of `ErrorCode`.
VICINAL_API int exit_code(ErrorCode code) noexcept;

/// The only exception the library throws on purpose. `what()` is one sentence naming the argument,
/// and where there is one the file, row and column (both counted from 0 for tables, lines from 1 for text files).
class VICINAL_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace vicinal
