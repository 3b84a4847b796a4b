// See carry.hpp.
#include "reference/carry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "reference/kmeans.hpp"

namespace vicinal::reference {

CarriedNumbers carry(const Match& match, std::span<const double> values, CarryRule rule) {
  CarriedNumbers found;
  std::vector<double> balance;
  for (const double value : values) {
    if (!std::isnan(value)) balance.push_back(value);
  }
  for (std::size_t j = 0; j < match.b.size(); ++j) {
    std::vector<double> terms;
    std::vector<double> shares;
    std::vector<double> used;
    for (const MatchPair& pair : match.pairs) {
      if (static_cast<std::size_t>(pair.overlap.b) != j || pair.overlap.area == 0) continue;
      const double value = values[static_cast<std::size_t>(pair.overlap.a)];
      if (std::isnan(value)) continue;
      terms.push_back(value * (rule == CarryRule::sum ? pair.share_a : pair.share_b));
      shares.push_back(pair.share_b);
      used.push_back(value);
    }
    const double share = exact_sum(shares);
    found.shares.push_back(share > 1 && share - 1 <= 1e-9 ? 1 : share);
    if (share == 0) {
      found.values.push_back(std::numeric_limits<double>::quiet_NaN());
    } else if (rule == CarryRule::sum) {
      found.values.push_back(exact_sum(terms));
      balance.push_back(-found.values.back());
    } else {
      const double mean = exact_sum(terms) / share;
      const double least = *std::min_element(used.begin(), used.end());
      const double most = *std::max_element(used.begin(), used.end());
      found.values.push_back(mean < least ? least : mean > most ? most : mean);
    }
  }
  if (rule == CarryRule::sum) found.left = exact_sum(balance);
  return found;
}

CarriedCodes carry_codes(const Match& match, std::span<const std::int64_t> codes) {
  CarriedCodes found;
  for (std::size_t j = 0; j < match.b.size(); ++j) {
    std::map<std::int64_t, std::vector<double>> shares;
    for (const MatchPair& pair : match.pairs) {
      const std::int64_t code = codes[static_cast<std::size_t>(pair.overlap.a)];
      if (static_cast<std::size_t>(pair.overlap.b) == j && code >= 0) shares[code].push_back(pair.share_b);
    }
    found.codes.push_back(-1);
    found.shares.push_back(0);
    for (const auto& [code, terms] : shares) {
      if (exact_sum(terms) <= found.shares.back()) continue;
      found.codes.back() = code;
      found.shares.back() = exact_sum(terms);
    }
    if (found.shares.back() > 1 && found.shares.back() - 1 <= 1e-9) found.shares.back() = 1;
  }
  return found;
}

}  // namespace vicinal::reference
