// The best vectors of a space by Rayleigh-Ritz on A X, and what is left to them: shared by the ways to the least
// singular values (smallest.hpp, krylov.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "solver/rows.hpp"
#include "solver/tall.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// Points in tasks of fixed size.
void for_each_point(const Context& ctx, std::int64_t n, const std::function<void(std::int64_t)>& body);
/// Columns [begin, end) of x, in room for `width` of them, the others zero.
Vectors columns(const Context& ctx, const Vectors& x, std::int64_t begin, std::int64_t end, std::int64_t width);
/// Lengths of the columns.
std::vector<double> lengths(const Context& ctx, const Vectors& x);
/// x becomes the `width` vectors of its space, orthonormal as it is, for which A x is least; their singular values.
std::vector<double> best_of(const Context& ctx, const LocalRows& a, Vectors& x, std::int64_t width);
/// M x - x S^2.
Vectors gradient(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x,
                 const std::vector<double>& values);
/// The same in g; ax is used up.
void gradient(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x,
              const std::vector<double>& values, Vectors& ax, Vectors& g);

}  // namespace vicinal::solver
