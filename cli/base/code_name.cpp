// See code_name.hpp.
#include "base/code_name.hpp"

namespace vicinal::cli {

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::bad_data:
      return "bad_data";
    case ErrorCode::io:
      return "io";
    case ErrorCode::over_memory:
      return "over_memory";
    case ErrorCode::device_unavailable:
      return "device_unavailable";
    case ErrorCode::cancelled:
      return "cancelled";
    default:
      return "internal";
  }
}

}  // namespace vicinal::cli
