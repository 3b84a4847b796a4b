// Backoff: pauses of 4, 8, 16 turns.
#include "cpu/kmeans/backoff.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vicinal::cpu {
namespace {

std::string turns(Backoff& backoff, int count) {
  std::string text;
  for (int turn = 0; turn < count; ++turn) {
    if (backoff.waits()) {
      text += '.';
    } else {
      text += 'x';
      backoff.fail();
    }
  }
  return text;
}

TEST(KMeansBackoff, PausesAreTwiceAsLongEachTime) {
  Backoff backoff(4);
  EXPECT_EQ(turns(backoff, 32), "x....x........x................x");
  backoff.reset();
  EXPECT_EQ(turns(backoff, 7), "x....x.");
}

TEST(KMeansBackoff, TurnsThatPayAreFollowedByNone) {
  Backoff backoff(2);
  for (int turn = 0; turn < 5; ++turn) EXPECT_FALSE(backoff.waits());
  backoff.fail();
  EXPECT_TRUE(backoff.waits());
  EXPECT_TRUE(backoff.waits());
  EXPECT_FALSE(backoff.waits());
}

}  // namespace
}  // namespace vicinal::cpu
