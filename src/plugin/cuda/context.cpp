// Contexts on devices: see include/vicinal/context.hpp.
#include "vicinal/context.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "backend/backend.hpp"
#include "core/context_state.hpp"
#include "core/entry.hpp"
#include "plugin/cuda/backend.hpp"
#include "plugin/cuda/loader.hpp"

namespace vicinal {
namespace {

CpuOptions host_options(const CudaOptions& options) {
  return {options.threads, options.memory_limit, options.progress, options.cancel, options.isa, options.map_files};
}

CudaOptions on_device(int number, const CpuOptions& options) {
  CudaOptions cuda;
  cuda.devices = {number};
  cuda.memory_limit = options.memory_limit;
  cuda.threads = options.threads;
  cuda.progress = options.progress;
  cuda.cancel = options.cancel;
  cuda.isa = options.isa;
  cuda.map_files = options.map_files;
  return cuda;
}

/// The number in "cuda" and "cuda:1", or -1.
int device_number(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return -1;
  const std::string_view digits = name.substr(5);
  int number = -1;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return status == std::errc{} && end == digits.data() + digits.size() ? number : -1;
}

/// A context's state on a device. A template, because the type is the context's own.
template <class State>
std::shared_ptr<State> open_device(const CudaOptions& options) {
  if (options.devices.size() != 1) {
    throw Error(ErrorCode::invalid_argument, "devices: " + std::to_string(options.devices.size()) +
                                                 " were given, but a context runs on exactly one, for now");
  }
  if (options.devices[0] < 0) {
    throw Error(ErrorCode::invalid_argument,
                "devices: there is no cuda:" + std::to_string(options.devices[0]) + ", they are numbered from 0");
  }
  // The options are checked before the device is opened.
  auto state = std::make_shared<State>(host_options(options), "cuda:" + std::to_string(options.devices[0]), nullptr);
  state->backend =
      plugin::make_backend(plugin::Device::open(options.devices[0], options.device_memory_limit, state->ablation));
  return state;
}

}  // namespace

Context Context::cuda(const CudaOptions& options) try {
  const core::Entry entry;
  return Context(open_device<State>(options));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Context Context::automatic(const CpuOptions& options) try {
  const core::Entry entry;
  const char* const variable = std::getenv("VICINAL_DEVICE");
  const std::string_view wanted = variable != nullptr ? variable : "";
  if (wanted == "cpu") return cpu(options);
  if (!wanted.empty() && wanted != "auto") {
    const int number = device_number(wanted);
    if (number < 0) {
      throw Error(ErrorCode::invalid_argument, "VICINAL_DEVICE: '" + std::string(wanted) +
                                                   "' is not one of auto, cpu, cuda, cuda:0, cuda:1 and so on");
    }
    return cuda(on_device(number, options));
  }
  if (!plugin::driver().missing.empty()) return cpu(options);
  try {
    return Context(open_device<State>(on_device(0, options)));
  } catch (const Error& error) {
    // No plug-in, or none for this device: nobody asked for it. What is wrong with the options, the CPU says again.
    if (error.code() != ErrorCode::device_unavailable) throw;
    return cpu(options);
  }
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

TensorCoreSums tensor_core_sums(const Context& ctx) try {
  const core::Entry entry;
  return kernels::backend_of(ctx).tensor_core_sums();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
