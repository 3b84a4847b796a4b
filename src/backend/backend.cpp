// See backend.hpp.
#include "backend/backend.hpp"

namespace vicinal::kernels {

const Backend& backend_of(const Context& ctx) {
  const Backend* const backend = ctx.backend();
  return backend != nullptr ? *backend : cpu_backend();
}

}  // namespace vicinal::kernels
