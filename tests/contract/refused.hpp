// What must be refused, by which code, in which words.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "vicinal/error.hpp"

namespace vicinal::contract {

/// Expects an error of that code, whose sentence has `part` in it.
inline void refused(const std::function<void()>& work, ErrorCode code, const std::string& part) {
  try {
    work();
    FAIL() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace vicinal::contract
