// See interrupt.hpp. The handler touches only async-signal-safe things: an atomic, the list of temporaries, _exit.
#include "interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "io/atomic_file.hpp"

namespace vicinal::cli {
namespace {

std::atomic<const CancelToken*> token_of_handler{nullptr};
std::atomic<int> signals_seen{0};

extern "C" void on_signal(int) {
  if (signals_seen.fetch_add(1) == 0) {
    if (const CancelToken* token = token_of_handler.load()) token->cancel();
    return;
  }
  io::remove_temporaries();
  _exit(exit_code(ErrorCode::cancelled));
}

/// Reading a mapped file beyond its new end raises SIGBUS. The work cannot go on.
extern "C" void on_lost_bytes(int) {
  constexpr char kSentence[] = "vicinal: error: a file shrank while it was read\n";
  if (::write(STDERR_FILENO, kSentence, sizeof(kSentence) - 1) < 0) {
    // Stderr cannot be written; the exit code still reports the error.
  }
  io::remove_temporaries();
  _exit(exit_code(ErrorCode::io));
}

}  // namespace

const CancelToken& interrupt_token() {
  static const CancelToken token;
  return token;
}

void install_signal_handlers() {
  token_of_handler.store(&interrupt_token());
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction inherited = {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup and the like
  }
  action.sa_handler = on_lost_bytes;
  sigaction(SIGBUS, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace vicinal::cli
