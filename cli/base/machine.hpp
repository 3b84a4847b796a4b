// What the command can say about the machine it runs on: processor, cores, memory, instruction sets, driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "vicinal/device.hpp"

namespace vicinal::cli {

struct Machine {
  std::string cpu;                     ///< model name, "unknown" when the system does not say
  int cores_online = 0;                ///< of the machine
  int cores_allowed = 0;               ///< by the affinity mask
  int cores_used = 0;                  ///< what --threads 0 takes: affinity cut by the cgroup's quota
  std::uint64_t memory_total = 0;      ///< bytes
  std::uint64_t memory_available = 0;  ///< bytes the kernel could hand out now
  std::uint64_t memory_limit = 0;      ///< bytes, the default of --memory-limit
  std::vector<std::string> isas;       ///< that the library can use here, narrowest first
  std::string isa;                     ///< that it uses by default
  CudaStatus cuda;                     ///< driver, devices and plug-in
};

/// Looks once; about a millisecond, and some tenths of a second where there is a driver.
Machine look_at_machine();
Json to_json(const CudaStatus& cuda);
Json to_json(const Machine& machine);
/// Of this machine, without the names of its folders: for results that are kept.
Json machine_of_results();
/// Today's date and time, "2026-01-31T12:00:00Z".
std::string date_of_results();
/// What a result begins with: command, date, version, commit (empty: unknown) and machine.
Json head_of_results(const std::string& command, const std::string& commit);
/// "9.0" of 90.
std::string version_text(int tenfold);

}  // namespace vicinal::cli
