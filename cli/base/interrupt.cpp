// See interrupt.hpp. The handler touches only async-signal-safe things: an atomic, the list of temporaries, _exit.
#include "base/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "io/atomic_file.hpp"
#include "io/bytes.hpp"

namespace vicinal::cli {
namespace {

std::atomic<const CancelToken*> token_of_handler{nullptr};
std::atomic<int> signals_seen{0};
std::atomic<bool> json_wanted{false};

extern "C" void on_signal(int) {
  if (signals_seen.fetch_add(1) == 0) {
    if (const CancelToken* token = token_of_handler.load()) token->cancel();
    return;
  }
  io::remove_temporaries();
  _exit(exit_code(ErrorCode::cancelled));
}

void write_all(int stream, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(stream, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;  // the exit code still reports the error
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// As the inside of a JSON string. A name is printable already.
void write_json_text(int stream, std::string_view text) noexcept {
  for (const char& letter : text) {
    if (letter == '"' || letter == '\\') write_all(stream, "\\");
    write_all(stream, {&letter, 1});
  }
}

/// Reading a mapped file beyond its new end raises SIGBUS, and the work cannot go on. Any other SIGBUS is a fault: it
/// takes its usual course once the handler has returned.
extern "C" void on_bus_error(int, siginfo_t* info, void*) {
  const char* const file = io::mapped_file_at(info->si_addr);
  if (file == nullptr) {
    std::signal(SIGBUS, SIG_DFL);
    std::raise(SIGBUS);
    return;
  }
  static std::atomic<bool> reported{false};
  while (reported.exchange(true)) ::pause();  // another thread ends the process
  constexpr std::string_view kBegin = "cannot read '";
  constexpr std::string_view kEnd = "': it shrank while it was read";
  for (const std::string_view part : {std::string_view("vicinal: error: "), kBegin, std::string_view(file), kEnd}) {
    write_all(STDERR_FILENO, part);
  }
  write_all(STDERR_FILENO, "\n");
  if (json_wanted.load()) {
    write_all(STDOUT_FILENO, "{\n  \"error\": {\n    \"code\": \"io\",\n    \"message\": \"");
    for (const std::string_view part : {kBegin, std::string_view(file), kEnd}) write_json_text(STDOUT_FILENO, part);
    write_all(STDOUT_FILENO, "\"\n  }\n}\n");
  }
  io::remove_temporaries();
  _exit(exit_code(ErrorCode::io));
}

}  // namespace

const CancelToken& interrupt_token() {
  static const CancelToken token;
  return token;
}

void report_lost_files_as_json() {
  json_wanted.store(true);
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
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace vicinal::cli
