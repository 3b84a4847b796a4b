// See agenda.hpp.
#include "solver/agenda.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace vicinal::solver {

void add_parts(std::vector<Part>& parts, std::size_t i, const Split& split) {
  if (split.left == 0) return;
  const Point left = parts[i].begin;
  const Point right = left + split.left;
  parts[i].begin = right + split.right;
  parts.push_back({left, right, static_cast<std::int32_t>(i)});
  parts.push_back({right, parts[i].begin, static_cast<std::int32_t>(i)});
}

std::vector<Dissection::Node> nodes_of(const std::vector<Part>& parts,
                                       const std::vector<std::vector<Dissection::Node>>& within) {
  const auto has_tree = [&](std::int32_t i) { return !within.empty() && !within[i].empty(); };
  std::vector<std::int32_t> by_place(parts.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::erase_if(by_place, [&](std::int32_t i) { return parts[i].size() == 0; });
  std::sort(by_place.begin(), by_place.end(),
            [&](std::int32_t x, std::int32_t y) { return parts[x].begin < parts[y].begin; });
  std::vector<std::int32_t> node(parts.size(), -1);
  std::int32_t count = 0;
  for (const std::int32_t i : by_place) {
    node[i] = count;
    count += has_tree(i) ? static_cast<std::int32_t>(within[i].size()) : 1;
  }
  std::vector<Dissection::Node> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (const std::int32_t i : by_place) {
    std::int32_t above = parts[i].parent;
    while (above >= 0 && node[above] < 0) above = parts[above].parent;
    const std::int32_t parent = above < 0 ? -1 : node[above];
    if (!has_tree(i)) {
      nodes.push_back({parts[i].begin, parts[i].end, parent});
      continue;
    }
    for (const Dissection::Node& of : within[i]) {
      nodes.push_back({of.begin, of.end, of.parent < 0 ? parent : node[i] + of.parent});
    }
  }
  return nodes;
}

Agenda::Agenda(Point n) : parts_{{0, n, -1}}, within_(1) {
  waiting_.emplace(n, 0);
}

bool Agenda::take(const Context& ctx, Entry& entry) {
  std::unique_lock lock(mutex_);
  while (waiting_.empty()) {
    if (busy_ == 0 || stopped_) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(20));
    ctx.check_cancelled();
  }
  if (stopped_) return false;
  entry.number = waiting_.top().second;
  entry.part = parts_[entry.number];
  waiting_.pop();
  ++busy_;
  return true;
}

void Agenda::put(const Entry& entry, const Split& split) {
  const std::lock_guard lock(mutex_);
  const std::size_t before = parts_.size();
  add_parts(parts_, entry.number, split);
  within_.resize(parts_.size());
  for (std::size_t i = before; i < parts_.size(); ++i) waiting_.emplace(parts_[i].size(), i);
  leave(parts_[entry.number].size());
}

void Agenda::put(const Entry& entry, std::vector<Dissection::Node> nodes) {
  const std::lock_guard lock(mutex_);
  within_[entry.number] = std::move(nodes);
  leave(entry.part.size());
}

void Agenda::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::int64_t Agenda::done() {
  const std::lock_guard lock(mutex_);
  return done_;
}

void Agenda::leave(Point points) {
  done_ += points;
  --busy_;
  changed_.notify_all();
}

}  // namespace vicinal::solver
