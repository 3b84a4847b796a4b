// The interface of libvicinal_mpi.so, which holds all that needs MPI: a table of functions over plain structs. No
// exception and no C++ type crosses it. A group belongs to the plug-in until `close`.
#pragma once

#include <cstdint>

namespace vicinal::mpi {

inline constexpr std::int32_t kPluginVersion = 1;
inline constexpr const char* kPluginSymbol = "vicinal_mpi_plugin";

enum StatusCode : std::int32_t {
  kOk = 0,
  kEnded = 1,            ///< the group has ended: every rank is told the same code and text
  kInvalidArgument = 2,  ///< and what follows concerns this rank alone
  kIo = 3,
  kNoMemory = 4,
  kInternal = 5
};

struct Status {
  std::int32_t code;
  std::int32_t error;  ///< the ErrorCode of what ended the group
  char text[2048];     ///< one sentence, ended by 0
};

/// As MpiOptions.
struct Opening {
  const void* communicator;  ///< an MPI_Comm; null: MPI_COMM_WORLD
  std::int64_t stall_milliseconds;
  std::int64_t piece_bytes;
  std::int32_t max_ranks;
};

struct Facts {
  std::int32_t rank;
  std::int32_t size;
  std::int32_t ranks_on_host;
};

enum Reduction : std::int32_t { kSum = 0, kMax = 1 };

/// As core::Exchange; arguments were checked, and sizes that differ between ranks are found here.
struct Functions {
  std::int32_t version;
  std::int32_t bytes;   ///< of this table
  const char* library;  ///< such as "Open MPI v4.1.4"

  void* (*open)(const Opening* opening, Facts* facts, Status* status);
  void (*close)(void* group);
  void (*broadcast)(void* group, void* data, std::int64_t bytes, std::int32_t root, Status* status);
  void (*all_gather)(void* group, const void* part, const std::int64_t* sizes, std::int32_t rank, std::int32_t ranks,
                     void* all, std::int64_t bytes, Status* status);
  void (*all_reduce)(void* group, std::int64_t* values, std::int64_t count, std::int32_t reduction, Status* status);
  void (*send_receive)(void* group, const void* sent, std::int64_t sent_bytes, std::int32_t to, void* received,
                       std::int64_t received_bytes, std::int32_t from, Status* status);
  void (*barrier)(void* group, Status* status);
  /// Fills `ended` with what ended the group.
  void (*abandon)(void* group, std::int32_t error, const char* sentence, Status* ended);
};

}  // namespace vicinal::mpi
