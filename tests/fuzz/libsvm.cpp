// libsvm.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  ReadOptions options;
  options.format = FileFormat::libsvm;
  fuzz::read_all(input, options);
  options.columns = 3;
  fuzz::read_all(input, options);
  return 0;
}
