// See together.hpp. The vote is one number a rank: 0, or the more the lower the rank that failed is.
#include "ops/common/together.hpp"

#include <array>
#include <cstdint>
#include <new>

#include "core/memory.hpp"

namespace vicinal::ops {
namespace {

std::string with_rank(int rank, const std::string& sentence) {
  return "rank " + std::to_string(rank) + ": " + sentence;
}

}  // namespace

// What is none of the library's errors was thrown by a callback of the caller's.
Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {{error.code(), error.what()}};
  } catch (const std::bad_alloc&) {
    try {
      core::refuse_allocation();
    } catch (const Error& error) {
      return {{error.code(), error.what()}};
    }
  } catch (const std::exception& error) {
    return {{ErrorCode::io, error.what()}};
  } catch (...) {
    return {{ErrorCode::io, "an exception that says nothing"}};
  }
}

void vote(Communicator& ranks, const Failure& own) {
  std::array<std::int64_t, 1> lowest = {own ? ranks.size() - ranks.rank() : 0};
  ranks.all_reduce_max(lowest);
  if (lowest[0] == 0) return;
  const int failed = ranks.size() - static_cast<int>(lowest[0]);
  std::array<std::int64_t, 2> shape = {};
  if (failed == ranks.rank()) {
    shape = {static_cast<std::int64_t>(own->first), static_cast<std::int64_t>(own->second.size())};
  }
  ranks.broadcast(std::as_writable_bytes(std::span(shape)), failed);
  std::string sentence = failed == ranks.rank() ? own->second : std::string(static_cast<std::size_t>(shape[1]), ' ');
  ranks.broadcast(std::as_writable_bytes(std::span(sentence)), failed);
  throw core::SharedError(static_cast<ErrorCode>(shape[0]), with_rank(failed, sentence));
}

void end_together(Communicator& ranks) {
  try {
    throw;
  } catch (const core::SharedError&) {
    throw;
  } catch (...) {
    const Failure failure = current_failure();
    throw core::ExchangeAccess::of(ranks).abandon(failure->first, failure->second);
  }
}

}  // namespace vicinal::ops
