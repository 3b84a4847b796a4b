// See machine.hpp. Instruction sets are found by asking the library for each, so that what is said is what would run.
#include "base/machine.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "vicinal/context.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) != 0 && line.rfind("Model", 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::uint64_t meminfo(const std::string& field) {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(field + ":", 0) != 0) continue;
    std::istringstream words(line.substr(field.size() + 1));
    std::uint64_t kib = 0;
    words >> kib;
    return kib * 1024;
  }
  return 0;
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.cpu = processor_name();
  machine.cores_online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.cores_allowed = allowed_cores();
  machine.memory_total = meminfo("MemTotal");
  machine.memory_available = meminfo("MemAvailable");
  const Context ctx = Context::cpu();
  machine.cores_used = ctx.threads();
  machine.memory_limit = ctx.memory_limit();
  machine.isa = name_of(ctx.isa());
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      CpuOptions options;
      options.threads = 1;
      options.isa = isa;
      Context::cpu(options);
      machine.isas.emplace_back(name_of(isa));
    } catch (const Error&) {
      // Not there: that is the answer.
    }
  }
  machine.cuda = cuda_status();
  return machine;
}

Json to_json(const CudaStatus& cuda) {
  Json devices = Json::array();
  for (const DeviceInfo& device : cuda.devices) {
    devices.push_back({{"name", device.name},
                       {"model", device.model},
                       {"memory_bytes", device.memory},
                       {"compute_capability", version_text(device.compute_capability)}});
  }
  return {{"usable", cuda.missing.empty()},
          {"missing", cuda.missing.empty() ? Json(nullptr) : Json(cuda.missing)},
          {"driver_version", cuda.driver_version > 0 ? Json(cuda.driver_version) : Json(nullptr)},
          {"devices", devices},
          {"plugin", cuda.plugin.empty() ? Json(nullptr) : Json(cuda.plugin)},
          {"architectures", cuda.architectures.empty() ? Json(nullptr) : Json(cuda.architectures)}};
}

Json machine_of_results() {
  Machine machine = look_at_machine();
  machine.cuda.plugin = std::filesystem::path(machine.cuda.plugin).filename().string();
  return to_json(machine);
}

std::string date_of_results() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Json head_of_results(const std::string& command, const std::string& commit) {
  return {{"command", command},
          {"date", date_of_results()},
          {"version", VICINAL_VERSION},
          {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
          {"machine", machine_of_results()}};
}

std::string version_text(int tenfold) {
  return fmt::format("{}.{}", tenfold / 10, tenfold % 10);
}

Json to_json(const Machine& machine) {
  Json json = {{"cpu", machine.cpu},
               {"cores_online", machine.cores_online},
               {"cores_allowed", machine.cores_allowed},
               {"cores_used", machine.cores_used},
               {"memory_total_bytes", machine.memory_total},
               {"memory_available_bytes", machine.memory_available},
               {"memory_limit_bytes", machine.memory_limit},
               {"isas", machine.isas},
               {"isa", machine.isa},
               {"cuda", to_json(machine.cuda)}};
  return json;
}

}  // namespace vicinal::cli
