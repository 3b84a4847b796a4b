// See group.hpp.
#include "mpi/group.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "mpi/process.hpp"
#include "mpi/waiting.hpp"
#include "vicinal/error.hpp"

namespace vicinal::mpi {
namespace {

using std::chrono::milliseconds;

// Tags of the duplicated communicator, which nobody else uses.
constexpr int kLetters = 1;
constexpr int kBytes = 2;
// Letters up to about this length leave without waiting for the receiver: below 4096 bytes in all usual transports.
constexpr std::size_t kLongestSentence = 1500;
constexpr std::int64_t kLongestStall = 1'000'000'000'000;  // 31 years, which a clock can still add
constexpr auto kIoError = static_cast<std::int32_t>(ErrorCode::io);
constexpr auto kMemoryError = static_cast<std::int32_t>(ErrorCode::over_memory);

std::uint64_t digest(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  return hash;
}

/// Where piece i of `count` begins in so many bytes; all of a size within one of each other.
std::size_t piece_begin(std::size_t bytes, std::size_t i, std::size_t count) {
  return bytes / count * i + std::min(i, bytes % count);
}

int as_count(std::size_t bytes) {
  return static_cast<int>(bytes);  // of a piece, at most 2^30
}

void copy(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

/// The beginning of a sentence, not cut within a character of UTF-8.
std::string shortened(const std::string& sentence) {
  std::size_t end = std::min(sentence.size(), kLongestSentence);
  while (end > 0 && end < sentence.size() && (static_cast<unsigned char>(sentence[end]) & 0xC0U) == 0x80U) --end;
  return sentence.substr(0, end);
}

}  // namespace

void check_mpi(int returned) {
  if (returned == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(returned, text.data(), &length);
  throw Fault(kIo, "communicator: MPI: " + std::string(text.data(), static_cast<std::size_t>(length)));
}

Group::Group(const Opening& opening, Facts& facts) : stall_(std::min(opening.stall_milliseconds, kLongestStall)) {
  start();
  duplicate(opening);
  came_.resize(static_cast<std::size_t>(size_));
  asked_.resize(static_cast<std::size_t>(size_));
  enlist(this);
  try {
    find_neighbors(opening, facts);
  } catch (...) {
    leave();
    strike_off(this);
    throw;
  }
}

Group::~Group() {
  leave();
  strike_off(this);
}

// What has not gone yet needs its memory until MPI ends, as the communicator does: its message may still arrive.
Group::Posted::~Posted() {
  if (request != MPI_REQUEST_NULL) (void)bytes.release();
}

void Group::duplicate(const Opening& opening) {
  MPI_Comm parent = MPI_COMM_WORLD;
  if (opening.communicator != nullptr) parent = *static_cast<const MPI_Comm*>(opening.communicator);
  int is_between_groups = 0;
  if (parent != MPI_COMM_NULL) check_mpi(MPI_Comm_test_inter(parent, &is_between_groups));
  if (parent == MPI_COMM_NULL || is_between_groups != 0) {
    throw Fault(kInvalidArgument, "communicator: must be an intracommunicator of MPI that this process is in");
  }
  check_mpi(MPI_Comm_rank(parent, &rank_));
  check_mpi(MPI_Comm_size(parent, &size_));
  if (size_ > opening.max_ranks) {
    throw Fault(kInvalidArgument, "communicator: has " + std::to_string(size_) + " ranks, must have at most " +
                                      std::to_string(opening.max_ranks));
  }
  auto duplicated = std::make_unique<MPI_Comm>(MPI_COMM_NULL);  // not of this object, which may not be there then
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(parent, duplicated.get(), &request));
  Waiting waiting(false);
  for (int done = 0;;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) break;
    const auto now = Clock::now();
    if (stall_ > 0 && now - waiting.begun() > milliseconds(stall_)) {
      (void)duplicated.release();
      abort_at_end();
      throw Fault(kIo, "communicator: not every rank came within " + std::to_string(stall_) + " ms to make it");
    }
    waiting.pause(now);
  }
  comm_ = *duplicated;
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

// In the same exchange ranks see that they asked for pieces of one size, without which they would not fit together.
void Group::find_neighbors(const Opening& opening, Facts& facts) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> host = {};
  int length = 0;
  check_mpi(MPI_Get_processor_name(host.data(), &length));
  const std::array<std::uint64_t, 2> own = {
      digest(std::as_bytes(std::span(host).first(static_cast<std::size_t>(length)))),
      static_cast<std::uint64_t>(opening.piece_bytes)};
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(size_), sizeof own);
  std::vector<std::uint64_t> all(own.size() * sizes.size());
  piece_ = 1 << 20;
  all_gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  piece_ = static_cast<std::size_t>(opening.piece_bytes);
  facts = {rank_, size_, 0};
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    facts.ranks_on_host += all[own.size() * rank] == own[0] ? 1 : 0;
    if (all[own.size() * rank + 1] == all[1]) continue;
    throw Fault(kInvalidArgument, "piece_bytes: is not the same on ranks 0 and " + std::to_string(rank));
  }
  has_core_ = static_cast<unsigned>(facts.ranks_on_host) <= std::thread::hardware_concurrency();
}

