// The instruction sets that tests of kernels go through.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/error.hpp"

namespace vicinal {

/// Those of this machine; what it lacks is printed.
inline std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      static_cast<void>(Context::cpu({.threads = 1, .isa = isa}));
      found.push_back(isa);
    } catch (const Error&) {
      std::printf("1 instruction set skipped: this machine lacks %s\n", std::string(name_of(isa)).c_str());
    }
  }
  return found;
}

}  // namespace vicinal
