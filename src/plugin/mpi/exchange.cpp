// Ranks that are processes: the group is the plug-in's (src/mpi/group.hpp).
#include "core/exchange.hpp"

#include <new>
#include <utility>

#include "core/entry.hpp"
#include "plugin/mpi/mpi.hpp"
#include "vicinal/communicator.hpp"

namespace vicinal {
namespace plugin {
namespace {

constexpr std::int64_t kLeastPiece = 8;                     // one value of a reduction
constexpr std::int64_t kMostPiece = std::int64_t{1} << 30;  // MPI counts in 32 bits

void check_ended(const mpi::Status& status) {
  switch (status.code) {
    case mpi::kOk:
      return;
    case mpi::kEnded:
      throw core::SharedError(static_cast<ErrorCode>(status.error), status.text);
    case mpi::kInvalidArgument:
      throw Error(ErrorCode::invalid_argument, status.text);
    case mpi::kIo:
      throw Error(ErrorCode::io, status.text);
    case mpi::kNoMemory:
      throw std::bad_alloc();
    default:
      throw Error(ErrorCode::internal, status.text);
  }
}

class MpiExchange final : public core::Exchange {
 public:
  explicit MpiExchange(const mpi::Opening& opening) : functions_(*mpi_plugin().functions) {
    mpi::Status status = {};
    group_ = functions_.open(&opening, &facts_, &status);
    check_ended(status);
  }
  ~MpiExchange() override { functions_.close(group_); }

  int rank() const noexcept override { return facts_.rank; }
  int size() const noexcept override { return facts_.size; }
  int ranks_on_host() const noexcept override { return facts_.ranks_on_host; }

  void broadcast(std::span<std::byte> data, int root) override {
    checked([&](mpi::Status* status) { functions_.broadcast(group_, data.data(), std::ssize(data), root, status); });
  }
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes,
                  std::span<std::byte> all) override {
    checked([&](mpi::Status* status) {
      functions_.all_gather(group_, part.data(), sizes.data(), rank(), size(), all.data(), std::ssize(all), status);
    });
  }
  void all_reduce_sum(std::span<std::int64_t> values) override { reduce(values, mpi::kSum); }
  void all_reduce_max(std::span<std::int64_t> values) override { reduce(values, mpi::kMax); }
  void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from) override {
    checked([&](mpi::Status* status) {
      functions_.send_receive(group_, sent.data(), std::ssize(sent), to, received.data(), std::ssize(received), from,
                              status);
    });
  }
  void barrier() override {
    checked([&](mpi::Status* status) { functions_.barrier(group_, status); });
  }
  core::SharedError abandon(ErrorCode code, const std::string& sentence) override {
    mpi::Status status = {};
    functions_.abandon(group_, static_cast<std::int32_t>(code), sentence.c_str(), &status);
    if (status.code != mpi::kEnded) check_ended(status);
    return {static_cast<ErrorCode>(status.error), status.text};
  }

 private:
  template <class Call>
  static void checked(const Call& call) {
    mpi::Status status = {};
    call(&status);
    check_ended(status);
  }
  void reduce(std::span<std::int64_t> values, mpi::Reduction reduction) {
    checked([&](mpi::Status* status) {
      functions_.all_reduce(group_, values.data(), std::ssize(values), reduction, status);
    });
  }

  const mpi::Functions& functions_;
  mpi::Facts facts_ = {};
  void* group_ = nullptr;
};

}  // namespace
}  // namespace plugin

Communicator Communicator::mpi(const MpiOptions& options) try {
  const core::Entry entry;
  if (options.stall_limit.count() < 0) {
    throw Error(ErrorCode::invalid_argument, "stall_limit: must be at least 0");
  }
  if (options.piece_bytes < plugin::kLeastPiece || options.piece_bytes > plugin::kMostPiece) {
    throw Error(ErrorCode::invalid_argument, "piece_bytes: is " + std::to_string(options.piece_bytes) +
                                                 ", must be from " + std::to_string(plugin::kLeastPiece) + " to " +
                                                 std::to_string(plugin::kMostPiece));
  }
  auto exchange = std::make_unique<plugin::MpiExchange>(
      vicinal::mpi::Opening{options.communicator, options.stall_limit.count(), options.piece_bytes, core::kMaxRanks});
  Communicator made;
  if (exchange->size() > 1) core::ExchangeAccess::give(made, std::move(exchange));
  return made;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

int Communicator::ranks_on_host() const noexcept {
  return exchange_ != nullptr ? exchange_->ranks_on_host() : 0;
}

MpiStatus mpi_status() try {
  const core::Entry entry;
  try {
    const plugin::LoadedMpi& loaded = plugin::mpi_plugin();
    return {loaded.functions->library, loaded.path, ""};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_unavailable) throw;
    return {"", "", error.what()};
  }
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