// ---- operations -----------------------------------------------------------------------------------------------------

void Group::broadcast(std::span<std::byte> data, int root) {
  std::byte* const piece = pieces(piece_of(data.size()));
  Coming own;
  static_cast<core::Coming&>(own) = {core::Operation::broadcast, data.size(), data.size(), root};
  operate(own, {}, [&] {
    while (!data.empty()) {
      const auto now = data.first(piece_of(data.size()));
      if (rank_ == root) copy(now, piece);
      std::array<MPI_Request, 1> request = {MPI_REQUEST_NULL};
      check_mpi(MPI_Ibcast(piece, as_count(now.size()), MPI_BYTE, root, comm_, request.data()));
      complete(request);
      if (rank_ != root) std::memcpy(now.data(), piece, now.size());
      data = data.subspan(now.size());
    }
  });
}

// Each turn takes the same share of every part, so that parts of any sizes travel side by side.
void Group::all_gather(std::span<const std::byte> part, std::span<const std::int64_t> sizes, std::span<std::byte> all) {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t turns = all.empty() ? 0 : (all.size() - 1) / piece_ + 1;
  const std::size_t most = turns == 0 ? 0 : std::min(all.size(), piece_ + ranks);
  const std::size_t own_most = turns == 0 ? 0 : part.size() / turns + 1;
  // MPI may use counts and places as long as the bytes.
  auto* const counts = reinterpret_cast<int*>(pieces(2 * ranks * sizeof(int) + own_most + most));
  int* const places = counts + ranks;
  auto* const sent = reinterpret_cast<std::byte*>(places + ranks);
  std::byte* const received = sent + own_most;
  Coming own;
  static_cast<core::Coming&>(own) = {core::Operation::all_gather, all.size(), part.size(), 0};
  own.parts = digest(std::as_bytes(sizes));
  operate(own, sizes, [&] {
    for (std::size_t turn = 0; turn < turns; ++turn) {
      int at = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto bytes = static_cast<std::size_t>(sizes[rank]);
        counts[rank] = as_count(piece_begin(bytes, turn + 1, turns) - piece_begin(bytes, turn, turns));
        places[rank] = at;
        at += counts[rank];
      }
      const int count = counts[static_cast<std::size_t>(rank_)];
      copy(part.subspan(piece_begin(part.size(), turn, turns), static_cast<std::size_t>(count)), sent);
      std::array<MPI_Request, 1> request = {MPI_REQUEST_NULL};
      check_mpi(MPI_Iallgatherv(sent, count, MPI_BYTE, received, counts, places, MPI_BYTE, comm_, request.data()));
      complete(request);
      std::size_t begin = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto bytes = static_cast<std::size_t>(sizes[rank]);
        copy({received + places[rank], static_cast<std::size_t>(counts[rank])},
             all.data() + begin + piece_begin(bytes, turn, turns));
        begin += bytes;
      }
    }
  });
}

