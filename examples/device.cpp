// Searches on a CUDA device if there is one, and says why not otherwise. The answers are the CPU's, bit for bit.
#include <cstdio>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

int main() {
  const vc::CudaStatus status = vc::cuda_status();
  if (!status.missing.empty()) std::printf("no device: %s\n", status.missing.c_str());
  for (const vc::DeviceInfo& device : status.devices)
    std::printf("%s: %s\n", device.name.c_str(), device.model.c_str());
  const vc::Context best = vc::Context::automatic();
  const vc::Context cpu = vc::Context::cpu();
  const vc::Generated made = vc::generate(cpu, {.shape = vc::Shape::blobs, .rows = 2000, .cols = 8});
  const vc::TableView rows(made.points.data(), 2000, 8);
  const auto here = vc::knn(cpu, rows, {.k = 10});
  const auto there = vc::knn(best, rows, {.k = 10});
  std::printf("searched on %s by %s\n", std::string(best.device()).c_str(), vc::name_of(there.plan.method).data());
  return here.ids == there.ids && here.distances == there.distances ? 0 : 1;
}
