// The intrinsics of x86-64, for translation units of one instruction set.
#pragma once

// GCC 12 takes its own intrinsics' deliberately undefined operands for mistakes (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
