// See membership_output.hpp.
#include "density/membership_output.hpp"

#include <fmt/core.h>

#include "base/output.hpp"
#include "base/row_names.hpp"
#include "io/npy.hpp"
#include "io/packed_file.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kNumbersBetweenPolls = 65536;

void write_header(io::PackedFile& file, const RowNames& names, std::int64_t clusters) {
  std::string text = csv_field(names.header());
  for (std::int64_t cluster = 0; cluster < clusters; ++cluster) text += fmt::format(",cluster_{}", cluster);
  file.write(text + "\n");
}

void write_lines(const Context& ctx, io::PackedFile& file, const RowNames& names, const Memberships& batch) {
  std::int64_t unpolled = 0;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    if ((unpolled += batch.clusters + 1) > kNumbersBetweenPolls) {
      ctx.check_cancelled();
      unpolled = 0;
    }
    std::string text = names.field(batch.first + row);
    for (std::int64_t cluster = 0; cluster < batch.clusters; ++cluster) {
      text += "," + format_number(batch.values[static_cast<std::size_t>(row * batch.clusters + cluster)]);
    }
    file.write(text + "\n");
  }
}

}  // namespace

void write_memberships(const Context& ctx, const std::string& path, const DensityRows& rows, const Index& index,
                       const Hdbscan& fitted, bool is_new) {
  const bool is_csv = is_csv_output(path);
  const TableView& view = rows.table.view;
  const RowNames names(rows.table, rows.kept);
  io::PackedFile file(path);
  if (is_csv) {
    write_header(file, names, fitted.clusters);
  } else {
    file.write(io::make_npy_header({nullptr, "<f8", {view.rows(), fitted.clusters}}));
  }
  membership_batches(ctx, index, fitted, is_new ? &view : nullptr, [&](const Memberships& batch) {
    if (is_csv) return write_lines(ctx, file, names, batch);
    ctx.check_cancelled();
    file.write(batch.values.data(), batch.values.size() * sizeof(double));
  });
  file.commit();
}

}  // namespace vicinal::cli
