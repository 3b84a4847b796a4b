// The place of a tree in an index. Who waits for another thread's tree polls the cancel token (contract clause 11).
#include <chrono>
#include <thread>

#include "kernels.hpp"

namespace vicinal::kernels {

std::shared_ptr<const Tree> TreeSlot::get() const {
  const std::scoped_lock lock(mutex_);
  return tree_;
}

std::shared_ptr<const Tree> TreeSlot::get_or_make(const Context& ctx,
                                                  const std::function<std::shared_ptr<const Tree>()>& make) const {
  if (auto tree = get()) return tree;
  while (!making_.try_lock()) {
    ctx.check_cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::lock_guard making(making_, std::adopt_lock);
  if (auto tree = get()) return tree;
  auto tree = make();
  const std::scoped_lock lock(mutex_);
  tree_ = tree;
  return tree;
}

}  // namespace vicinal::kernels
