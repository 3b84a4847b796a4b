// CSV: as it is found, with text, with a comment, and as labels.
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  const fuzz::Input input(data, size);
  ReadOptions options;
  options.format = FileFormat::csv;
  fuzz::read_all(input, options);
  options.find_text = true;
  options.comment = '#';
  options.label = "0";
  fuzz::read_all(input, options);
  fuzz::attempt([&] { (void)read_labels(fuzz::context(), input.path()); });
  fuzz::attempt([&] { (void)read_labels(fuzz::context(), input.path(), "1"); });
  return 0;
}
