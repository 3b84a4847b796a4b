// Ranks that are one caller, or threads of one process. In each operation the threads wait for each other twice: until
// all have shown their memory, and until all are done with it. The first wait ends early if the group ends, because
// then nobody reads anything. The second one does not: between the two there are only copies and sums, so that every
// rank arrives, and no memory is read after its owner has gone on. The sentence that ended a group is thrown by every
// rank that waits or comes later.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/exchange.hpp"
#include "core/meeting.hpp"
#include "vicinal/error.hpp"

namespace vicinal::core {
namespace {

class ExchangeOfOne final : public Exchange {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  int ranks_on_host() const noexcept override { return 1; }
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override { require_whole(); }
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> /*sizes*/,
                  std::span<std::byte> all) override {
    require_whole();
    if (!part.empty()) std::memmove(all.data(), part.data(), part.size());
  }
  void all_reduce_sum(std::span<std::int64_t> /*values*/) override { require_whole(); }
  void all_reduce_max(std::span<std::int64_t> /*values*/) override { require_whole(); }
  void send_receive(std::span<const std::byte> sent, int /*to*/, std::span<std::byte> received, int /*from*/) override {
    require_whole();
    if (sent.size() != received.size()) {
      throw Error(ErrorCode::invalid_argument, "received: has " + std::to_string(received.size()) +
                                                   " bytes, but rank 0 sends " + std::to_string(sent.size()));
    }
    if (!sent.empty()) std::memmove(received.data(), sent.data(), sent.size());
  }
  void barrier() override { require_whole(); }
  SharedError abandon(ErrorCode code, const std::string& sentence) override {
    if (ended_.empty()) {
      ended_ = "rank 0: " + sentence;
      code_ = code;
    }
    return {code_, ended_};
  }

 private:
  void require_whole() const {
    if (!ended_.empty()) throw SharedError(code_, ended_);
  }
  std::string ended_;
  ErrorCode code_ = ErrorCode::io;
};

constexpr std::int64_t kLongestStall = 1'000'000'000'000;  // 31 years, which a clock can still add

/// What a rank shows to the others in an operation.
struct Shown : Coming {
  std::byte* data = nullptr;  ///< data_bytes
};

class Group {
 public:
  Group(int size, std::int64_t stall_milliseconds)
      : stall_(std::min(stall_milliseconds, kLongestStall)),
        size_(size),
        here_(static_cast<std::size_t>(size)),
        shown_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const noexcept { return size_; }
  /// Between `enter` and `leave`.
  [[nodiscard]] const Shown& of(int rank) const { return shown_[static_cast<std::size_t>(rank)]; }

  /// Waits until every rank is in the operation. Throws if the group has ended or ends meanwhile.
  void enter(int rank, const Shown& shown) {
    std::unique_lock lock(mutex_);
    require_whole();
    shown_[static_cast<std::size_t>(rank)] = shown;
    here_[static_cast<std::size_t>(rank)] = true;
    const std::uint64_t round = round_;
    if (++entered_ == size_) {
      entered_ = 0;
      here_.assign(here_.size(), false);
      ++round_;
      changed_.notify_all();
      return;
    }
    const auto is_over = [&] { return round_ != round || !ended_.empty(); };
    if (stall_ == 0) {
      changed_.wait(lock, is_over);
    } else if (!changed_.wait_for(lock, std::chrono::milliseconds(stall_), is_over)) {
      const auto missing = std::find(here_.begin(), here_.end(), false) - here_.begin();
      end_locked(ErrorCode::io, absent(static_cast<int>(missing), stall_, shown.operation));
    }
    if (round_ == round) require_whole();
  }
  /// Waits until every rank is done with what the others show.
  void leave() noexcept {
    std::unique_lock lock(mutex_);
    const std::uint64_t departure = departure_;
    if (++left_ == size_) {
      left_ = 0;
      ++departure_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return departure_ != departure; });
  }
  /// Ends the group, unless it has ended. Returns what ended it.
  SharedError end(ErrorCode code, const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    end_locked(code, sentence);
    return {code_, ended_};
  }
  [[noreturn]] void fail(const std::string& sentence) { throw end(ErrorCode::io, sentence); }

 private:
  void require_whole() const {
    if (!ended_.empty()) throw SharedError(code_, ended_);
  }
  void end_locked(ErrorCode code, const std::string& sentence) {
    if (!ended_.empty()) return;
    ended_ = sentence;
    code_ = code;
    changed_.notify_all();
  }

