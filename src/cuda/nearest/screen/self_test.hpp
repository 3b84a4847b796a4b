// Whether a device's matrix unit adds as the float16 screen assumes. The bound of formulas/nearest/half_screen.hpp
// rests on a model of the hardware that no maker documents; so a device is tried before it is trusted (self_test.cu,
// formulas/nearest/sums_test.hpp).
#pragma once

#include "cuda/base/device.hpp"

namespace vicinal::cuda {

/// Fills engine.sums with the narrowest model that no sum of the test breaks, and engine.warp_sums likewise for
/// mma.sync, where the screens take wgmma. Where wgmma fits none, the engine goes on with mma.sync (engine.portable).
/// Asked once a device, instruction and process: some 10 ms for each and half a megabyte of device memory, which the
/// limit does not count, as it does not count what the driver takes.
void test_sums(Engine& engine);

}  // namespace vicinal::cuda
