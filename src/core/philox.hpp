// Philox4x32-10 (Salmon et al. 2011): counter-based random numbers by (seed, stream, counter); contract clause 8.
// Host and device share it, so a draw is the same everywhere and can be made in any order.
#pragma once

#include <array>
#include <cstdint>

namespace vicinal::core {

/// The four words of one counter.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  std::array<std::uint32_t, 4> x = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return x;
}

/// A double in [0, 1) with 53 random bits.
constexpr double philox_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const auto x = philox(seed, stream, counter);
  const std::uint64_t bits = (std::uint64_t{x[0]} << 32 | x[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace vicinal::core
