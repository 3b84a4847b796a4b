// See crew.hpp.
#include "plugin/cuda/crew.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fstream>
#include <locale>
#include <map>
#include <string_view>
#include <utility>

#include "backend/nearest.hpp"
#include "core/context_state.hpp"
#include "core/seconds.hpp"

namespace vicinal::plugin {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(5);  // between two looks at the cancel token

/// Of each list of devices in this process another one, below those of the host and of single devices.
int number_of(const std::vector<int>& devices) {
  static std::mutex mutex;
  static std::map<std::vector<int>, int> known;
  const std::lock_guard lock(mutex);
  return known.try_emplace(devices, kernels::kHost - 1 - static_cast<int>(known.size())).first->second;
}

/// What a device threw.
struct Fault {
  std::exception_ptr error;
  bool is_cancel = false;
  bool is_of_data = false;  ///< a lower device may meet a lower row
};

/// What a block source threw on the calling thread. No Error, so that no way out of an Error of the device is taken.
struct SourceFault {
  std::exception_ptr error;
};

/// The exception that is being handled.
Fault current_fault(const std::string& device) {
  try {
    throw;
  } catch (const SourceFault& fault) {
    return {fault.error};
  } catch (const Error& error) {
    return {std::make_exception_ptr(with_name_of(device, error)), error.code() == ErrorCode::cancelled,
            error.code() == ErrorCode::bad_data};
  } catch (...) {
    return {std::current_exception()};
  }
}

}  // namespace

std::vector<std::int64_t> equal_cuts(std::int64_t n, std::int64_t parts, std::int64_t unit) {
  const std::int64_t units = (n + unit - 1) / unit;
  const std::int64_t count = std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(units, 1));
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 0; i <= count; ++i) cuts.push_back(std::min(n, units * i / count * unit));
  return cuts;
}

/// Where the devices' threads say how far they are. Contexts outlive crews, so it is shared.
struct Crew::Board {
  struct Place {
    CancelToken cancel;
    std::string_view stage;
    double fraction = 0;
    bool ended = true;
    Fault fault;
    double seconds = 0;
  };

  /// What a device's thread waits for, on whose stack it lies.
  struct Errand {
    const std::function<void()>& work;
    std::exception_ptr error = {};
    bool left_out = false;  ///< after another one threw, or a cancel
    bool ended = false;
  };

  std::mutex mutex;
  std::condition_variable changed;  // for the calling thread
  std::condition_variable done;     // for those that wait for an errand
  bool woken = false;
  std::vector<Place> places;
  std::deque<Errand*> errands;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();  // the last phase
  std::chrono::steady_clock::time_point ended = begun;
};

Crew::Crew(const CudaOptions& options, const CpuOptions& host, core::Ablation ablation)
    : board_(std::make_shared<Board>()), number_(number_of(options.devices)), owner_(getpid()) {
  const std::size_t count = options.devices.size();
  if (const char* const times = std::getenv("VICINAL_DEVICE_TIMES")) times_ = times;
  board_->places = std::vector<Board::Place>(count);
  for (std::size_t i = 0; i < count; ++i) {
    CpuOptions own = host;
    own.threads = std::max(1, core::checked_threads(host.threads) / static_cast<int>(count));
    own.cancel = board_->places[i].cancel;
    own.progress = [board = board_, i](std::string_view stage, double fraction) {
      const std::lock_guard lock(board->mutex);
      board->places[i].stage = stage;
      board->places[i].fraction = fraction;
    };
    const int number = options.devices[i];
    const std::shared_ptr<Device> device = Device::open(number, options.device_memory_limit, ablation);
    device->name_errors();
    auto state = std::make_shared<core::ContextAccess::State>(own, "cuda:" + std::to_string(number), nullptr);
    state->backend = std::shared_ptr<const kernels::Backend>(std::shared_ptr<void>(), &kernels::cpu_backend());
    members_.push_back({device, core::ContextAccess::context(std::move(state))});
  }
}

Crew::~Crew() = default;

