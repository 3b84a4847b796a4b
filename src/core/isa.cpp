// Instruction sets by cpuid. The compiler's own test also asks the operating system (XGETBV) whether it saves the wide
// registers. The lists are those of the compiler flags in src/CMakeLists.txt: a kernel may use all of them.
#include "core/isa.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

namespace vicinal::core {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
// Not every compiler's __builtin_cpu_supports knows this name.
bool has_f16c() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

bool has_isa(Isa isa) noexcept {
  switch (isa) {
    case Isa::automatic:
    case Isa::baseline:
      return true;
#if defined(__x86_64__) && defined(__GNUC__)
    case Isa::avx2:
      __builtin_cpu_init();
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") &&
             __builtin_cpu_supports("pclmul");
    case Isa::avx512:
      return has_isa(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
#else
    case Isa::avx2:
    case Isa::avx512:
      return false;
#endif
  }
  return false;
}

bool has_feature(Feature feature) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  switch (feature) {
    case Feature::avx512_vnni:
      return has_isa(Isa::avx512) && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
    case Feature::avx512_bf16:
      return has_isa(Isa::avx512) && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
    case Feature::avx_vnni:
      return has_isa(Isa::avx2) && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
    case Feature::zen:
      return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == 0x68747541 && d == 0x69746E65 && c == 0x444D4163;
  }
#else
  static_cast<void>(feature);
#endif
  return false;
}

Isa resolve_isa(Isa wanted) {
  std::string origin;
  if (wanted == Isa::automatic) {
    const char* name = std::getenv("VICINAL_ISA");
    if (name != nullptr && *name != '\0') {
      try {
        wanted = isa_from(name);
      } catch (const Error& error) {
        throw Error(error.code(), std::string("environment variable VICINAL_ISA: ") + error.what());
      }
      origin = " (from the environment variable VICINAL_ISA)";
    }
  }
  if (wanted == Isa::automatic) {
    if (has_isa(Isa::avx512)) return Isa::avx512;
    return has_isa(Isa::avx2) ? Isa::avx2 : Isa::baseline;
  }
  if (!has_isa(wanted)) {
    throw Error(ErrorCode::device_unavailable,
                "instruction set " + std::string(name_of(wanted)) + origin + " is not there on this machine");
  }
  return wanted;
}

}  // namespace vicinal::core
