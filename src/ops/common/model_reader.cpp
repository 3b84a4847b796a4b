// See model_reader.hpp.
#include "ops/common/model_reader.hpp"

#include <algorithm>

namespace vicinal::ops {

const std::string& ModelReader::text(const std::string& name) const {
  const auto found = parts_.metadata.find(name);
  if (found == parts_.metadata.end()) refuse("it does not say '" + name + "'");
  return found->second;
}

const ModelArray* ModelReader::array(const std::string& name, const char* dtype,
                                     const std::vector<std::int64_t>& shape) {
  const auto found =
      std::find_if(parts_.arrays.begin(), parts_.arrays.end(), [&](const ModelArray& one) { return one.name == name; });
  if (found == parts_.arrays.end()) return nullptr;
  seen_.insert(name);
  const bool fits = std::equal(found->shape.begin(), found->shape.end(), shape.begin(), shape.end(),
                               [](std::int64_t is, std::int64_t wanted) { return wanted == -1 || is == wanted; });
  if (found->dtype != dtype || !fits) refuse("its '" + name + "' has not the shape that it must have");
  return &*found;
}

void ModelReader::require_all_seen() const {
  for (const ModelArray& one : parts_.arrays) {
    if (seen_.count(one.name) == 0) refuse("its '" + one.name + "' is not known");
  }
}

void ModelReader::refuse(const std::string& why) const {
  refuse_file(kind_, path_, why);
}

std::uint64_t numbers_in(const ModelParts& parts) {
  std::uint64_t numbers = 0;
  for (const ModelArray& array : parts.arrays) {
    std::uint64_t size = 1;
    for (const std::int64_t dim : array.shape) size *= static_cast<std::uint64_t>(dim);
    numbers += size;
  }
  return numbers;
}

}  // namespace vicinal::ops
