// `vicinal doctor`: what this build can do on this machine, and a small search whose answer is known.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "command.hpp"
#include "common_options.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

/// Four points on a line at 0, 1, 3, 7, in every instruction set there is: the nearest other ones are known.
bool self_test(const Context& ctx) {
  const std::array<double, 4> points = {0, 1, 3, 7};
  KnnOptions options;
  options.k = 1;
  const NeighborGraph graph = knn(ctx, TableView(points.data(), 4, 1), options);
  return graph.ids == std::vector<std::int64_t>{1, 0, 1, 2} && graph.distances == std::vector<double>{1, 1, 2, 4};
}

std::string cuda_sentence(const Machine& machine) {
  const std::string build = "this build has no CUDA backend, so everything runs on the CPU";
  if (!machine.cuda_driver) return "no driver (libcuda.so.1 is not there); " + build;
  if (machine.cuda_driver_version <= 0) return "driver found, but it does not answer; " + build;
  return fmt::format("driver for CUDA {}.{} found; {}", machine.cuda_driver_version / 1000,
                     machine.cuda_driver_version % 1000 / 10, build);
}

void examine(const CommonOptions& options) {
  const Runtime runtime = make_runtime(options);
  const Machine machine = look_at_machine();
  const bool right = self_test(runtime.ctx);
  const bool healthy = right && machine.memory_limit > 0 && machine.cores_used > 0;
  if (options.json) {
    Json json = {{"command", "doctor"}, {"version", VICINAL_VERSION}};
    json.update(to_json(machine));
    json["cuda_backend"] = false;
    json["cuda"] = cuda_sentence(machine);
    json["self_test"] = right;
    json["healthy"] = healthy;
    print_json(json);
  } else {
    const auto bytes = [](std::uint64_t value) { return format_bytes(static_cast<double>(value)); };
    write_stdout(fmt::format(
        "version            {}\nprocessor          {}\ncores              {} used by default, {} allowed, {} online\n"
        "instruction sets   {} (used: {})\nmemory             {} free of {}, default limit {}\nCUDA               {}\n"
        "self test          {}\n",
        VICINAL_VERSION, machine.cpu, machine.cores_used, machine.cores_allowed, machine.cores_online,
        fmt::join(machine.isas, ", "), machine.isa, bytes(machine.memory_available), bytes(machine.memory_total),
        bytes(machine.memory_limit), cuda_sentence(machine), right ? "passed" : "FAILED"));
  }
  if (!healthy) throw Error(ErrorCode::internal, "this build does not work on this machine: see the self test");
}

}  // namespace

Command add_doctor(CLI::App& root) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = root.add_subcommand("doctor", "Say what this build can do on this machine, and test it");
  add_common_options(*app, *options);
  add_examples(*app, {"vicinal doctor", "vicinal doctor --json"});
  return {app,
          [options] {
            if (options->explain) {
              write_stdout(options->json ? "{\"plan\": \"look at the machine and search four points\"}\n"
                                         : "looks at the machine and searches four points\n");
              return;
            }
            examine(*options);
          },
          &options->json};
}

}  // namespace vicinal::cli
