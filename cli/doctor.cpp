// `vicinal doctor`: what this build can do on this machine, and a small search whose answer is known.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/common_options.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "commands.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/device.hpp"
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

std::string cuda_lines(const CudaStatus& cuda) {
  std::string text;
  for (const DeviceInfo& device : cuda.devices) {
    text += fmt::format("{:<19}{}, {}, compute capability {}\n", device.name, device.model,
                        format_bytes(static_cast<double>(device.memory)), version_text(device.compute_capability));
  }
  if (cuda.driver_version > 0) {
    text += fmt::format("CUDA driver        serves CUDA {}\n", version_text(cuda.driver_version / 100));
  }
  if (!cuda.plugin.empty()) {
    text += fmt::format("CUDA plug-in       {}, for architectures {}\n", cuda.plugin, cuda.architectures);
  }
  if (!cuda.missing.empty()) {
    text += fmt::format("CUDA               not used: {}\n", cuda.missing);
  }
  return text;
}

std::string mpi_line(const MpiStatus& mpi) {
  if (!mpi.missing.empty()) return fmt::format("MPI                not used: {}\n", mpi.missing);
  return fmt::format("MPI                {}, plug-in {}\n", mpi.library, mpi.plugin);
}
Json mpi_json(const MpiStatus& mpi) {
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  return {{"usable", mpi.missing.empty()},
          {"missing", text(mpi.missing)},
          {"library", text(mpi.library)},
          {"plugin", text(mpi.plugin)}};
}

/// What the device itself says when it is asked.
struct Answer {
  std::string fault;  ///< empty where it is not to be used or answers rightly
  TensorCoreSums sums;
};
Answer ask_device(const CommonOptions& options, const CudaStatus& cuda) {
  Answer answer;
  if (!cuda.missing.empty() || options.device == "cpu") return answer;
  try {
    CudaOptions on_device;
    on_device.threads = options.threads;
    const Context ctx = Context::cuda(on_device);
    answer.sums = tensor_core_sums(ctx);
    if (!self_test(ctx)) answer.fault = "cuda:0 finds wrong neighbors";
  } catch (const Error& error) {
    answer.fault = error.what();
  }
  return answer;
}

std::string sums_line(const TensorCoreSums& sums) {
  if (sums.instruction.empty()) return "";
  const std::string what =
      sums.model.empty()
          ? "sums err by " + fmt::format("{:.2f}", sums.largest_error) + " of the widest bound: not used"
          : fmt::format("accumulation: {}, largest error {:.2f} of the bound", sums.model, sums.largest_error);
  return fmt::format("tensor cores       {}, {}\n", sums.instruction, what);
}

Json sums_json(const TensorCoreSums& sums) {
  if (sums.instruction.empty()) return nullptr;
  // JSON has no infinity: what a sum that is none errs by.
  return {{"instruction", sums.instruction},
          {"accumulation", sums.model.empty() ? Json(nullptr) : Json(sums.model)},
          {"largest_error", std::isfinite(sums.largest_error) ? Json(sums.largest_error) : Json(nullptr)}};
}

void examine(const CommonOptions& options) {
  const Runtime runtime = make_runtime(options, Computes::on_host);
  const Machine machine = look_at_machine();
  const MpiStatus mpi = mpi_status();
  const Answer device = ask_device(options, machine.cuda);
  const std::string& fault = device.fault;
  const bool right = self_test(runtime.ctx) && fault.empty();
  const bool healthy = right && machine.memory_limit > 0 && machine.cores_used > 0;
  if (options.json) {
    Json json = {{"command", "doctor"}, {"version", VICINAL_VERSION}};
    json.update(to_json(machine));
    json["mpi"] = mpi_json(mpi);
    json["self_test"] = right;
    json["cuda"]["tensor_cores"] = sums_json(device.sums);
    json["cuda"]["fault"] = fault.empty() ? Json(nullptr) : Json(fault);
    json["healthy"] = healthy;
    print_json(json);
  } else {
    const auto bytes = [](std::uint64_t value) { return format_bytes(static_cast<double>(value)); };
    print_text(fmt::format(
        "version            {}\nprocessor          {}\ncores              {} used by default, {} allowed, {} online\n"
        "instruction sets   {} (used: {})\nmemory             {} free of {}, default limit {}\n{}{}{}"
        "self test          {}\n",
        VICINAL_VERSION, machine.cpu, machine.cores_used, machine.cores_allowed, machine.cores_online,
        fmt::join(machine.isas, ", "), machine.isa, bytes(machine.memory_available), bytes(machine.memory_total),
        bytes(machine.memory_limit), cuda_lines(machine.cuda), sums_line(device.sums), mpi_line(mpi),
        right ? "passed" : "FAILED" + (fault.empty() ? "" : ": " + fault)));
  }
  if (!healthy) throw Error(ErrorCode::internal, "this build does not work on this machine: see the self test");
}

}  // namespace

Command add_doctor(const Parser& root) {
  auto options = std::make_shared<CommonOptions>();
  const Parser app = root.add_subcommand("doctor", "Test this build on this machine and list its features");
  add_common_options(app, *options);
  app.add_examples({"vicinal doctor", "vicinal doctor --json"});
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
