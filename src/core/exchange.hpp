// The body of a Communicator: one rank's end of a group, whatever carries the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vicinal/communicator.hpp"
#include "vicinal/error.hpp"

namespace vicinal::core {

constexpr int kMaxRanks = 4096;

/// An error that every rank throws with the same sentence, so that nobody waits for the one that throws it.
class SharedError : public Error {
 public:
  using Error::Error;
};

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  [[nodiscard]] virtual int ranks_on_host() const noexcept = 0;
  // As Communicator has them; arguments are checked by it, and sizes that differ between ranks are found here.
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  virtual void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes,
                          std::span<std::byte> all) = 0;
  virtual void all_reduce_sum(std::span<std::int64_t> values) = 0;
  virtual void all_reduce_max(std::span<std::int64_t> values) = 0;
  virtual void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from) = 0;
  virtual void barrier() = 0;
  /// Returns what ended the group, which every rank throws: this sentence, or another that was there before.
  virtual SharedError abandon(ErrorCode code, const std::string& sentence) = 0;

  void count(std::size_t bytes) noexcept { bytes_sent_ += size() > 1 ? bytes : 0; }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

 private:
  std::uint64_t bytes_sent_ = 0;
};

struct ExchangeAccess {
  /// Of a communicator that was not moved from.
  static Exchange& of(Communicator& communicator) noexcept { return *communicator.exchange_; }
  static void give(Communicator& communicator, std::unique_ptr<Exchange> exchange) {
    communicator.exchange_ = std::move(exchange);
  }
};

std::unique_ptr<Exchange> exchange_of_one();
/// Of `size` threads; `stall_milliseconds` 0: without a limit.
std::vector<std::unique_ptr<Exchange>> exchange_of_threads(int size, std::int64_t stall_milliseconds);

}  // namespace vicinal::core
