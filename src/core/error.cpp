// The exit code of each kind of error (contract clause 10; the command turns an Error into its code here and nowhere
// else).
#include "vicinal/error.hpp"

namespace vicinal {

int exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::internal:
      return 1;
    case ErrorCode::invalid_argument:
      return 2;
    case ErrorCode::bad_data:
    case ErrorCode::io:
      return 3;
    case ErrorCode::over_memory:
      return 4;
    case ErrorCode::device_unavailable:
      return 5;
    case ErrorCode::cancelled:
      return 130;
  }
  return 1;
}

}  // namespace vicinal
