// The file of a part. The check sum that ends it is made right, so that what lies before it is looked at; what opens is
// read and merged.
#include <zlib.h>

#include <cstring>
#include <vector>

#include "target.hpp"
#include "vicinal/parts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vicinal;
  std::vector<std::uint8_t> bytes(data, data + size);
  if (size >= 4) {
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, bytes.data(), size - 4));
    std::memcpy(bytes.data() + size - 4, &sum, sizeof sum);
  }
  const fuzz::Input input(bytes.data(), size);
  fuzz::attempt([&] {
    const std::vector<PartSource> parts = {open_part(fuzz::context(), input.path())};
    if (parts[0].info.kind == PartKind::count) {
      (void)merge_counts(fuzz::context(), parts);
    } else {
      (void)merge(fuzz::context(), parts);
    }
  });
  return 0;
}
