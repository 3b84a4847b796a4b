// What `vicinal info` tells of a saved model or index: what was fitted, on which rows and columns, and how they were
// prepared.
#pragma once

#include <optional>
#include <string>

#include "base/output.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

/// A model as JSON, whose first member is "kind"; nothing for other files. Throws what loading it throws.
std::optional<Json> describe_model(const Context& ctx, const std::string& file);

/// The same for a person, a line a member.
std::string model_text(const Json& model);

}  // namespace vicinal::cli
