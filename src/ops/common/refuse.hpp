// The error of an argument outside its domain.
#pragma once

#include <string>

#include "vicinal/error.hpp"

namespace vicinal {

/// Throws `invalid_argument` with the sentence, which names the argument.
[[noreturn]] inline void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace vicinal
