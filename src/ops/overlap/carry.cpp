// See vicinal/carry.hpp. Pairs are put in the order of the features of b; each feature's sums are then its own task's.
#include "vicinal/carry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kFeaturesOfATask = 1024;

// Features of a that meet along a border may cover a strip of it twice once their coordinates are rounded, where a
// corner of one lies on an edge of the other. In meters of a plane of half the earth's width (2e7), a coordinate is
// within 2e-9 of what was projected, and the projection within 1e-9 (docs/design/maps.md). So a border of length L in a
// feature of area A adds at most 3e-9 L / A: less than 1e-9 where there is less than a third of a meter of it in a
// square meter.
constexpr double kRounding = 1e-9;

double reported(double share) {
  return share > 1 && share - 1 <= kRounding ? 1 : share;
}

/// Pairs that share area, by (b, a).
struct PairsOfB {
  std::vector<std::int64_t> pairs;    // numbers of Match::pairs
  std::vector<std::int64_t> offsets;  // [features of b + 1]
};

PairsOfB pairs_of_b(const Context& ctx, const Match& match, std::uint64_t result) {
  const std::size_t n = match.b.size();
  core::require_memory(ctx, (match.pairs.size() + 2 * n + 2) * sizeof(std::int64_t) + n * result, "carry");
  PairsOfB found;
  found.offsets.assign(n + 1, 0);
  for (const MatchPair& pair : match.pairs) {
    if (pair.overlap.area > 0) ++found.offsets[static_cast<std::size_t>(pair.overlap.b) + 1];
  }
  for (std::size_t j = 0; j < n; ++j) found.offsets[j + 1] += found.offsets[j];
  ctx.check_cancelled();
  std::vector<std::int64_t> next(found.offsets.begin(), found.offsets.end() - 1);
  found.pairs.resize(static_cast<std::size_t>(found.offsets.back()));
  for (std::size_t k = 0; k < match.pairs.size(); ++k) {
    const Overlap& overlap = match.pairs[k].overlap;
    if (!(overlap.area > 0)) continue;
    found.pairs[static_cast<std::size_t>(next[static_cast<std::size_t>(overlap.b)]++)] = static_cast<std::int64_t>(k);
  }
  return found;
}

/// `body(j, pairs of j)` for each feature j of b.
template <class Body>
void for_each_feature(const Context& ctx, const Match& match, const PairsOfB& of_b, const Body& body) {
  const auto n = static_cast<std::int64_t>(match.b.size());
  core::parallel_for(ctx, (n + kFeaturesOfATask - 1) / kFeaturesOfATask, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t j = task * kFeaturesOfATask; j < std::min(n, (task + 1) * kFeaturesOfATask); ++j) {
      if (ctx.cancel_token().cancelled()) return;
      const auto at = static_cast<std::size_t>(j);
      const auto first = static_cast<std::size_t>(of_b.offsets[at]);
      body(at, std::span(of_b.pairs).subspan(first, static_cast<std::size_t>(of_b.offsets[at + 1]) - first));
    }
  });
  ctx.check_cancelled();
}

void check_length(const char* what, std::size_t given, std::size_t wanted) {
  if (given == wanted) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("carry: {} {}: must be one a feature of a, {}", given, what, wanted));
}

}  // namespace

CarriedNumbers carry(const Context& ctx, const Match& match, std::span<const double> values, CarryRule rule) try {
  const core::Entry entry;
  check_length("values", values.size(), match.a.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isinf(values[i])) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("carry: value {} is infinite: must be finite or NaN", i));
  }
  const PairsOfB of_b = pairs_of_b(ctx, match, 2 * sizeof(double));
  CarriedNumbers found;
  found.values.assign(match.b.size(), std::numeric_limits<double>::quiet_NaN());
  found.shares.assign(match.b.size(), 0);
  for_each_feature(ctx, match, of_b, [&](std::size_t j, std::span<const std::int64_t> pairs) {
    core::ExactSum total;
    core::ExactSum share;
    double least = HUGE_VAL;
    double most = -HUGE_VAL;
    for (const std::int64_t k : pairs) {
      const MatchPair& pair = match.pairs[static_cast<std::size_t>(k)];
      const double value = values[static_cast<std::size_t>(pair.overlap.a)];
      if (std::isnan(value)) continue;
      total.add(value * (rule == CarryRule::sum ? pair.share_a : pair.share_b));
      share.add(pair.share_b);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const double sum = share.rounded();
    found.shares[j] = reported(sum);
    if (!(sum > 0)) return;
    found.values[j] = rule == CarryRule::sum ? total.rounded() : std::clamp(total.rounded() / sum, least, most);
  });
  for (std::size_t j = 0; j < found.values.size(); ++j) {
    if (!std::isinf(found.values[j])) continue;
    throw Error(ErrorCode::bad_data, fmt::format("carry: the sum of feature {} of b is beyond float64", j));
  }
  if (rule == CarryRule::mean) return found;
  core::ExactSum left;
  for (const double value : values) {
    if (!std::isnan(value)) left.add(value);
  }
  for (const double value : found.values) {
    if (!std::isnan(value)) left.add(-value);
  }
  found.left = left.rounded();
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

CarriedCodes carry_codes(const Context& ctx, const Match& match, std::span<const std::int64_t> codes) try {
  const core::Entry entry;
  check_length("codes", codes.size(), match.a.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] >= -1) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("carry: code {} is {}: must be at least 0, or -1 for none", i, codes[i]));
  }
  const PairsOfB of_b = pairs_of_b(ctx, match, sizeof(std::int64_t) + sizeof(double));
  CarriedCodes found;
  found.codes.assign(match.b.size(), -1);
  found.shares.assign(match.b.size(), 0);
  for_each_feature(ctx, match, of_b, [&](std::size_t j, std::span<const std::int64_t> pairs) {
    std::vector<std::pair<std::int64_t, double>> parts;  // code and share
    for (const std::int64_t k : pairs) {
      const MatchPair& pair = match.pairs[static_cast<std::size_t>(k)];
      const std::int64_t code = codes[static_cast<std::size_t>(pair.overlap.a)];
      if (code >= 0) parts.emplace_back(code, pair.share_b);
    }
    std::sort(parts.begin(), parts.end());
    for (std::size_t first = 0; first < parts.size();) {
      const std::int64_t code = parts[first].first;
      core::ExactSum sum;
      for (; first < parts.size() && parts[first].first == code; ++first) sum.add(parts[first].second);
      const double share = sum.rounded();
      if (!(share > found.shares[j])) continue;
      found.shares[j] = share;
      found.codes[j] = code;
    }
    found.shares[j] = reported(found.shares[j]);
  });
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
