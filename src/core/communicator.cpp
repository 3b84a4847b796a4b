// Communicator: arguments are checked and bytes counted here, once for every body (core/exchange.hpp).
#include "vicinal/communicator.hpp"

#include <functional>

#include "core/entry.hpp"
#include "core/exchange.hpp"

namespace vicinal {
namespace {

[[noreturn]] void refuse_communicator(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

core::Exchange& there(const std::shared_ptr<core::Exchange>& exchange) {
  if (exchange == nullptr) refuse_communicator("communicator: was moved from");
  return *exchange;
}

void check_rank(const core::Exchange& exchange, const char* argument, int rank) {
  if (rank >= 0 && rank < exchange.size()) return;
  refuse_communicator(std::string(argument) + ": is " + std::to_string(rank) + ", must be a rank from 0 to " +
                      std::to_string(exchange.size() - 1));
}

/// Other ranks read what is sent while this one writes what it receives.
void check_apart(const char* argument, std::span<const std::byte> read, std::span<const std::byte> written,
                 const char* other) {
  const std::less<> before;
  if (read.empty() || written.empty() || !before(written.data(), read.data() + read.size()) ||
      !before(read.data(), written.data() + written.size())) {
    return;
  }
  refuse_communicator(std::string(argument) + ": must share no memory with " + other);
}

}  // namespace

Communicator::Communicator() try {
  const core::Entry entry;
  exchange_ = core::exchange_of_one();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<Communicator> Communicator::threads(int size, std::chrono::milliseconds stall_limit) try {
  const core::Entry entry;
  if (size < 1 || size > core::kMaxRanks) {
    refuse_communicator("size: is " + std::to_string(size) + ", must be from 1 to " + std::to_string(core::kMaxRanks));
  }
  if (stall_limit.count() < 0) refuse_communicator("stall_limit: must be at least 0");
  std::vector<Communicator> ends(static_cast<std::size_t>(size));
  auto exchanges = core::exchange_of_threads(size, stall_limit.count());
  for (std::size_t rank = 0; rank < ends.size(); ++rank) ends[rank].exchange_ = std::move(exchanges[rank]);
  return ends;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

int Communicator::rank() const noexcept {
  return exchange_ != nullptr ? exchange_->rank() : 0;
}

int Communicator::size() const noexcept {
  return exchange_ != nullptr ? exchange_->size() : 0;
}

std::uint64_t Communicator::bytes_sent() const noexcept {
  return exchange_ != nullptr ? exchange_->bytes_sent() : 0;
}

void Communicator::broadcast(std::span<std::byte> data, int root) try {
  const core::Entry entry;
  core::Exchange& exchange = there(exchange_);
  check_rank(exchange, "root", root);
  exchange.broadcast(data, root);
  if (root == exchange.rank()) exchange.count(data.size());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes,
                              std::span<std::byte> all) try {
  const core::Entry entry;
  core::Exchange& exchange = there(exchange_);
  std::int64_t total = 0;
  bool fits = static_cast<int>(sizes.size()) == exchange.size();
  for (const std::int64_t size : sizes) fits = fits && size >= 0 && !__builtin_add_overflow(total, size, &total);
  if (!fits || sizes[static_cast<std::size_t>(exchange.rank())] != std::ssize(part) || total != std::ssize(all)) {
    refuse_communicator("sizes: must be the bytes of each rank's part, and add up to what is gathered");
  }
  check_apart("all", part, all, "part");
  exchange.all_gather(part, sizes, all);
  exchange.count(part.size());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::all_reduce_sum(std::span<std::int64_t> values) try {
  const core::Entry entry;
  core::Exchange& exchange = there(exchange_);
  exchange.all_reduce_sum(values);
  exchange.count(values.size_bytes());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::all_reduce_max(std::span<std::int64_t> values) try {
  const core::Entry entry;
  core::Exchange& exchange = there(exchange_);
  exchange.all_reduce_max(values);
  exchange.count(values.size_bytes());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from) try {
  const core::Entry entry;
  core::Exchange& exchange = there(exchange_);
  check_rank(exchange, "to", to);
  check_rank(exchange, "from", from);
  check_apart("received", sent, received, "sent");
  exchange.send_receive(sent, to, received, from);
  exchange.count(sent.size());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::barrier() try {
  const core::Entry entry;
  there(exchange_).barrier();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void Communicator::abandon(const std::string& sentence) try {
  const core::Entry entry;
  (void)there(exchange_).abandon(ErrorCode::io, sentence);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
