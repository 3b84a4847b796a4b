// The figures of `vicinal-bench papers lle`: what was measured over n as lines, and the surfaces with their embeddings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "report/drawing.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

/// The lines of embeddings of a result that an earlier run wrote. Throws `bad_data` naming the file where it is no
/// result of `bench papers lle`.
Json read_lle_lines(const std::filesystem::path& path);

/// A figure and the name of its file, without .svg.
struct NamedDrawing {
  std::string name;
  report::Drawing drawing;
};

/// lle-ratio (the CPU's seconds by the device's; only where both were measured), lle-krylov (seconds of the Krylov
/// part), lle-swiss-roll and lle-s-curve (the surface, and embeddings of 1,024 rows and four times as many each, up to
/// `most_rows`, by the solver that `automatic` takes).
std::vector<NamedDrawing> lle_paper_drawings(const Context& ctx, const Json& lines, std::int64_t most_rows);

/// Writes them as files (.svg) into a folder, which it makes.
void draw_lle_paper(const Context& ctx, const Json& lines, std::int64_t most_rows, const std::filesystem::path& folder);

}  // namespace vicinal::cli
