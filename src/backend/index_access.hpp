// What the library's own sources see of an Index: what was prepared, which no public header tells.
#pragma once

#include <memory>
#include <utility>

#include "backend/nearest.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::kernels {

struct IndexAccess {
  static const Prepared& prepared(const Index& index) noexcept { return *index.prepared_; }
  static Index index(std::shared_ptr<const Prepared> prepared) { return Index(std::move(prepared)); }
};

inline const Prepared& prepared_of(const Index& index) noexcept {
  return IndexAccess::prepared(index);
}
inline Index index_of(std::shared_ptr<const Prepared> prepared) {
  return IndexAccess::index(std::move(prepared));
}

}  // namespace vicinal::kernels
