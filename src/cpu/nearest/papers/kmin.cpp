// k-min search (the GS paper, for small k): the rows play a tournament in pairs, round by round, until the nearest is
// left; then those that remain play again, k times. The paper folds a vector in halves on as many threads; here the
// winners of all rounds are kept, so that a row taken out is replaced by the games on its own path alone. Cost: n
// comparisons for the first, log2 n for each of the others.
#include <limits>

#include "cpu/nearest/papers/product.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr float kTaken = -std::numeric_limits<float>::infinity();

}  // namespace

KMinSearch::KMinSearch(float* scores, std::int64_t n, Scratch& scratch) : scores_(scores), n_(n) {
  scratch.chosen.resize(static_cast<std::size_t>(n));
  winners_ = scratch.chosen.data();
  for (std::int64_t node = n - 1; node >= 1; --node) play(node);
}

void KMinSearch::play(std::int64_t node) {
  const std::int64_t left = winner(2 * node);
  const std::int64_t right = winner(2 * node + 1);
  winners_[node] = scores_[right] > scores_[left] ? right : left;
}

bool KMinSearch::next(Ranked& best) {
  const std::int64_t row = winner(1);
  best = {scores_[row], row};
  scores_[row] = kTaken;
  for (std::int64_t node = (row + n_) / 2; node >= 1; node /= 2) play(node);
  return best.score > kTaken;
}

}  // namespace vicinal::cpu::papers
