// A pipe that a job reads more than once.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <utility>

#include "vicinal/error.hpp"

namespace vicinal::io {

/// While one lives the pipe at a path keeps what is read from it, so that it can be read again; then the bytes are let
/// go. Nothing for what is no pipe, and for standard input, which is kept for good.
class VICINAL_API HeldPipe {
 public:
  /// `path` as `Place::file` has it: "-" is no path.
  explicit HeldPipe(const std::filesystem::path& path);
  ~HeldPipe();
  HeldPipe(const HeldPipe&) = delete;
  HeldPipe& operator=(const HeldPipe&) = delete;

 private:
  std::pair<dev_t, ino_t> pipe_{};
  bool holds_ = false;
};

}  // namespace vicinal::io