// Sums are of numbers without a sign, which may pass 2^64.
void Group::all_reduce(std::span<std::int64_t> values, Reduction reduction) {
  std::byte* const piece = pieces(piece_of(values.size_bytes()));
  const bool sums = reduction == kSum;
  Coming own;
  static_cast<core::Coming&>(own) = {sums ? core::Operation::sum : core::Operation::max, values.size_bytes(),
                                     values.size_bytes(), 0};
  operate(own, {}, [&] {
    while (!values.empty()) {
      const auto now = values.first(piece_of(values.size_bytes()) / sizeof(std::int64_t));
      copy(std::as_bytes(now), piece);
      std::array<MPI_Request, 1> request = {MPI_REQUEST_NULL};
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, piece, as_count(now.size()), sums ? MPI_UINT64_T : MPI_INT64_T,
                               sums ? MPI_SUM : MPI_MAX, comm_, request.data()));
      complete(request);
      std::memcpy(now.data(), piece, now.size_bytes());
      values = values.subspan(now.size());
    }
  });
}

void Group::send_receive(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from) {
  const std::size_t room = std::min(piece_, std::max(sent.size(), received.size()));
  std::byte* const outgoing = pieces(2 * room);
  std::byte* const incoming = outgoing + room;
  Coming own;
  static_cast<core::Coming&>(own) = {core::Operation::send_receive, 0, sent.size(), to};
  own.from = from;
  own.received = received.size();
  operate(own, {}, [&] {
    while (!sent.empty() || !received.empty()) {
      const auto out = sent.first(piece_of(sent.size()));
      const auto in = received.first(piece_of(received.size()));
      copy(out, outgoing);
      std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      if (!in.empty()) {
        check_mpi(MPI_Irecv(incoming, as_count(in.size()), MPI_BYTE, from, kBytes, comm_, requests.data()));
      }
      if (!out.empty()) {
        check_mpi(MPI_Isend(outgoing, as_count(out.size()), MPI_BYTE, to, kBytes, comm_, &requests[1]));
      }
      complete(requests);
      copy({incoming, in.size()}, in.data());
      sent = sent.subspan(out.size());
      received = received.subspan(in.size());
    }
  });
}

void Group::barrier() {
  operate({}, {}, [] {});
}

// The first to end a group is who rank 0 hears first. A rank that ends it waits for that answer as it would wait in an
// operation.
Ended Group::abandon(std::int32_t error, const std::string& sentence) {
  require_mpi();
  const std::string own = "rank " + std::to_string(rank_) + ": " + shortened(sentence);
  read_letters();
  if (!has_ended_ && rank_ == 0) end(error, own, false);
  if (!has_ended_) {
    post(0, {Kind::abandon, error, 0, {}}, own);
    last_words_ = own;
    last_error_ = error;
    const Inside inside(is_inside_);
    try {
      wait([] { return false; }, false);
    } catch (const Ended&) {
    }
  }
  return {error_, sentence_};
}

void Group::leave() noexcept {
  if (std::exchange(has_left_, true)) return;
  try {
    require_mpi();
    read_letters();
    const std::string sentence = core::has_left(rank_);
    if (rank_ == 0) {
      end(kIoError, sentence, false);
    } else if (!has_ended_) {
      post(0, {Kind::left, kIoError, 0, {}}, sentence);
    }
  } catch (...) {  // the others end by their stall limit
  }
}

// ---- meetings -------------------------------------------------------------------------------------------------------

void Group::require_whole() {
  if (has_ended_) throw Ended(error_, sentence_);
}

void Group::fail(const std::string& sentence) {
  end(kIoError, sentence, false);
  throw Ended(error_, sentence_);
}

