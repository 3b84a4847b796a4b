// What the fuzzers' targets share: the input as a file that takes no disk, and what may come of reading it: a table, or
// one of the library's errors that is not `internal`. Anything else ends the process, which is what libFuzzer looks
// for.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/table_access.hpp"
#include "vicinal/io.hpp"

namespace vicinal::fuzz {

/// A file in memory, written anew for each input.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) {
    static const int kFile = memfd_create("input", 0);
    if (kFile < 0 || ftruncate(kFile, 0) != 0) std::abort();
    if (pwrite(kFile, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
    path_ = "/proc/self/fd/" + std::to_string(kFile);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// One thread, and little memory, so that a file that asks for much is refused soon.
inline const Context& context() {
  static const Context kContext = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{32} << 20});
  return kContext;
}

/// Runs what may throw an error of the library's, but no `internal` one.
template <class Call>
void attempt(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal || error.what()[0] == '\0') std::abort();
  }
}

/// Reads the input as a table, looking at every number, as labels, and as what describes it.
inline void read_all(const Input& input, const ReadOptions& options) {
  attempt([&] {
    const Table table = read_table(context(), input.path(), options);
    std::vector<double> row(static_cast<std::size_t>(table.view.cols()));
    for (std::int64_t i = 0; i < table.view.rows(); ++i) core::widen_rows(table.view, i, i + 1, row.data());
  });
  attempt([&] { (void)describe_file(context(), input.path(), options.format); });
}

}  // namespace vicinal::fuzz
