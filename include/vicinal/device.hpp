// Devices: which there are besides the CPU, and what is missing for those that cannot be used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal {

class Context;

/// A CUDA device as its driver describes it.
struct DeviceInfo {
  std::string name;            ///< "cuda:0", as `--device` and VICINAL_DEVICE take it
  std::string model;           ///< "NVIDIA H200"
  std::uint64_t memory = 0;    ///< bytes
  int compute_capability = 0;  ///< 90 for 9.0
};

/// What there is of CUDA on this machine.
struct CudaStatus {
  int driver_version = 0;           ///< the newest CUDA that the driver serves, such as 13000; 0 without a driver
  std::vector<DeviceInfo> devices;  ///< that the driver knows
  std::string plugin;               ///< file of the plug-in; empty when it is not there
  std::string architectures;        ///< that the plug-in was compiled for
  std::string missing;              ///< one sentence naming the first thing that is missing; empty: CUDA can be used
};

/// How the tensor cores of a context's device add, as a self-test found when the device was opened. Method fused rests
/// on it.
struct TensorCoreSums {
  std::string instruction;   ///< that multiplies: "wgmma" or "mma.sync"; empty: there are no tensor cores
  std::string model;         ///< whose bound on the error holds: "hopper", "ampere" or "volta"; empty: none does
  double largest_error = 0;  ///< that was seen, over the model's bound; over the widest one where none holds
};

/// Of a context on the CPU all is empty.
VICINAL_API TensorCoreSums tensor_core_sums(const Context& ctx);

/// Looks at driver and plug-in, without waking a device. Where there is no driver that is all it looks at.
VICINAL_API CudaStatus cuda_status();

}  // namespace vicinal
