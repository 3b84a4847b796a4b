// The rows of a table on the device for work that reads them again and again: they stay there where they fit, and
// otherwise pass through in parts, two of which have room: while one is worked on, the other is filled (session.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/base/session.hpp"
#include "cuda/base/stream.hpp"

namespace vicinal::cuda {

class RowParts {
 public:
  /// Rows that stay are copied, unless they lie there as `Rows` wants them: `part` is then all of them.
  RowParts(Session& session, const plugin::Table& table, std::int64_t part);
  ~RowParts();
  RowParts(const RowParts&) = delete;
  RowParts& operator=(const RowParts&) = delete;

  [[nodiscard]] bool stay() const noexcept { return part_ == n_; }
  /// Rows of a part; the last one may have fewer.
  [[nodiscard]] std::int64_t part() const noexcept { return part_; }
  /// All rows, where they stay; else the shape of them.
  [[nodiscard]] const Rows& rows() const noexcept { return rows_; }

  /// Calls visit(rows, first) for each part; it puts work into the engine's stream, and does not wait for it. Throws
  /// `cancelled`, and `HostFailure` where the host has no more rows.
  template <class Visit>
  void pass(const Host& host, const plugin::Table& table, const Visit& visit) {
    if (stay()) return visit(rows_, std::int64_t{0});
    const cudaStream_t work = session_.engine.stream;
    Event event;
    event.order(work, session_.copies);
    fill(table, 0, 0);
    int turn = 0;
    for (std::int64_t first = 0; first < n_; first += part_, turn = 1 - turn) {
      event.order(session_.copies, work);
      event.order(work, session_.copies);  // what was done with the part before: the next one takes its place
      Rows rows = rows_;
      rows.data = parts_[turn].data();
      rows.n = n_ - first < part_ ? n_ - first : part_;
      visit(rows, first);
      if (first + part_ < n_) fill(table, first + part_, 1 - turn);
      check(cudaStreamSynchronize(session_.copies), "synchronize");  // no more than a part ahead of a cancel
      host.check_cancelled();
    }
  }

  /// Some rows, and their numbers among those.
  struct Chosen {
    Rows rows;
    Buffer<std::byte> copy;
    Buffer<std::int64_t> numbers;  ///< [count]
  };
  [[nodiscard]] Chosen choose(const plugin::Table& table, const std::int64_t* numbers, std::int64_t count);

  /// Bytes of device memory for parts of so many rows.
  static std::int64_t bytes(const plugin::Table& table, std::int64_t part);

 private:
  void fill(const plugin::Table& table, std::int64_t first, int turn);

  Session& session_;
  std::int64_t n_;
  std::int64_t part_;
  Rows rows_;
  Buffer<std::byte> parts_[2];  // or the first one all rows
};

}  // namespace vicinal::cuda
