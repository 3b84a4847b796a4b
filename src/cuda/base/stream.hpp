// A table that passes through the device in tiles: while one is searched by a thread of its own, the caller's thread,
// the only one that may ask the host for rows, fills the next.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "core/signals.hpp"
#include "cuda/base/session.hpp"

namespace vicinal::cuda {

/// The host's calls, as part of a whole and with a stop of our own.
struct Relay {
  Host host;
  double from = 0;
  double share = 1;
  std::atomic<bool> stopped{false};

  static int cancelled(void* user) {
    auto& relay = *static_cast<Relay*>(user);
    if (relay.stopped.load(std::memory_order_relaxed)) return 1;
    return relay.host.cancelled != nullptr ? relay.host.cancelled(relay.host.user) : 0;
  }
  static void report(void* user, const char* stage, double fraction) {
    auto& relay = *static_cast<Relay*>(user);
    relay.host.progress(stage, relay.from + relay.share * fraction);
  }
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// What comes into `to` from now on waits for what is in `from`.
  void order(cudaStream_t from, cudaStream_t to) {
    check(cudaEventRecord(event_, from), "record an event");
    check(cudaStreamWaitEvent(to, event_), "wait for an event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class TileStream {
 public:
  /// Tiles of `rows` rows.
  TileStream(Session& session, Relay& relay, const plugin::Table& table, std::int64_t rows)
      : session_(session), relay_(relay), table_(table), rows_(rows) {}

  /// Calls visit(engine, tile) for each tile on a thread of its own. Two tiles in turns: one is searched while the
  /// other is filled.
  template <class Visit>
  void pass(const Engine& engine, const Search& search, Visit visit) {
    const std::int64_t n = table_.rows;
    const std::int64_t bytes = row_bytes(table_);
    const Buffer<std::byte> tiles[2] = {{engine, rows_ * bytes}, {engine, rows_ < n ? rows_ * bytes : 0}};
    Event event;
    event.order(engine.stream, session_.copies);
    const auto fill = [&](std::int64_t begin, int turn) {
      upload_rows(session_, table_, begin, std::min(n, begin + rows_), tiles[turn].data(), session_.copies);
    };
    struct CopiesDone {  // before the tiles are given back
      cudaStream_t copies;
      ~CopiesDone() { static_cast<void>(cudaStreamSynchronize(copies)); }
    } const done{session_.copies};
    fill(0, 0);
    int turn = 0;
    for (std::int64_t begin = 0; begin < n; begin += rows_, turn = 1 - turn) {
      event.order(session_.copies, engine.stream);
      Search tile = search;
      tile.first_row = begin;
      tile.table = {tiles[turn].data(), static_cast<DType>(table_.dtype), std::min(n - begin, rows_), table_.cols};
      const std::int64_t next = begin + rows_;
      beside(
          engine, [&](const Engine& own) { visit(own, tile); },
          [&] {
            if (next < n) fill(next, 1 - turn);
          });
      engine.host.progress("search", static_cast<double>(std::min(n, next)) / static_cast<double>(n));
    }
  }

 private:
  /// Calls search(engine) on another thread while this one does what only the caller's thread may.
  template <class Searching, class Work>
  void beside(const Engine& caller, Searching search, Work work) {
    Engine engine = caller;
    engine.host.report = nullptr;
    std::exception_ptr search_error;
    std::exception_ptr work_error;
    std::thread searcher;
    {
      const core::SignalsBlocked blocked;
      searcher = std::thread([&] {
        try {
          check(cudaSetDevice(engine.device), "choose the device");
          search(engine);
          engine.synchronize();  // before the tile is filled again
        } catch (...) {
          search_error = std::current_exception();
        }
      });
    }
    try {
      work();
    } catch (...) {
      work_error = std::current_exception();
      relay_.stopped = true;
    }
    searcher.join();
    if (work_error) std::rethrow_exception(work_error);
    if (search_error) std::rethrow_exception(search_error);
  }

  Session& session_;
  Relay& relay_;
  const plugin::Table& table_;
  std::int64_t rows_;
};

}  // namespace vicinal::cuda
