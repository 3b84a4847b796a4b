// What values k-means takes (contract clause 12), for host and device.
#pragma once

namespace vicinal::core {

/// Values of this magnitude are refused: squared distances might overflow.
inline constexpr double kTooLarge = 0x1p500;

}  // namespace vicinal::core
