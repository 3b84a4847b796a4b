// The memory budget (contract clause 7): what machine and cgroup have free, and one check before a job starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Bytes free for this process: MemAvailable, cut by what the cgroup (v1 or v2, every ancestor) leaves.
std::uint64_t free_memory();

/// Throws Error{over_memory} naming job, need and limit when `bytes` exceeds ctx.memory_limit().
void require_memory(const Context& ctx, std::uint64_t bytes, std::string_view job);

/// The context for what runs while `bytes` are in use: its limit is what they leave, and at least 1.
Context beside(const Context& ctx, std::uint64_t bytes);

/// Throws Error{over_memory}: the system refused an allocation that the plan allowed. Says how much address space the
/// process may have, where that is limited (ulimit -v), and how much it has.
[[noreturn]] void refuse_allocation();

/// "1.5 GB", "512 kB": for sentences.
std::string format_bytes(std::uint64_t bytes);

}  // namespace vicinal::core