void Crew::wake() {
  {
    const std::lock_guard lock(board_->mutex);
    board_->woken = true;
  }
  board_->changed.notify_all();
}

/// The threads of one phase.
class Crew::Phase final : public CallersThread {
 public:
  Phase(Crew& crew, const Context& ctx, std::int64_t count, const std::function<void(std::int64_t)>& work)
      : crew_(crew), board_(*crew.board_), ctx_(ctx), count_(static_cast<std::size_t>(count)) {
    board_.woken = false;
    board_.begun = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count_; ++i) {
      Board::Place& place = board_.places[i];
      core::ContextAccess::set(place.cancel, false);
      place.stage = {};
      place.fraction = 0;
      place.fault = {};
      place.ended = false;
    }
    threads_.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const auto body = [this, i, &work, &device = crew.context(static_cast<std::int64_t>(i)).device()] {
        Fault fault;
        CallersThread::current() = this;
        try {  // in the floating-point environment of the thread that starts this one
          work(static_cast<std::int64_t>(i));
        } catch (...) {
          fault = current_fault(device);
        }
        end(i, std::move(fault));
      };
      try {
        threads_.emplace_back(body);
      } catch (const std::exception& error) {
        end(i,
            {std::make_exception_ptr(Error(
                ErrorCode::over_memory, std::string("threads: the system starts no more of them: ") + error.what()))});
      }
    }
  }
  ~Phase() override {
    for (std::thread& thread : threads_) thread.join();
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  void run(const std::function<void()>& work) override {
    Board::Errand errand{work};
    std::unique_lock lock(board_.mutex);
    board_.errands.push_back(&errand);
    board_.changed.notify_all();
    board_.done.wait(lock, [&] { return errand.ended; });
    if (errand.error) throw SourceFault{errand.error};
    if (errand.left_out) throw Error(ErrorCode::cancelled, "cancelled");
  }

  /// Until all threads have ended. What is called here may not ask the devices, which may wait for this thread.
  void attend(const std::function<void()>& meanwhile) {
    for (std::int64_t i = 0; i < crew_.size(); ++i) crew_.device(i)->attended_by(std::this_thread::get_id());
    for (bool ended = false; !ended;) {
      {
        std::unique_lock lock(board_.mutex);
        board_.changed.wait_for(lock, kPoll, [&] { return board_.woken || !board_.errands.empty() || has_ended(); });
        board_.woken = false;
        if (!board_.errands.empty()) do_errand(lock);
        ended = has_ended();
      }
      if (ctx_.cancel_token().cancelled()) cancel(0, count_);
      if (own_) continue;
      try {
        report(ended);
        if (meanwhile) meanwhile();
      } catch (...) {
        own_ = std::current_exception();
        cancel(0, count_);
      }
    }
    for (std::int64_t i = 0; i < crew_.size(); ++i) crew_.device(i)->attended_by({});
  }
  void finish() {
    std::exception_ptr first = failed_first() ? nullptr : own_;
    for (const bool cancels : {false, true}) {
      for (std::size_t i = 0; i < count_ && !first; ++i) {
        const Fault& fault = board_.places[i].fault;
        if (fault.is_cancel == cancels) first = fault.error;
      }
    }
    for (Board::Place& place : board_.places) place.fault = {};  // the crew may outlive what was thrown
    if (first) std::rethrow_exception(first);
  }

 private:
  /// The first one, without the lock, so that the next look at the cancel token is soon.
  void do_errand(std::unique_lock<std::mutex>& lock) {
    Board::Errand& errand = *board_.errands.front();
    board_.errands.pop_front();
    lock.unlock();
    errand.left_out = failed_errand_ || own_ || ctx_.cancel_token().cancelled();
    try {
      if (!errand.left_out) errand.work();
    } catch (...) {
      errand.error = std::current_exception();
      failed_errand_ = true;
    }
    lock.lock();
    errand.ended = true;
    board_.done.notify_all();
  }
  void end(std::size_t member, Fault fault) {
    {
      const std::lock_guard lock(board_.mutex);
      // Of what is wrong with the data the lowest row is named: the devices before this one go on.
      if (fault.error) cancel(fault.is_of_data ? member : 0, count_);
      board_.places[member].fault = std::move(fault);
      board_.places[member].seconds = seconds_since(board_.begun);
      board_.places[member].ended = true;
    }
    board_.changed.notify_all();
  }
  void cancel(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) core::ContextAccess::set(board_.places[i].cancel, true);
  }
  [[nodiscard]] bool has_ended() const {
    return std::all_of(board_.places.begin(), board_.places.begin() + static_cast<std::ptrdiff_t>(count_),
                       [](const Board::Place& place) { return place.ended; });
  }
  [[nodiscard]] bool failed_first() const {
    return std::any_of(board_.places.begin(), board_.places.begin() + static_cast<std::ptrdiff_t>(count_),
                       [](const Board::Place& place) { return place.fault.error && !place.fault.is_cancel; });
  }
  /// The mean of what the devices report of the stage in which the first of them is.
  void report(bool ended) {
    std::string_view stage;
    double sum = 0;
    {
      const std::lock_guard lock(board_.mutex);
      for (std::size_t i = 0; i < count_ && stage.empty(); ++i) {
        if (!board_.places[i].ended || ended) stage = board_.places[i].stage;
      }
      if (stage.empty()) return;
      for (std::size_t i = 0; i < count_; ++i) {
        const Board::Place& place = board_.places[i];
        sum += place.ended ? 1 : place.stage == stage ? place.fraction : 0;
      }
    }
    if (stage != stage_) told_ = 0;
    stage_ = stage;
    told_ = std::max(told_, std::min(1.0, sum / static_cast<double>(count_)));
    ctx_.report(stage, told_);
  }

  Crew& crew_;
  Board& board_;
  const Context& ctx_;
  std::size_t count_;
  std::vector<std::thread> threads_;
  std::exception_ptr own_;  // what the calling thread met
  bool failed_errand_ = false;
  std::string_view stage_;
  double told_ = 0;
};

