// See groups.hpp.
#include "ops/graph/groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/parallel.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kPart = std::int64_t{1} << 16;  // members of a task

template <class Body>
void in_parts(const Context& ctx, std::int64_t size, const Body& body) {
  core::parallel_for(ctx, (size + kPart - 1) / kPart, [&](std::int64_t task, int /*worker*/) {
    body(task, task * kPart, std::min(size, (task + 1) * kPart));
  });
}

/// Labels of both sides by a member's number.
class MemberLabels {
 public:
  explicit MemberLabels(Cocluster& found) : found_(found), n_a_(static_cast<std::int64_t>(found.labels_a.size())) {}

  [[nodiscard]] std::int64_t members() const { return n_a_ + static_cast<std::int64_t>(found_.labels_b.size()); }
  [[nodiscard]] bool in_a(std::int64_t v) const { return v < n_a_; }
  std::int64_t& operator[](std::int64_t v) const {
    return in_a(v) ? found_.labels_a[static_cast<std::size_t>(v)] : found_.labels_b[static_cast<std::size_t>(v - n_a_)];
  }

 private:
  Cocluster& found_;
  std::int64_t n_a_;
};

/// How many members of each part are a group's smallest, added up: where each part's groups begin.
std::vector<std::int64_t> first_groups(const Context& ctx, const MemberLabels& labels) {
  std::vector<std::int64_t> first(static_cast<std::size_t>((labels.members() + kPart - 1) / kPart + 1));
  in_parts(ctx, labels.members(), [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    std::int64_t roots = 0;
    for (std::int64_t v = begin; v < end; ++v) roots += labels[v] == v ? 1 : 0;
    first[static_cast<std::size_t>(part) + 1] = roots;
  });
  for (std::size_t part = 1; part < first.size(); ++part) first[part] += first[part - 1];
  return first;
}

/// Counts members of groups, of which `first` says where each part's begin. While it does, the label of each group's
/// smallest member gives way to -1 - the group's place, so that no further array of the members' size is needed.
void count_members(const Context& ctx, const std::vector<std::int64_t>& first, Cocluster& found) {
  const MemberLabels labels(found);
  in_parts(ctx, labels.members(), [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    std::int64_t place = first[static_cast<std::size_t>(part)];
    for (std::int64_t v = begin; v < end; ++v) {
      if (labels[v] != v) continue;
      found.groups[static_cast<std::size_t>(place)].label = v;
      labels[v] = -1 - place++;
    }
  });
  in_parts(ctx, labels.members(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end;) {
      const std::int64_t label = labels[v];
      const bool in_a = labels.in_a(v);
      const std::int64_t place = -1 - (label < 0 ? label : labels[label]);
      std::int64_t same = 0;  // what follows with the same label is counted with it
      do {
        ++v;
        ++same;
      } while (v < end && labels.in_a(v) == in_a && label >= 0 && labels[v] == label);
      CoclusterGroup& group = found.groups[static_cast<std::size_t>(place)];
      std::atomic_ref<std::int64_t>(in_a ? group.count_a : group.count_b).fetch_add(same, std::memory_order_relaxed);
    }
  });
  in_parts(ctx, static_cast<std::int64_t>(found.groups.size()),
           [&](std::int64_t, std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const std::int64_t label = found.groups[static_cast<std::size_t>(i)].label;
               labels[label] = label;
             }
           });
}

}  // namespace

bool is_weight(double weight) {
  return weight >= 0 && std::isfinite(weight);
}

void check_weights(const Context& ctx, std::span<const double> weights) {
  in_parts(ctx, static_cast<std::int64_t>(weights.size()), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) {
      const double weight = weights[static_cast<std::size_t>(e)];
      if (is_weight(weight)) continue;
      throw Error(ErrorCode::bad_data,
                  fmt::format("weights: edge {} has weight {}, must be finite and at least 0", e, weight));
    }
  });
}

void make_groups(const Context& ctx, Cocluster& found) {
  const std::vector<std::int64_t> first = first_groups(ctx, MemberLabels(found));
  found.groups.assign(static_cast<std::size_t>(first.back()), {});
  count_members(ctx, first, found);
}

}  // namespace vicinal::ops
