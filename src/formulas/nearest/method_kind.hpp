// Which methods are those of the papers (docs/papers.md), for the library and its plug-in.
#pragma once

#include "vicinal/graph.hpp"

namespace vicinal::kernels {

/// The methods of the papers that select from a product, and all of theirs.
constexpr bool is_product(Method method) noexcept {
  return method >= Method::product_kmin && method <= Method::product_timed;
}
constexpr bool is_of_a_paper(Method method) noexcept {
  return method >= Method::product_kmin && method <= Method::block_heap;
}

}  // namespace vicinal::kernels
