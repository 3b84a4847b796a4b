// See known_columns.hpp.
#include "base/known_columns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/input.hpp"
#include "io/describe.hpp"
#include "io/format.hpp"
#include "io/shown.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

bool is_among(const std::string& column, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), column) != names.end();
}

/// Where a column is among the `fields` of a file, by its name or else by its position.
std::optional<std::int64_t> place_of(const std::string& column, const std::vector<std::string>& names,
                                     std::int64_t fields) {
  constexpr std::size_t kMaxDigits = 9;
  const auto named = std::find(names.begin(), names.end(), column);
  if (named != names.end() && !column.empty()) return named - names.begin();
  if (!is_position(column) || column.size() > kMaxDigits || std::stoll(column) >= fields) return std::nullopt;
  return std::stoll(column);
}

const std::string& name_at(const std::vector<std::string>& names, std::int64_t at) {
  return names[static_cast<std::size_t>(at)];
}

}  // namespace

const FileInfo& look(const Context& ctx, const std::string& file, const ReadOptions& reading) {
  // What describe_columns looks at.
  using Key = std::tuple<std::string, std::string, std::optional<bool>, std::optional<FileFormat>, bool, bool>;
  static std::map<Key, FileInfo> seen;
  const Key key(file, {reading.delimiter, reading.decimal, reading.comment}, reading.header, reading.format,
                reading.keep_index, io::asks_for_csv(reading));
  const auto found = seen.find(key);
  if (found != seen.end()) return found->second;
  return seen.emplace(key, io::describe_columns(ctx, file, reading)).first->second;
}

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

KnownColumns by_names(const Context& ctx, const std::string& file, const ReadOptions& reading, KnownColumns columns) {
  const auto any = [](const std::vector<std::string>& some) {
    return std::any_of(some.begin(), some.end(), is_position);
  };
  if (!any(columns.columns) && !any(columns.dropped) && !is_position(columns.id)) return columns;
  const FileInfo& info = look(ctx, file, reading);
  const auto name = [&](std::string& column) {
    const auto at = place_of(column, info.columns, std::ssize(info.columns));
    if (at && !name_at(info.columns, *at).empty()) column = name_at(info.columns, *at);
  };
  std::for_each(columns.columns.begin(), columns.columns.end(), name);
  std::for_each(columns.dropped.begin(), columns.dropped.end(), name);
  name(columns.id);
  return columns;
}

std::string id_in_table(const Context& ctx, const std::string& file, const std::string& asked,
                        const ReadOptions& reading, const std::string& id) {
  if (id.empty()) return {};
  const FileInfo& info = look(ctx, file, reading);
  if (!io::has_named_columns(info.format)) return {};
  if (is_among(id, info.columns) && !is_position(id)) return id;
  if (!is_position(id)) return {};
  if (info.columns.empty() || asked.empty()) return id;
  const FileInfo& there = look(ctx, asked, reading);
  const auto at = place_of(id, there.columns, std::ssize(there.columns));
  if (!io::has_named_columns(there.format) || there.columns.empty() || !at) return id;
  const std::string& name = name_at(there.columns, *at);
  if (!name.empty()) return is_among(name, info.columns) ? name : std::string();
  return name_at(info.columns, *at).empty() ? id : std::string();
}

std::string same_id(const Context& ctx, const std::string& file, const std::string& other, const ReadOptions& reading,
                    const std::string& id, const std::string& there) {
  if (!is_position(id) || there == id) return id;
  const FileInfo& info = look(ctx, other, reading);
  if (!io::has_named_columns(info.format) || info.columns.empty()) return id;
  if (is_among(there, info.columns)) return there;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--id: column {} of {} is '{}', and {} has no column of that name; give the name of a column "
                          "that both have",
                          id, file, io::printable(there), other));
}

void require_same_id(const std::string& file, const std::vector<std::string>& names, const std::string& id,
                     const std::string& there) {
  const auto at = is_position(id) ? place_of(id, names, std::ssize(names)) : std::nullopt;
  if (!at || there.empty() || there == id || name_at(names, *at) == there) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--id: column {} is '{}' in TRAIN and '{}' in {}; give the name of the column", id,
                          io::printable(there), io::printable(name_at(names, *at)), file));
}

AskedReading asked_reading(const std::string& file, const SeenColumns& seen, ReadOptions given,
                           const KnownColumns& known, const Preparation& preparation, std::int64_t width,
                           bool with_labels) {
  if (!preparation.columns().empty()) width = std::ssize(preparation.columns());
  const bool by_name = preparation.has_names() && !seen.names.empty();
  const auto place = [&](const std::string& column) { return place_of(column, seen.names, seen.fields); };
  std::vector<std::string> all_known = known.dropped;
  all_known.insert(all_known.end(), known.columns.begin(), known.columns.end());
  if (!known.id.empty()) all_known.push_back(known.id);
  std::set<std::int64_t> apart;
  const auto set_apart = [&](const std::string& column) {
    if (const auto at = place(column)) apart.insert(*at);
  };
  std::for_each(all_known.begin(), all_known.end(), set_apart);
  std::for_each(given.drop.begin(), given.drop.end(), set_apart);
  set_apart(given.label);
  set_apart(given.id);
  // A position of the model's table means the same column only in a file that has all columns that it had.
  const bool beyond = std::any_of(all_known.begin(), all_known.end(), [&](const std::string& column) {
    return is_position(column) && !place(column).has_value();
  });
  const std::int64_t index = seen.has_index && apart.count(0) == 0 ? 1 : 0;
  const bool whole = !by_name && !beyond && seen.fields == width + std::ssize(apart) + index;
  const auto has_known = [&](const std::string& column) {
    return is_among(column, seen.names) || (whole && is_position(column));
  };
  AskedReading asked;
  if (!known.columns.empty() && std::all_of(known.columns.begin(), known.columns.end(), has_known)) {
    asked.labels = known.columns;
  }
  if (with_labels && given.label.empty() && asked.labels.size() == 1) given.label = asked.labels[0];
  std::set<std::int64_t> used;
  const auto use = [&](const std::string& column) {
    if (const auto at = place(column)) used.insert(*at);
  };
  std::for_each(given.drop.begin(), given.drop.end(), use);
  use(given.label);
  use(given.id);
  for (const std::string& column : all_known) {
    if (!has_known(column) || !used.insert(*place(column)).second) continue;
    const std::string position = fmt::format("{}", *place(column));
    given.drop.push_back(is_among(position, seen.names) ? column : position);  // two may have one name
  }
  Preparation::Matched matched = preparation.matched(std::move(given), seen.names, file);
  if (!matched.note.empty()) add_note(matched.note);
  asked.options = std::move(matched.options);
  return asked;
}

AskedReading asked_reading(const Context& ctx, const std::string& file, ReadOptions given, const KnownColumns& known,
                           const Preparation& preparation, std::int64_t width, bool with_labels) {
  given.missing = preparation.imputer().filling() != Filling::none;
  const bool knows = !known.columns.empty() || !known.dropped.empty() || !known.id.empty();
  if (!knows && !preparation.has_names() && !preparation.has_texts()) return {std::move(given), {}};
  const FileInfo& info = look(ctx, file, given);
  if (!io::has_named_columns(info.format)) return {std::move(given), {}};
  const SeenColumns seen{info.columns, info.arrays.at(0).shape.at(1), info.has_index};
  return asked_reading(file, seen, std::move(given), known, preparation, width, with_labels);
}

}  // namespace vicinal::cli
