// For functions of tests that do little but std::fma, which is one instruction where the processor has one and a call
// of the C library elsewhere, rounded the same.
#pragma once

/// The function and all it calls are compiled with that instruction and without; the loader takes what runs here.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VICINAL_WITH_AND_WITHOUT_FMA __attribute__((target_clones("default", "fma"), flatten))
#else
#define VICINAL_WITH_AND_WITHOUT_FMA
#endif
