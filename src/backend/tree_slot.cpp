// The places of trees in an index. Who waits for another thread's tree polls the cancel token (contract clause 11).
#include <chrono>
#include <thread>

#include "backend/nearest.hpp"

namespace vicinal::kernels {

std::shared_ptr<const Tree> TreeSlot::get(int device) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [place, tree] : trees_) {
    if (place == device) return tree;
  }
  return nullptr;
}

std::shared_ptr<const Tree> TreeSlot::any() const {
  if (auto tree = get()) return tree;
  const std::scoped_lock lock(mutex_);
  return trees_.empty() ? nullptr : trees_.front().second;
}

std::shared_ptr<const Tree> TreeSlot::get_or_make(const Context& ctx,
                                                  const std::function<std::shared_ptr<const Tree>()>& make,
                                                  int device) const {
  if (auto tree = get(device)) return tree;
  while (!making_.try_lock()) {
    ctx.check_cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::lock_guard making(making_, std::adopt_lock);
  if (auto tree = get(device)) return tree;
  auto tree = make();
  const std::scoped_lock lock(mutex_);
  trees_.emplace_back(device, tree);
  return tree;
}

void TreeSlot::keep(std::shared_ptr<const Tree> tree, int device) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [place, other] : trees_) {
    if (place == device) return;
  }
  trees_.emplace_back(device, std::move(tree));
}

}  // namespace vicinal::kernels
