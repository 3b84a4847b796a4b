// A session is what one context holds of one device: the engine, a stream for copies, staging memory, and the account
// of what stays on the device. Host rows go through two pinned buffers in turns: while one travels the other is filled,
// by all of the host's threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda/base/device.hpp"
#include "cuda/nearest/task.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda {

/// A callback of the host failed; it knows why.
struct HostFailure {};

class Staging {
 public:
  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// A pinned buffer of at least `bytes` that no copy is reading any more.
  std::byte* next(std::size_t bytes);
  /// After the copy out of what `next` gave was put into the stream.
  void in_flight(cudaStream_t stream);

 private:
  struct Slot {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    cudaEvent_t copied = nullptr;
  };
  Slot slots_[2];
  int turn_ = 0;
};

/// Numbers that the device writes to memory of the host, one kernel after the other.
class Notes {
 public:
  static constexpr std::int64_t kCount = 64;

  Notes() = default;
  ~Notes();
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

  std::int64_t* data();

 private:
  std::int64_t* data_ = nullptr;
};

struct Session {
  Engine engine;  ///< its memory limit is the session's
  cudaStream_t copies = nullptr;
  Staging staging;
  Notes notes;
  std::atomic<std::uint64_t> resident_bytes{0};
};

/// A table that stays on the device: its own copy, or the caller's rows where they lie there already.
struct Resident {
  Session* session = nullptr;
  Rows rows;
  Buffer<std::byte> copy;
  Buffer<double> centre;     ///< [d]
  double largest = 0;        ///< deviation from it
  double largest_value = 0;  ///< no value is larger
  std::uint64_t bytes = 0;

  [[nodiscard]] TableFacts table_facts() const { return facts_of(centre.data(), rows.d, largest, largest_value); }
};

/// Bytes of rows.
inline std::int64_t row_bytes(const plugin::Table& table) {
  return table.cols * size_of(static_cast<DType>(table.dtype));
}
/// Bytes that a table takes where it stays on the device: none where its rows lie there as `Rows` wants them.
inline std::uint64_t copy_bytes(const plugin::Table& table) {
  const bool in_order =
      (table.col_stride == 1 || table.cols == 1) && (table.row_stride == table.cols || table.rows == 1);
  if (static_cast<Memory>(table.memory) == Memory::cuda && in_order) return 0;
  return static_cast<std::uint64_t>(table.rows) * static_cast<std::uint64_t>(row_bytes(table));
}
/// Whether there is room for a table of so many bytes to stay: half of the limit is left for what searches need.
inline bool has_room(const Session& session, std::uint64_t bytes) {
  return session.resident_bytes + bytes <= session.engine.memory_limit / 2;
}
/// Whether the rows lie in device memory as `Rows` wants them. Throws `invalid_argument` for a pointer to memory of
/// something else.
bool lies_ready(const Engine& engine, const plugin::Table& table, const char* name);
/// Rows [begin, end), contiguously, to `to` in device memory, in the order of the stream.
void upload_rows(Session& session, const plugin::Table& table, std::int64_t begin, std::int64_t end, void* to,
                 cudaStream_t stream);

/// Center, largest deviation and finiteness of a table (prepare.cu). Throws `bad_data` naming row and column.
void prepare_table(Session& session, const Host& host, const plugin::Table& table, plugin::Preparation& result);
/// The table on the device with facts known already; null where it does not fit.
Resident* upload_table(Session& session, const plugin::Table& table, const double* centre, double largest);
/// The median of each column of a sample, to centre[d] in device memory.
void find_centre(const Engine& engine, const Rows& rows, double* centre);
/// Throws `bad_data` naming row (counted from `first_row`) and column of the first value that is not finite.
void check_finite(const Engine& engine, const Rows& rows, std::int64_t first_row, const char* name);
inline constexpr std::int64_t kNotChecked = -2;  // instead of a column
/// The same of `count` rows, from the first such column of each, or -1.
void check_columns(const std::int64_t* columns, std::int64_t count, std::int64_t first_row, const char* name);

/// A search (nearest.cu).
void nearest(Session& session, const Host& host, const plugin::Search& search, plugin::Counters& counters);
/// The most bytes of device memory it takes beyond what stays there. Throws `over_memory` where they are not to be had.
std::uint64_t nearest_bytes(const Session& session, const plugin::Search& search);
/// Whether the fused screen serves a search that asks for it, of a table that stays on the device or is streamed.
bool can_fuse(const Session& session, const plugin::Search& search);

}  // namespace vicinal::cuda
