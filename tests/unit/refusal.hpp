// Errors as tests expect them: by code, and the sentence to look at.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "vicinal/error.hpp"

namespace vicinal {

/// The sentence of the error that `call` throws, which must have the code.
template <class Call>
std::string refusal(ErrorCode code, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
}

}  // namespace vicinal
