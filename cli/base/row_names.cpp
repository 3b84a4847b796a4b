// See row_names.hpp.
#include "base/row_names.hpp"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "io/id_array.hpp"

namespace vicinal::cli {

std::string RowNames::header() const {
  if (ids_ == nullptr) return "row";
  return ids_->name.empty() ? "id" : ids_->name;
}

std::string RowNames::text(std::int64_t row) const {
  return ids_ == nullptr ? fmt::format("{}", number_of(row)) : std::string((*ids_)[row]);
}

std::string RowNames::field(std::int64_t row) const {
  return ids_ == nullptr ? fmt::format("{}", number_of(row)) : csv_field(text(row));
}

Json RowNames::json(std::int64_t row) const {
  if (ids_ == nullptr) return number_of(row);
  const std::string_view id = (*ids_)[row];
  if (!ids_->are_whole_numbers()) return id;
  std::int64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

void require_ids_fit(const Context& ctx, const std::string& output, const std::string& file, const Table& table) {
  if (table.ids && output.ends_with(".npz")) io::IdArray::check(ctx, file, *table.ids);
}

void add_id_option(const Parser& command, std::string& id) {
  command
      .add_option("--id", id,
                  "CSV or JSON column with the ids of the rows, by name or position; not a part of the table; outputs "
                  "have the ids instead of row numbers (a .npy has neither)")
      .type_name("COLUMN")
      .group("Reading tables");
}

}  // namespace vicinal::cli
