// Communicator: how ranks, which each hold some of a table's rows, exchange what is merged (docs/ranks.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal {

namespace core {
class Exchange;
struct ExchangeAccess;
}  // namespace core

/// One rank's end of a group of ranks 0 .. size - 1. Every rank calls the same operations in the same order with the
/// same sizes; each waits for the others. One thread at a time uses a communicator.
///
/// No rank waits for ever. If a rank destroys its communicator, or calls `abandon`, or does not come to an operation
/// within the stall limit, every rank that waits and every later operation throws `io` with one sentence that names
/// that rank. The same holds if ranks come to different operations. After that the group is of no more use.
///
/// A communicator that was moved from refuses everything with `invalid_argument`.
class VICINAL_API Communicator {
 public:
  /// A group of one rank, whose operations copy at most.
  Communicator();
  /// A group whose ranks are threads of this process: give each thread one of these, in the order of their ranks.
  /// `stall_limit` is how long a rank waits for the others in one operation; 0: as long as it takes. Throws
  /// `invalid_argument` for a size below 1 or above 4096 and for a limit below 0.
  static std::vector<Communicator> threads(int size, std::chrono::milliseconds stall_limit = std::chrono::minutes(10));

  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() = default;

  [[nodiscard]] int rank() const noexcept;  ///< of this end; 0 after it was moved from
  [[nodiscard]] int size() const noexcept;  ///< of the group; 0 after it was moved from
  /// Bytes that this rank has given to operations: what it sent to a neighbor, its part of a gather, all values of a
  /// reduction, and what it broadcast as the root. A group of one rank sends nothing.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept;

  /// Every rank's `data` becomes that of `root`. Throws `invalid_argument` for a root that is no rank.
  void broadcast(std::span<std::byte> data, int root);
  /// `all` becomes the parts of all ranks, in their order. `sizes` [size] are the bytes of each part, the same on every
  /// rank. Throws `invalid_argument` if they do not fit `part` and `all`.
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes, std::span<std::byte> all);
  /// Every value becomes the sum of those of all ranks, modulo 2^64.
  void all_reduce_sum(std::span<std::int64_t> values);
  /// Every value becomes the largest of those of all ranks.
  void all_reduce_max(std::span<std::int64_t> values);
  /// Sends bytes to one rank while it receives others from another: `received` has the size of what rank `from` sends
  /// here. Every rank takes part, each sends to one rank, and no two to the same. Throws `invalid_argument` for numbers
  /// that are no rank.
  void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from);
  /// Waits until every rank is here.
  void barrier();
  /// Ends the group: every rank that waits or comes to an operation throws this sentence with this rank in front. For a
  /// rank that cannot go on. Does nothing if the group has ended already.
  void abandon(const std::string& sentence);

 private:
  friend struct core::ExchangeAccess;         // the library's own sources
  std::shared_ptr<core::Exchange> exchange_;  // of which nobody else has one
};

}  // namespace vicinal
