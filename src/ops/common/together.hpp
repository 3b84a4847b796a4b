// Failing together: what one rank throws, all ranks throw, with the same sentence (contract clause 4, shards).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/exchange.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/error.hpp"

namespace vicinal::ops {

/// What a rank threw; nothing if it did not.
using Failure = std::optional<std::pair<ErrorCode, std::string>>;

/// The exception that is being handled, as a failure.
VICINAL_API Failure current_failure();

/// A vote of all ranks: if some have failed, all throw the error of the lowest of them, with "rank 2: " in front.
VICINAL_API void vote(Communicator& ranks, const Failure& own);

/// What work() throws, as a failure.
template <class Work>
Failure failure_of(const Work& work) {
  try {
    work();
  } catch (...) {
    return current_failure();
  }
  return {};
}

/// One phase: runs work(), which uses no communicator, on every rank, and then votes. A single rank throws its own
/// exception as it is.
template <class Work>
void together(Communicator& ranks, const Work& work) {
  if (ranks.size() == 1) return work();
  vote(ranks, failure_of(work));
}

/// A phase whose result is a sum over all ranks: runs work(), which fills all values but the last, on every rank. The
/// sum and the vote, which takes the last value, are one exchange.
template <class Work>
void together_sum(Communicator& ranks, std::span<std::int64_t> values, const Work& work) {
  if (ranks.size() == 1) return work();
  const Failure failure = failure_of(work);
  values.back() = failure ? 1 : 0;
  ranks.all_reduce_sum(values);
  if (values.back() != 0) vote(ranks, failure);
}

/// Work that every rank does alike, from the same numbers: what it throws, all throw, so that no vote is needed.
template <class Work>
auto alike(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw core::SharedError(error.code(), error.what());
  }
}

/// Rethrows the exception that is being handled, as every rank throws it.
[[noreturn]] VICINAL_API void end_together(Communicator& ranks);

/// Runs work(), which consists of phases and exchanges. What it throws outside of a phase, on this rank alone, ends the
/// group, so that the others throw the same sentence and do not wait. Of several such ranks the first one is named.
template <class Work>
auto by_ranks(Communicator& ranks, const Work& work) {
  if (ranks.size() <= 1) return work();
  try {
    return work();
  } catch (...) {
    end_together(ranks);
  }
}

}  // namespace vicinal::ops
