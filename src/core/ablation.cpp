// See ablation.hpp.
#include "core/ablation.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal::core {

Ablation ablation_of_environment() {
  const char* const name = std::getenv(kAblationVariable);
  if (name == nullptr || *name == '\0') return Ablation::nothing;
  const auto* const found = std::find(kAblationNames.begin(), kAblationNames.end(), std::string_view(name));
  if (found != kAblationNames.end()) return static_cast<Ablation>(found - kAblationNames.begin());
  std::string sentence = "environment variable VICINAL_ABLATION: unknown value '" + std::string(name) + "'; expected ";
  for (const char* const known : kAblationNames) {
    if (known != kAblationNames.front()) sentence += known == kAblationNames.back() ? " or " : ", ";
    sentence += known;
  }
  throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace vicinal::core
