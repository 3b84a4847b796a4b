// What every public function does first and last (contract clauses 1 and 10). A public function is a
// function-try-block:
//   Result f(...) try {
//     const core::Entry entry;
//     ...
//   } catch (const std::bad_alloc&) {
//     core::refuse_allocation();
//   }
// One that returns a double returns core::computed of it (core/floats.hpp).
// tests/manners/test_entries.py asks it of every exported function.
#pragma once

#include <cerrno>
#include <new>

#include "core/floats.hpp"
#include "core/memory.hpp"

namespace vicinal::core {

/// The default floating-point environment for a scope, after which the caller's environment and errno are as before.
class Entry {
 public:
  Entry() noexcept = default;
  ~Entry() { errno = errno_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  int errno_ = errno;
  DefaultFloats floats_;
};

}  // namespace vicinal::core
