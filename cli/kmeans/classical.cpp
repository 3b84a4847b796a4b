// See classical.hpp.
#include "kmeans/classical.hpp"

#include <fmt/core.h>

#include "base/missing.hpp"
#include "base/output.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

void write_classical(const Context& ctx, const std::string& name, const KMeans& found,
                     std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::int64_t c = 0; c < found.clusters; ++c) {
    text += fmt::format("{}", c);
    for (std::int64_t j = 0; j < found.cols; ++j) {
      text += ' ';
      text += format_number(found.centres[static_cast<std::size_t>(c * found.cols + j)]);
    }
    text += '\n';
  }
  write_text(name + ".cluster_centres", text);
  text.clear();
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{} {}\n", row_number(static_cast<std::int64_t>(i), numbers), found.labels[i]);
  }
  write_text(name + ".membership", text);
}

}  // namespace vicinal::cli
