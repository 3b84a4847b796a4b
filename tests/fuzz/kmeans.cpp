// The files of the classical k-means tools.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  for (const FileFormat format : {FileFormat::kmeans_text, FileFormat::kmeans_binary}) {
    ReadOptions options;
    options.format = format;
    fuzz::read_all(input, options);
  }
  return 0;
}
