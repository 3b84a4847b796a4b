// npz: the archive and the arrays in it.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  ReadOptions options;
  options.format = FileFormat::npz;
  fuzz::read_all(input, options);
  options.member = "a";
  fuzz::read_all(input, options);
  return 0;
}
