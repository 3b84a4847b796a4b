// The eigenvalues of an embedding on a logarithmic axis.
#pragma once

#include <string>

#include "vicinal/lle.hpp"

namespace vicinal::cli::report {

/// <svg>: a stem for each of the piece's eigenvalues, and a pale one for the next, that was left out. Values of 0 lie
/// at the foot.
std::string spectrum_svg(const LlePiece& piece);

}  // namespace vicinal::cli::report
