// idx.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  ReadOptions options;
  options.format = FileFormat::idx;
  fuzz::read_all(input, options);
  fuzz::attempt([&] { (void)read_labels(fuzz::context(), input.path()); });
  return 0;
}
