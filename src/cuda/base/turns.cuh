// Warpgroups of a block that multiply in turns (sm_90a). The matrix unit serves warpgroups that ask at the same time
// side by side, so that all of them have their sums at the same time, and it has nothing to do while all of them
// compare these. In turns the products of one are made while the others compare. A turn is an order of issuing, not a
// lock: no result depends on it.
#pragma once

namespace vicinal::cuda {

/// Turns of the first kGroups warpgroups of a block: the named barriers 1 to kGroups are theirs.
template <int kGroups>
class Turns {
 public:
  /// `group`: the caller's. By all threads of these warpgroups, each of which takes as many turns as the others.
  __device__ __forceinline__ explicit Turns(int group) : own_(1 + group), next_(group + 1 < kGroups ? 2 + group : 1) {
    if (next_ == 1) pass();  // the first turn is the first group's
  }
  __device__ __forceinline__ void wait() const { asm volatile("bar.sync %0, 256;" ::"r"(own_) : "memory"); }
  __device__ __forceinline__ void pass() const { asm volatile("bar.arrive %0, 256;" ::"r"(next_) : "memory"); }
  /// After the last turn: takes what the last group passed on.
  __device__ __forceinline__ void end() const {
    if (own_ == 1) wait();
  }

 private:
  int own_;
  int next_;
};

}  // namespace vicinal::cuda
