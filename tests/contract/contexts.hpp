// Contexts of several kinds for operations that are asked in every one of them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"

namespace vicinal::contract {

/// The CUDA device where there is one, and 1, 2, 3 and 7 threads, an instruction set each that `turn` varies.
inline std::vector<Context> contexts(std::uint64_t turn) {
  std::vector<Context> made;
  const char* const asked = std::getenv("VICINAL_TEST_DEVICE");
  const std::string device = asked != nullptr ? asked : "";
  if (device != "cpu" && cuda_missing().empty()) made.push_back(cuda_context());
  if (device == "cuda") return made;
  const auto& isas = available_isas();
  std::size_t i = turn;
  for (const int threads : {1, 2, 3, 7}) {
    const Isa isa = isas[i++ % isas.size()];
    if (threads >= kFewestThreads) made.push_back(Context::cpu({.threads = threads, .isa = isa}));
  }
  return made;
}

/// The CPU with as many threads.
inline Context on(int threads) {
  return Context::cpu({.threads = threads});
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace vicinal::contract
