// Contexts on devices: see include/vicinal/context.hpp.
#include "vicinal/context.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.hpp"
#include "core/context_state.hpp"
#include "core/entry.hpp"
#include "plugin/cuda/backend.hpp"
#include "plugin/cuda/crew.hpp"
#include "plugin/cuda/divided.hpp"
#include "plugin/cuda/loader.hpp"

namespace vicinal {
namespace {

CpuOptions host_options(const CudaOptions& options) {
  return {options.threads, options.memory_limit, options.progress, options.cancel, options.isa, options.map_files};
}

CudaOptions on_devices(std::vector<int> numbers, const CpuOptions& options) {
  CudaOptions cuda;
  cuda.devices = std::move(numbers);
  cuda.memory_limit = options.memory_limit;
  cuda.threads = options.threads;
  cuda.progress = options.progress;
  cuda.cancel = options.cancel;
  cuda.isa = options.isa;
  cuda.map_files = options.map_files;
  return cuda;
}

void check_devices(const std::vector<int>& devices) {
  if (devices.empty()) throw Error(ErrorCode::invalid_argument, "devices: none are given");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = "cuda:" + std::to_string(devices[i]);
    if (devices[i] < 0) {
      throw Error(ErrorCode::invalid_argument, "devices: there is no " + name + ", they are numbered from 0");
    }
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error(ErrorCode::invalid_argument, "devices: " + name + " is given twice");
    }
  }
}

/// A context's state on one device or several. A template, because the type is the context's own.
template <class State>
std::shared_ptr<State> open_devices(const CudaOptions& options) {
  check_devices(options.devices);
  std::string name = "cuda:";
  for (const int number : options.devices) name += (name.back() == ':' ? "" : ",") + std::to_string(number);
  // The options are checked before a device is opened.
  const CpuOptions host = host_options(options);
  auto state = std::make_shared<State>(host, name, nullptr);
  if (options.devices.size() == 1) {
    state->backend =
        plugin::make_backend(plugin::Device::open(options.devices[0], options.device_memory_limit, state->ablation));
  } else {
    state->backend = plugin::make_divided_backend(std::make_shared<plugin::Crew>(options, host, state->ablation));
  }
  return state;
}

}  // namespace

std::vector<int> cuda_devices_from(std::string_view name) try {
  const core::Entry entry;
  constexpr std::string_view kPrefix = "cuda:";
  if (name == "cuda") return {0};
  if (!name.starts_with(kPrefix)) return {};
  std::vector<int> numbers;
  for (std::size_t begin = kPrefix.size(); begin <= name.size();) {
    const std::size_t end = std::min(name.find(',', begin), name.size());
    int number = -1;
    const auto [rest, status] = std::from_chars(name.data() + begin, name.data() + end, number);
    if (status != std::errc{} || rest != name.data() + end || number < 0) return {};
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Context Context::cuda(const CudaOptions& options) try {
  const core::Entry entry;
  return Context(open_devices<State>(options));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Context Context::automatic(const CpuOptions& options) try {
  const core::Entry entry;
  const char* const variable = std::getenv("VICINAL_DEVICE");
  const std::string_view wanted = variable != nullptr ? variable : "";
  if (wanted == "cpu") return cpu(options);
  if (!wanted.empty() && wanted != "auto") {
    std::vector<int> numbers = cuda_devices_from(wanted);
    if (numbers.empty()) {
      throw Error(ErrorCode::invalid_argument, "VICINAL_DEVICE: '" + std::string(wanted) +
                                                   "' is not one of auto, cpu, cuda, cuda:0, cuda:0,1 and so on");
    }
    return cuda(on_devices(std::move(numbers), options));
  }
  if (!plugin::driver().missing.empty()) return cpu(options);
  try {
    return Context(open_devices<State>(on_devices({0}, options)));
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