void Group::operate(const Coming& own, std::span<const std::int64_t> sizes, const std::function<void()>& travel) {
  require_mpi();
  const Inside inside(is_inside_);
  try {
    meet(own, sizes);
    travel();
  } catch (const Ended&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_alone(kMemoryError,
               "communicator: the system has no memory for " + std::string(core::operation_name(own.operation)));
  } catch (const std::exception& error) {
    fail_alone(kIoError, error.what());
  }
}

// The others would wait for bytes that this rank no longer sends.
void Group::fail_alone(std::int32_t error, const std::string& sentence) {
  (void)pieces_.release();  // MPI may still use them
  pieces_bytes_ = 0;
  end(error, "rank " + std::to_string(rank_) + ": " + shortened(sentence), true);
  if (rank_ != 0) post(0, {Kind::abandon, error_, 1, {}}, sentence_);
  throw Ended(error_, sentence_);
}

void Group::meet(const Coming& own, std::span<const std::int64_t> sizes) {
  operation_ = own.operation;
  read_letters();
  require_whole();
  may_go_ = false;
  if (rank_ != 0) {
    post(0, {Kind::come, 0, 0, own});
    wait([this] { return may_go_; }, false);
    return;
  }
  came_[0] = own;
  ++came_count_;
  wait([this] { return came_count_ == size_ && !has_ended_; }, false);
  if (const std::string text = disagreement(sizes); !text.empty()) fail(text);
  for (auto& coming : came_) coming.reset();
  came_count_ = 0;
  post_to_all({Kind::go, 0, 0, {}});
}

std::string Group::disagreement(std::span<const std::int64_t> sizes) const {
  const Coming& first = *came_[0];
  for (int rank = 1; rank < size_; ++rank) {
    std::string text = core::difference(first, *came_[static_cast<std::size_t>(rank)], rank);
    if (!text.empty()) return text;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const Coming& its = *came_[static_cast<std::size_t>(rank)];
    if (first.operation == core::Operation::all_gather) {
      const auto expected = static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]);
      if (its.data_bytes != expected) return core::misfit(0, expected, rank, its.data_bytes);
      if (its.parts != first.parts) {
        return "communicator: ranks 0 and " + std::to_string(rank) + " expect parts of different sizes";
      }
    }
    if (first.operation == core::Operation::send_receive) {
      const Coming& sender = *came_[static_cast<std::size_t>(its.from)];
      if (sender.peer != rank || sender.data_bytes != its.received) {
        return core::unsent(rank, its.received, its.from, sender.data_bytes, sender.peer);
      }
    }
  }
  return "";
}

// ---- waiting --------------------------------------------------------------------------------------------------------

