// One rank's end of a group whose ranks are processes.
//
// Each operation begins with a meeting: every rank tells rank 0 what it came for, rank 0 compares that, and tells all
// to go on. Only then bytes travel, by MPI's collective operations. So a group ends in one place: what rank 0 learns
// first (a rank has left, has abandoned the group, or came to something else) it tells to all ranks, and all throw that
// sentence. The rest of an operation that all have come to is not cut short, unless one stalls.
//
// Nothing blocks. Every wait asks MPI again and again. After the stall limit rank 0 asks the ranks that it waits for
// (while bytes travel, all of them), and each other rank asks rank 0, whether they are in an operation, too. Those
// answer from their own waits. A rank that does not answer is named, and the group ends. Requests of MPI that nobody
// will complete then remain, and so does the memory that they use, which is why MPI never sees memory of the caller's.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/meeting.hpp"
#include "plugin/abi/mpi.hpp"

namespace vicinal::mpi {

/// What this rank alone is told.
class Fault : public std::exception {
 public:
  Fault(StatusCode code, std::string text) : code_(code), text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] StatusCode code() const noexcept { return code_; }

 private:
  StatusCode code_;
  std::string text_;
};

/// What ended a group, which every rank is told.
class Ended : public std::exception {
 public:
  Ended(std::int32_t error, std::string text) : error_(error), text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] std::int32_t error() const noexcept { return error_; }

 private:
  std::int32_t error_;
  std::string text_;
};

/// Throws `Fault` of code kIo for what MPI returned, unless that is success.
void check_mpi(int returned);

class Group {
 public:
  Group(const Opening& opening, Facts& facts);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void broadcast(std::span<std::byte> data, int root);
  void all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes, std::span<std::byte> all);
  void all_reduce(std::span<std::int64_t> values, Reduction reduction);
  void send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from);
  void barrier();
  Ended abandon(std::int32_t error, const std::string& sentence);
  /// Tells the others that this rank has left. Once; later calls do nothing.
  void leave() noexcept;
  /// Whether a thread is in an operation. Any thread may ask.
  [[nodiscard]] bool is_inside() const noexcept { return is_inside_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// What a rank came for, beyond what all bodies of a communicator ask.
  struct Coming : core::Coming {
    int from = 0;              ///< the rank that is received from
    std::size_t received = 0;  ///< bytes of it
    std::uint64_t parts = 0;   ///< a digest of the sizes of all parts
  };
  enum class Kind : std::int32_t { come, go, end, abandon, left, ask, answer };
  /// What ranks tell each other, a sentence behind it.
  struct Letter {
    Kind kind = Kind::come;
    std::int32_t error = 0;
    std::int32_t cuts_short = 0;
    Coming coming;
  };
  /// While a rank is in an operation, from its meeting to its last byte: it answers to those who ask.
  class Inside {
   public:
    explicit Inside(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { flag_ = false; }

   private:
    std::atomic<bool>& flag_;
  };
  struct Posted {
    Posted() = default;
    Posted(const Posted&) = delete;
    Posted& operator=(const Posted&) = delete;
    ~Posted();

    std::unique_ptr<std::byte[]> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void duplicate(const Opening& opening);
  void find_neighbors(const Opening& opening, Facts& facts);

  /// An operation: the meeting, and then travel(), in which bytes go through `pieces_`. What fails on this rank alone
  /// ends the group at once. `sizes`: of a gather, of each rank's part.
  void operate(const Coming& own, std::span<const std::int64_t> sizes, const std::function<void()>& travel);
  void meet(const Coming& own, std::span<const std::int64_t> sizes);
  [[noreturn]] void fail_alone(std::int32_t error, const std::string& sentence);
  /// Empty if all came for the same.
  [[nodiscard]] std::string disagreement(std::span<const std::int64_t> sizes) const;
  void require_whole();
  [[noreturn]] void fail(const std::string& sentence);

  /// Waits until is_done(). A wait for bytes, in an operation that all have come to, heeds only an end that cuts short.
  void wait(const std::function<bool()>& is_done, bool for_bytes);
  /// Completes requests that use `pieces_`.
  void complete(std::span<MPI_Request> requests);
  /// Memory of so many bytes that MPI may use, until the next call.
  std::byte* pieces(std::size_t bytes);
  [[nodiscard]] std::size_t piece_of(std::size_t bytes) const;

  void post(int to, const Letter& letter, const std::string& sentence = "");
  void post_to_all(const Letter& letter, const std::string& sentence = "");
  /// Reads all letters that have arrived.
  void read_letters();
  void read(const Letter& letter, const std::string& sentence, int from);
  /// Ends the group, unless it has ended; rank 0 tells the others. What cuts short ends waits for bytes, too, because a
  /// rank does not answer.
  void end(std::int32_t error, const std::string& sentence, bool cuts_short);
  /// Rank 0 asks the ranks that have not come, or all while bytes travel; each other rank asks rank 0.
  void ask(bool for_bytes);
  /// The first that was asked and has not answered; -1: none.
  [[nodiscard]] int silent() const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::int64_t stall_ = 0;
  std::size_t piece_ = 0;
  bool has_core_ = false;  // no other rank of the host needs the core of this one
  bool has_left_ = false;

  core::Operation operation_ = core::Operation::barrier;  // that this rank is in, or was last
  std::atomic<bool> is_inside_ = false;
  bool may_go_ = false;
  std::vector<std::optional<Coming>> came_;  // of rank 0
  int came_count_ = 0;
  std::vector<bool> asked_;

  bool has_ended_ = false;
  bool is_cut_short_ = false;
  std::int32_t error_ = 0;
  std::string sentence_;
  std::string last_words_;  // of this rank, which abandons the group, and their ErrorCode
  std::int32_t last_error_ = 0;

  std::list<Posted> posted_;
  std::unique_ptr<std::byte[]> pieces_;
  std::size_t pieces_bytes_ = 0;
};

}  // namespace vicinal::mpi
