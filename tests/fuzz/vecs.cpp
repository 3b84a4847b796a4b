// fvecs, bvecs and ivecs.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  for (const FileFormat format : {FileFormat::fvecs, FileFormat::bvecs, FileFormat::ivecs}) {
    ReadOptions options;
    options.format = format;
    fuzz::read_all(input, options);
  }
  return 0;
}
