// npy, with bfloat16 and without.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  for (const bool bfloat16 : {false, true}) {
    ReadOptions options;
    options.format = FileFormat::npy;
    options.bfloat16 = bfloat16;
    fuzz::read_all(input, options);
  }
  fuzz::attempt([&] { (void)read_labels(fuzz::context(), input.path()); });
  return 0;
}
