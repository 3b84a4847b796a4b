// The second rung of the fused search's ladder: queries whose neighbors are much nearer than the table is wide. Queries
// that are near each other are taken together; all that may be near any of them lies in one ball around the first, and
// a screen that is centered there and scaled to the ball tells apart what the table's own center cannot. (ball.cu)
#pragma once

#include <cstdint>

#include "cuda/nearest/screen/chosen.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// Queries that wait for an answer, in device memory: their numbers, and keys that no answer of theirs exceeds.
struct Waiting {
  Buffer<std::int64_t> numbers;
  Buffer<double> limits;

  Waiting(const Engine& engine, std::int64_t capacity) : numbers(engine, capacity), limits(engine, capacity) {}
};

struct Ball {
  std::int64_t queries = 0;  ///< how many belong to it
  double radius = 0;         ///< no answer of theirs is farther from the center; not finite: none is known
};

/// Takes the first of `count` waiting queries as a center (written to `centre`, [d]), and moves those that belong to
/// its ball to the front. At least the first does. Euclidean keys. Waits for the device.
Ball next_ball(const Engine& engine, const Rows& queries, bool narrow, Waiting& waiting, std::int64_t first,
               std::int64_t count, double* centre);
/// A radius about `centre` (on the device) beyond which few of the chosen rows lie: several times that of a ball that
/// holds fifteen of sixteen rows of a sample. Waits for the device.
double usual_radius(const Engine& engine, const Rows& table, const Chosen& chosen, const double* centre);
/// flags[i]: whether the i-th chosen row may lie in the ball.
void flag_ball(const Engine& engine, const Rows& table, const Chosen& chosen, const double* centre, double radius,
               std::uint8_t* flags);

}  // namespace vicinal::cuda
