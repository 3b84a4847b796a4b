// What ranks tell each other when they come to an operation, and how it is said that they came to different ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vicinal::core {

enum class Operation : std::uint8_t { broadcast, all_gather, sum, max, send_receive, barrier };

inline const char* operation_name(Operation operation) {
  constexpr const char* kOperations[] = {"a broadcast", "a gather",           "a sum",
                                         "a maximum",   "a send and receive", "a barrier"};
  return kOperations[static_cast<int>(operation)];
}

struct Coming {
  Operation operation = Operation::barrier;
  std::size_t bytes = 0;       ///< that must be the same on every rank
  std::size_t data_bytes = 0;  ///< that this rank gives
  int peer = 0;                ///< the root, or the rank that is sent to
};

inline std::string described(const Coming& what) {
  std::string text = operation_name(what.operation);
  if (what.operation == Operation::broadcast) text += " of rank " + std::to_string(what.peer);
  const bool has_size = what.operation != Operation::send_receive && what.operation != Operation::barrier;
  return has_size ? text + " of " + std::to_string(what.bytes) + " bytes" : text;
}

/// Empty if rank `other` came to the same operation as rank 0.
inline std::string difference(const Coming& first, const Coming& its, int other) {
  const bool same_root = first.operation != Operation::broadcast || first.peer == its.peer;
  if (first.operation == its.operation && first.bytes == its.bytes && same_root) return "";
  return "communicator: rank 0 is in " + described(first) + ", but rank " + std::to_string(other) + " in " +
         described(its);
}

inline std::string absent(int rank, std::int64_t stall_milliseconds, Operation operation) {
  return "communicator: rank " + std::to_string(rank) + " did not come within " + std::to_string(stall_milliseconds) +
         " ms to " + operation_name(operation);
}

inline std::string has_left(int rank) {
  return "communicator: rank " + std::to_string(rank) + " has left";
}

/// Rank `to` expects other bytes than rank `from` has for it.
inline std::string misfit(int to, std::size_t expected, int from, std::size_t given) {
  return "communicator: rank " + std::to_string(to) + " expects " + std::to_string(expected) + " bytes of rank " +
         std::to_string(from) + ", which has " + std::to_string(given);
}

inline std::string unsent(int to, std::size_t expected, int from, std::size_t sent, int sent_to) {
  return "communicator: rank " + std::to_string(to) + " expects " + std::to_string(expected) + " bytes of rank " +
         std::to_string(from) + ", which sends " + std::to_string(sent) + " to rank " + std::to_string(sent_to);
}

}  // namespace vicinal::core