/// A caller's turn: waits for it.
class Crew::Turn {
 public:
  Turn(Crew& crew, const Context& ctx) : crew_(crew) {
    if (crew.owner_ != getpid()) {
      throw Error(ErrorCode::device_unavailable,
                  crew.context(0).device() + " was opened before this process was forked; open it in the child");
    }
    if (crew.caller_ == std::this_thread::get_id()) refuse_callback(ctx.device());
    for (ctx.check_cancelled(); !crew.turn_.try_lock(); ctx.check_cancelled()) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    crew.caller_ = std::this_thread::get_id();
  }
  ~Turn() {
    crew_.caller_ = std::thread::id();
    crew_.turn_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Crew& crew_;
};

void Crew::run(const char* name, const Context& ctx, std::int64_t count, const std::function<void(std::int64_t)>& work,
               const std::function<void()>& meanwhile) {
  const Turn turn(*this, ctx);
  Phase phase(*this, ctx, std::min(count, size()), work);
  phase.attend(meanwhile);
  if (!times_.empty()) note(name, std::min(count, size()));
  phase.finish();
}

void Crew::note(const char* name, std::int64_t count) const {
  const std::chrono::duration<double> before = board_->begun - board_->ended;
  std::ofstream file(times_, std::ios::app);
  file.imbue(std::locale::classic());
  file << "{\"phase\": \"" << name << "\", \"host\": " << before.count() << ", \"devices\": [";
  for (std::int64_t i = 0; i < count; ++i) {
    file << (i > 0 ? ", " : "") << board_->places[static_cast<std::size_t>(i)].seconds;
  }
  file << "]}\n";
  board_->ended = std::chrono::steady_clock::now();
}

void Crew::run_here(const Context& ctx, std::int64_t member, const std::function<void()>& work) {
  const Turn turn(*this, ctx);
  // A phase of another call may have set it.
  core::ContextAccess::set(board_->places[static_cast<std::size_t>(member)].cancel, false);
  work();
}

}  // namespace vicinal::plugin
