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

/// How `Communicator::mpi` makes a group.
struct MpiOptions {
  /// How long a rank waits for the others in one operation; 0: as long as it takes.
  std::chrono::milliseconds stall_limit = std::chrono::minutes(10);
  /// The address of an MPI_Comm, of which a duplicate is used; null: MPI_COMM_WORLD. It must be an intracommunicator of
  /// the same MPI library as the plug-in's.
  const void* communicator = nullptr;
  /// Bytes of the memory through which messages go: longer ones are sent in pieces. From 8 to 2^30, the same on every
  /// rank. A gather and a send take up to twice as much.
  std::int64_t piece_bytes = std::int64_t{1} << 24;
};

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

  /// A group whose ranks are the processes of an MPI communicator (docs/ranks.md). Every one of them calls this. Needs
  /// the plug-in libvicinal_mpi.so. Starts MPI if it does not run yet, with MPI_THREAD_MULTIPLE, and then ends it when
  /// the process exits. Only the thread that calls or destroys the communicator calls MPI; in a program that started it
  /// for its main thread only (MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED), that must be the main thread. With
  /// MPI_THREAD_SERIALIZED no other thread may be in MPI meanwhile. Each group takes one of MPI's communicators until
  /// MPI ends, so make one and keep it.
  ///
  /// After a rank did not come within the stall limit, or no longer answers while bytes travel, or had an error of MPI
  /// in an operation, all others throw, and MPI_Finalize, whoever calls it, calls MPI_Abort instead of waiting for that
  /// rank: then the job ends. The same holds for a process that exits while a thread of it is in an operation.
  ///
  /// Throws `device_unavailable` without the plug-in; `invalid_argument` for values that MpiOptions does not allow,
  /// more than 4096 ranks, and another thread than the main one where that is not allowed; `io` if MPI has been
  /// finalized, or reports an error, and after the stall limit.
  static Communicator mpi(const MpiOptions& options = {});

  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() = default;

  [[nodiscard]] int rank() const noexcept;  ///< of this end; 0 after it was moved from
  [[nodiscard]] int size() const noexcept;  ///< of the group; 0 after it was moved from
  /// How many ranks of the group are on this rank's host, itself included: they share its cores and memory. 0 after it
  /// was moved from.
  [[nodiscard]] int ranks_on_host() const noexcept;
  /// Bytes that this rank has given to operations: what it sent to a neighbor, its part of a gather, all values of a
  /// reduction, and what it broadcast as the root. A group of one rank sends nothing.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept;

  /// Every rank's `data` becomes that of `root`. Throws `invalid_argument` for a root that is no rank.
  void broadcast(std::span<std::byte> data, int root);
  /// `all` becomes the parts of all ranks, in their order. `sizes` [size] are the bytes of each part, the same on every
  /// rank. Throws `invalid_argument` if they do not fit `part` and `all`, or if these two share memory.
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes, std::span<std::byte> all);
  /// Every value becomes the sum of those of all ranks, modulo 2^64.
  void all_reduce_sum(std::span<std::int64_t> values);
  /// Every value becomes the largest of those of all ranks.
  void all_reduce_max(std::span<std::int64_t> values);
  /// Sends bytes to one rank while it receives others from another: `received` has the size of what rank `from` sends
  /// here. Every rank takes part, each sends to one rank, and no two to the same. Throws `invalid_argument` for numbers
  /// that are no rank, and if `sent` and `received` share memory.
  void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from);
  /// Waits until every rank is here.
  void barrier();
  /// Ends the group: every rank that waits or comes to an operation throws this sentence with this rank in front. For a
  /// rank that cannot go on. Does nothing if the group has ended already. A process waits until rank 0 comes to an
  /// operation or leaves, and no longer than the stall limit.
  void abandon(const std::string& sentence);

 private:
  friend struct core::ExchangeAccess;         // the library's own sources
  std::shared_ptr<core::Exchange> exchange_;  // of which nobody else has one
};

/// What this machine offers for `Communicator::mpi`.
struct MpiStatus {
  std::string library;  ///< such as "Open MPI v4.1.4"; empty if it cannot be used
  std::string plugin;   ///< file of the plug-in; empty if it cannot be used
  std::string missing;  ///< a sentence that says what is missing; empty if nothing is
};
/// Loads the plug-in, but does not start MPI. Throws what the plug-in finder throws beyond `device_unavailable`.
VICINAL_API MpiStatus mpi_status();

}  // namespace vicinal
