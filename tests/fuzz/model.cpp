// The model file: a saved index, a model of hdbscan, of kmeans, of lle, of lof, and of classify or regress. The check
// sum that ends the file is made right, so that what lies before it is looked at.
#include <zlib.h>

#include <cstring>
#include <vector>

#include "target.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/kmeans_model.hpp"
#include "vicinal/lle_model.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/neighbor_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  std::vector<std::uint8_t> bytes(data, data + size);
  if (size >= 4) {
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, bytes.data(), size - 4));
    std::memcpy(bytes.data() + size - 4, &sum, sizeof sum);
  }
  const fuzz::Input input(bytes.data(), size);
  fuzz::attempt([&] { (void)Index::load(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)HdbscanModel::load(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)KMeansModel::load(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)LleModel::load(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)LofModel::load(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)NeighborModel::load(fuzz::context(), input.path()); });
  return 0;
}
