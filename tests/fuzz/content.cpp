// What a file is, what it is packed in, and its labels: no format is said. HDF5 is left out, whose reader is not ours.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  if (size >= 8 && data[0] == 0x89 && data[1] == 0x48) return 0;
  fuzz::read_all(input, {});
  fuzz::attempt([&] { (void)read_labels(fuzz::context(), input.path()); });
  return 0;
}
