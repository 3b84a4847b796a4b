// Labels from a list of values, whole numbers or texts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "vicinal/vote.hpp"

namespace vicinal::core {

/// As `encode_labels`; `poll` is called at least every some thousand values.
Labels encode(std::span<const std::int64_t> values, const std::function<void()>& poll);
Labels encode(std::span<const std::string_view> values, const std::function<void()>& poll);

}  // namespace vicinal::core
