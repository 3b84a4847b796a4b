// See soft_rows.hpp.
#include "ops/density/soft_rows.hpp"

#include <algorithm>
#include <cmath>

#include "core/erf.hpp"
#include "core/exact_sum.hpp"
#include "core/infinity.hpp"

namespace vicinal::ops {
namespace {

constexpr double kLeastExponent = -700;

/// e^y for y <= 0; 0 where that is below e^-700.
double exponential(double y) {
  return y < kLeastExponent ? 0 : core::exp_of_negative(y);
}

/// How far away the nearest cluster is, in parts of the distance of this one.
double nearness(double nearest, double distance) {
  return distance == nearest ? 1 : nearest / distance;
}

/// The probability to be in any cluster.
double total(const Branches& branches, double lambda, const SoftRoom& room) {
  const double height = *std::max_element(room.heights.begin(), room.heights.end());
  double death = lambda;
  for (std::size_t label = 0; label < room.heights.size(); ++label) {
    if (room.heights[label] == height) death = std::max(death, branches.death_of_label(label));
  }
  return height == death ? 1 : height / death;
}

/// Weights, whose sum is above 0, to parts of `whole`.
void share(double whole, std::size_t labels, double* weights) {
  core::ExactSum sum;
  for (std::size_t label = 0; label < labels; ++label) sum.add(weights[label]);
  const double all = sum.rounded();
  for (std::size_t label = 0; label < labels; ++label) weights[label] = whole * (weights[label] / all);
}

}  // namespace

void weigh_fitted_row(const Branches& branches, std::size_t cluster, double lambda, SoftRoom& room, double* values) {
  const std::size_t labels = room.heights.size();
  const double death = branches.death(cluster);
  const double nearest = *std::min_element(values, values + labels);
  for (std::size_t label = 0; label < labels; ++label) {
    const double height = room.heights[label];
    room.scores[label] = exponential(height == death ? -1 : -(death / height));
  }
  const double best = *std::max_element(room.scores.begin(), room.scores.end());
  for (std::size_t label = 0; label < labels; ++label) {
    values[label] = nearness(nearest, values[label]) * exponential(room.scores[label] - best);
  }
  share(total(branches, lambda, room), labels, values);
}

void weigh_new_row(const Branches& branches, std::size_t cluster, double lambda, SoftRoom& room, double* values) {
  const std::size_t labels = room.heights.size();
  const double death = branches.death(cluster);
  const double nearest = *std::min_element(values, values + labels);
  for (std::size_t label = 0; label < labels; ++label) {
    const double height = room.heights[label];
    const double rest = death - height;
    if (height == death) {
      room.scores[label] = kInfinity;
    } else {
      room.scores[label] = std::isinf(death) ? 1 : death / rest;
    }
  }
  const double best = *std::max_element(room.scores.begin(), room.scores.end());
  bool has_any = false;
  for (std::size_t label = 0; label < labels; ++label) {
    const double score = room.scores[label];
    const double place = score == best ? 1 : exponential(score - best);
    room.scores[label] = place * place;
    values[label] = std::sqrt(nearness(nearest, values[label])) * room.scores[label];
    has_any = has_any || values[label] > 0;
  }
  if (!has_any) std::copy(room.scores.begin(), room.scores.end(), values);
  share(total(branches, lambda, room), labels, values);
}

}  // namespace vicinal::ops
