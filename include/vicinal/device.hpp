// Devices: the CUDA devices of this machine, and what is missing if they cannot be used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// The CUDA driver, devices and plug-in of this machine.
struct CudaStatus {
  int driver_version = 0;  ///< the newest CUDA version that the driver supports, such as 13000; 0 without a driver
  std::vector<DeviceInfo> devices;  ///< those that the driver lists
  std::string plugin;               ///< file of the plug-in; empty if it is missing
  std::string architectures;        ///< those that the plug-in was compiled for
  std::string missing;              ///< one sentence naming the first thing that is missing; empty: CUDA can be used
};

/// How the tensor cores of a context's device round sums, measured by a self-test when the device is opened. Method
/// fused needs it.
struct TensorCoreSums {
  std::string instruction;   ///< the instruction that multiplies: "wgmma" or "mma.sync"; empty: no tensor cores
  std::string model;         ///< the model whose error bound holds: "hopper", "ampere" or "volta"; empty: none holds
  double largest_error = 0;  ///< largest error seen / bound of the model, or / the largest bound if no model holds
};

/// The numbers of the devices that "cuda" (0), "cuda:1" and "cuda:0,1,2" name, for CudaOptions::devices. Empty for any
/// other text.
VICINAL_API std::vector<int> cuda_devices_from(std::string_view name);

/// All fields are empty for a context on the CPU.
VICINAL_API TensorCoreSums tensor_core_sums(const Context& ctx);

/// Checks the driver, the devices and the plug-in without initializing a device. Never throws for missing parts:
/// `missing` names the first one.
VICINAL_API CudaStatus cuda_status();

}  // namespace vicinal
