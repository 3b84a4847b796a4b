// See backend.hpp, and contexts of the CPU (include/vicinal/context.hpp): a context is made with its backend.
#include "backend/backend.hpp"

#include "core/context_state.hpp"
#include "core/entry.hpp"

namespace vicinal {

Context Context::cpu(const CpuOptions& options) try {
  const core::Entry entry;
  // It has no state, and nobody owns it.
  std::shared_ptr<const kernels::Backend> backend(std::shared_ptr<void>(), &kernels::cpu_backend());
  return Context(std::make_shared<State>(options, "cpu", std::move(backend)));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

const kernels::Backend& kernels::backend_of(const Context& ctx) {
  return *core::ContextAccess::state(ctx).backend;
}

}  // namespace vicinal