  std::int64_t stall_;
  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t round_ = 0;
  std::uint64_t departure_ = 0;
  int entered_ = 0;
  int left_ = 0;
  std::vector<bool> here_;
  std::string ended_;
  ErrorCode code_ = ErrorCode::io;
  std::vector<Shown> shown_;
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~ThreadExchange() override {
    try {
      group_->end(ErrorCode::io, has_left(rank_));
    } catch (...) {  // no memory for the sentence; the others end by their stall limit
    }
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return group_->size(); }
  int ranks_on_host() const noexcept override { return group_->size(); }

  void broadcast(std::span<std::byte> data, int root) override {
    const Meeting meeting(*group_, rank_, {{Operation::broadcast, data.size(), data.size(), root}, data.data()});
    if (rank_ != root) copy(group_->of(root).data, data);
  }
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes,
                  std::span<std::byte> all) override {
    const Meeting meeting(*group_, rank_,
                          {{Operation::all_gather, all.size(), part.size(), 0}, const_cast<std::byte*>(part.data())});
    std::size_t at = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const auto bytes = static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]);
      const Shown& from = group_->of(rank);
      if (from.data_bytes != bytes) {
        group_->fail(misfit(rank_, bytes, rank, from.data_bytes));
      }
      copy(from.data, all.subspan(at, bytes));
      at += bytes;
    }
  }
  void all_reduce_sum(std::span<std::int64_t> values) override {
    reduce(Operation::sum, values, [](std::int64_t a, std::int64_t b) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    });
  }
  void all_reduce_max(std::span<std::int64_t> values) override {
    reduce(Operation::max, values, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from) override {
    const Meeting meeting(*group_, rank_,
                          {{Operation::send_receive, 0, sent.size(), to}, const_cast<std::byte*>(sent.data())});
    const Shown& arrives = group_->of(from);
    if (arrives.peer != rank_ || arrives.data_bytes != received.size()) {
      group_->fail(unsent(rank_, received.size(), from, arrives.data_bytes, arrives.peer));
    }
    copy(arrives.data, received);
  }
  void barrier() override { const Meeting meeting(*group_, rank_, {}); }
  SharedError abandon(ErrorCode code, const std::string& sentence) override {
    return group_->end(code, "rank " + std::to_string(rank_) + ": " + sentence);
  }

 private:
  /// The time between the two waits, in which all ranks see what the others show. The same operation is asked of all of
  /// them; as all see the same, all throw the same.
  class Meeting {
   public:
    Meeting(Group& group, int rank, const Shown& shown) : inside_(group) {
      group.enter(rank, shown);
      inside_.entered = true;
      const Shown& first = group.of(0);
      for (int other = 1; other < group.size(); ++other) {
        if (const std::string text = difference(first, group.of(other), other); !text.empty()) group.fail(text);
      }
    }

   private:
    struct Inside {
      explicit Inside(Group& of) : group(of) {}
      Inside(const Inside&) = delete;
      Inside& operator=(const Inside&) = delete;
      ~Inside() {
        if (entered) group.leave();
      }
      Group& group;
      bool entered = false;
    };
    Inside inside_;
  };

  static void copy(const std::byte* from, std::span<std::byte> to) {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  /// Each rank reduces a share of the values, in everybody's memory.
  template <class Join>
  void reduce(Operation operation, std::span<std::int64_t> values, const Join& join) {
    const Meeting meeting(
        *group_, rank_,
        {{operation, values.size_bytes(), values.size_bytes(), 0}, reinterpret_cast<std::byte*>(values.data())});
    const auto ranks = static_cast<std::size_t>(size());
    const std::size_t share = (values.size() + ranks - 1) / ranks;
    const std::size_t begin = std::min(values.size(), share * static_cast<std::size_t>(rank_));
    const std::size_t end = std::min(values.size(), begin + share);
    const auto of = [&](int rank) { return reinterpret_cast<std::int64_t*>(group_->of(rank).data); };
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t joined = of(0)[i];
      for (int rank = 1; rank < size(); ++rank) joined = join(joined, of(rank)[i]);
      for (int rank = 0; rank < size(); ++rank) of(rank)[i] = joined;
    }
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

}  // namespace

std::unique_ptr<Exchange> exchange_of_one() {
  return std::make_unique<ExchangeOfOne>();
}

std::vector<std::unique_ptr<Exchange>> exchange_of_threads(int size, std::int64_t stall_milliseconds) {
  const auto group = std::make_shared<Group>(size, stall_milliseconds);
  std::vector<std::unique_ptr<Exchange>> ends;
  ends.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) ends.push_back(std::make_unique<ThreadExchange>(group, rank));
  return ends;
}

}  // namespace vicinal::core
