// See known_columns.hpp.
#include "base/known_columns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/input.hpp"
#include "io/format.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

bool is_among(const std::string& column, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), column) != names.end();
}

}  // namespace

void KnownColumns::add_to(Json& notes) const {
  notes["columns"] = columns;
  notes["dropped"] = dropped;
  notes["id"] = id;
}

std::string KnownColumns::notes() const {
  if (columns.empty() && dropped.empty() && id.empty()) return {};
  Json all;
  add_to(all);
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

KnownColumns KnownColumns::of(const std::string& notes, const std::string& file) {
  KnownColumns known;
  const Json all = Json::parse(notes, nullptr, false);
  if (!all.is_object()) return known;
  try {
    known.columns = all.value("columns", known.columns);
    known.dropped = all.value("dropped", known.dropped);
    known.id = all.value("id", known.id);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::bad_data, fmt::format("model file '{}': its notes are not those of this command", file));
  }
  return known;
}

bool is_position(const std::string& column) {
  return !column.empty() && column.find_first_not_of("0123456789") == std::string::npos;
}

KnownColumns by_names(const Context& ctx, const std::string& file, KnownColumns columns) {
  const auto any = [](const std::vector<std::string>& some) {
    return std::any_of(some.begin(), some.end(), is_position);
  };
  if (!any(columns.columns) && !any(columns.dropped) && !is_position(columns.id)) return columns;
  const FileInfo info = describe_file(ctx, file);
  const auto name = [&](std::string& column) {
    constexpr std::size_t kMaxDigits = 9;
    if (!is_position(column) || column.size() > kMaxDigits || is_among(column, info.columns)) return;
    const auto at = static_cast<std::size_t>(std::stoll(column));
    if (at < info.columns.size() && !info.columns[at].empty()) column = info.columns[at];
  };
  std::for_each(columns.columns.begin(), columns.columns.end(), name);
  std::for_each(columns.dropped.begin(), columns.dropped.end(), name);
  name(columns.id);
  return columns;
}

void leave_out_ids(const Context& ctx, const std::string& file, ReadOptions& reading, const std::string& id) {
  if (id.empty()) return;
  const FileInfo info = describe_file(ctx, file, reading.format);
  if (io::has_named_columns(info.format) && (is_among(id, info.columns) || is_position(id))) reading.drop.push_back(id);
}

AskedReading asked_reading(const Context& ctx, const std::string& file, ReadOptions given, const KnownColumns& known,
                           const Preparation& preparation, std::int64_t width, bool with_labels) {
  given.missing = preparation.imputer().filling() != Filling::none;
  const bool knows = !known.columns.empty() || !known.dropped.empty() || !known.id.empty();
  const bool is_told = !given.drop.empty() || !given.label.empty();
  if (!knows && !is_told && !preparation.has_names() && !preparation.has_texts()) return {std::move(given), {}};
  const FileInfo info = describe_file(ctx, file, given.format);
  if (!io::has_named_columns(info.format)) {
    given.drop.clear();
    given.label.clear();
    return {std::move(given), {}};
  }
  if (!preparation.columns().empty()) width = std::ssize(preparation.columns());
  const bool by_name = preparation.has_names() && !info.columns.empty();
  std::set<std::string> apart(known.columns.begin(), known.columns.end());
  apart.insert(known.dropped.begin(), known.dropped.end());
  apart.insert(given.drop.begin(), given.drop.end());
  for (const std::string& column : {known.id, given.label, given.id}) {
    if (!column.empty()) apart.insert(column);
  }
  const auto may_have = [&](const std::string& column) {
    return is_among(column, info.columns) || is_position(column);
  };
  // A position of the model's table means the same column only in a file that has all columns that it had.
  const bool whole = columns_in(info) == width + std::count_if(apart.begin(), apart.end(), may_have);
  const auto has_known = [&](const std::string& column) {
    return is_among(column, info.columns) || (whole && !by_name && is_position(column));
  };
  const auto has_given = [&](const std::string& column) {
    return is_among(column, info.columns) || ((whole || by_name) && is_position(column));
  };
  std::erase_if(given.drop, [&](const std::string& column) { return !has_given(column); });
  if (!has_given(given.label)) given.label.clear();
  AskedReading asked;
  if (!known.columns.empty() && std::all_of(known.columns.begin(), known.columns.end(), has_known)) {
    asked.labels = known.columns;
  }
  if (with_labels && given.label.empty() && asked.labels.size() == 1) given.label = asked.labels[0];
  std::vector<std::string> left_out = known.dropped;
  left_out.insert(left_out.end(), known.columns.begin(), known.columns.end());
  left_out.push_back(known.id);
  for (const std::string& column : left_out) {
    const bool is_read = column == given.label || column == given.id || is_among(column, given.drop);
    if (has_known(column) && !is_read) given.drop.push_back(column);
  }
  Preparation::Matched matched = preparation.matched(std::move(given), info.columns, file);
  if (!matched.note.empty()) add_note(matched.note);
  asked.options = std::move(matched.options);
  return asked;
}

}  // namespace vicinal::cli