void Group::wait(const std::function<bool()>& is_done, bool for_bytes) {
  const auto limit = milliseconds(stall_);
  const auto grace = std::clamp(limit / 2, milliseconds(200), milliseconds(10'000));
  Waiting waiting(has_core_);
  auto since = waiting.begun();
  bool has_asked = false;
  for (;;) {
    read_letters();
    if (is_done()) return;
    if (has_ended_ && (is_cut_short_ || !for_bytes)) throw Ended(error_, sentence_);
    const auto now = Clock::now();
    if (stall_ > 0 && !has_asked && now - since > limit) {
      ask(for_bytes);
      has_asked = true;
      since = now;
    } else if (has_asked && silent() < 0) {
      has_asked = false;
      since = now;
    } else if (has_asked && now - since > grace) {
      const bool abandons = !last_words_.empty();
      end(abandons ? last_error_ : kIoError, abandons ? last_words_ : core::absent(silent(), stall_, operation_), true);
      if (rank_ != 0) post(0, {Kind::abandon, error_, 1, {}}, sentence_);
      throw Ended(error_, sentence_);
    }
    waiting.pause(now);
  }
}

void Group::complete(std::span<MPI_Request> requests) {
  try {
    wait(
        [&] {
          int done = 0;
          check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
          return done != 0;
        },
        true);
  } catch (...) {
    (void)pieces_.release();  // MPI may still use them
    pieces_bytes_ = 0;
    throw;
  }
}

std::size_t Group::piece_of(std::size_t bytes) const {
  return std::min(bytes, piece_);
}

std::byte* Group::pieces(std::size_t bytes) {
  if (bytes > pieces_bytes_) {
    pieces_bytes_ = 0;
    pieces_.reset();
    pieces_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    pieces_bytes_ = bytes;
  }
  return pieces_.get();
}

void Group::ask(bool for_bytes) {
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    asked_[at] = rank != rank_ && (rank_ != 0 ? rank == 0 : for_bytes || !came_[at].has_value());
    if (asked_[at]) post(rank, {Kind::ask, 0, 0, {}});
  }
}

int Group::silent() const {
  const auto found = std::find(asked_.begin(), asked_.end(), true);
  return found == asked_.end() ? -1 : static_cast<int>(found - asked_.begin());
}

void Group::end(std::int32_t error, const std::string& sentence, bool cuts_short) {
  if (cuts_short) abort_at_end();
  if (has_ended_ && (is_cut_short_ || !cuts_short)) return;
  if (!has_ended_) {
    sentence_ = sentence;
    error_ = error;
    has_ended_ = true;
  }
  is_cut_short_ = cuts_short;
  if (rank_ == 0) post_to_all({Kind::end, error_, cuts_short ? 1 : 0, {}}, sentence_);
}

// ---- letters --------------------------------------------------------------------------------------------------------

void Group::post(int to, const Letter& letter, const std::string& sentence) {
  const std::size_t bytes = sizeof letter + sentence.size();
  Posted& posted = posted_.emplace_back();
  posted.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memcpy(posted.bytes.get(), &letter, sizeof letter);
  std::memcpy(posted.bytes.get() + sizeof letter, sentence.data(), sentence.size());
  check_mpi(MPI_Isend(posted.bytes.get(), as_count(bytes), MPI_BYTE, to, kLetters, comm_, &posted.request));
}

void Group::post_to_all(const Letter& letter, const std::string& sentence) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) post(rank, letter, sentence);
  }
}

void Group::read_letters() {
  for (auto posted = posted_.begin(); posted != posted_.end();) {
    int done = 0;
    check_mpi(MPI_Test(&posted->request, &done, MPI_STATUS_IGNORE));
    posted = done != 0 ? posted_.erase(posted) : std::next(posted);
  }
  for (;;) {
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kLetters, comm_, &there, &status));
    if (there == 0) return;
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes));
    std::vector<std::byte> arrived(static_cast<std::size_t>(bytes));
    check_mpi(MPI_Recv(arrived.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kLetters, comm_, MPI_STATUS_IGNORE));
    Letter letter;
    if (arrived.size() < sizeof letter) throw Fault(kInternal, "communicator: a letter is cut");
    std::memcpy(&letter, arrived.data(), sizeof letter);
    read(letter, {reinterpret_cast<const char*>(arrived.data()) + sizeof letter, arrived.size() - sizeof letter},
         status.MPI_SOURCE);
  }
}

void Group::read(const Letter& letter, const std::string& sentence, int from) {
  const auto at = static_cast<std::size_t>(from);
  switch (letter.kind) {
    case Kind::come:
      came_[at] = letter.coming;
      ++came_count_;
      return;
    case Kind::go:
      may_go_ = true;
      return;
    case Kind::end:
    case Kind::abandon:
    case Kind::left:
      end(letter.error, sentence, letter.cuts_short != 0);
      return;
    case Kind::ask:
      if (is_inside_) post(from, {Kind::answer, 0, 0, {}});
      return;
    case Kind::answer:
      asked_[at] = false;
      return;
  }
}

}  // namespace vicinal::mpi
