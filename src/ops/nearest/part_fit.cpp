// See part_fit.hpp.
#include "ops/nearest/part_fit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/poll.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal::ops {
namespace {

/// From `begin` to `end` - 1.
struct NumberRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

NumberRange rows_of(const PartInfo& info) {
  return {info.place.first_id, info.place.first_id + info.rows};
}
NumberRange queries_of(const PartInfo& info) {
  return {info.place.first_query, info.place.first_query + info.queries};
}

std::string shown_range(const NumberRange& range) {
  if (range.begin + 1 == range.end) return fmt::format("{}", range.begin);
  return fmt::format("{} to {}", range.begin, range.end - 1);
}

/// Ranges that are missing, to be told in one sentence.
class Missing {
 public:
  explicit Missing(const char* what) : what_(what) {}
  void add(const NumberRange& range) {
    if (range.begin >= range.end) return;
    constexpr int kShown = 20;
    if (++count_ <= kShown) text_ += (text_.empty() ? "" : ", ") + shown_range(range);
  }
  void refuse_any(const std::string& where) const {
    if (count_ == 0) return;
    const std::string more = count_ > 20 ? fmt::format(" and {} more ranges", count_ - 20) : "";
    refuse(fmt::format("parts: {} {}{} are missing{}", what_, text_, more, where));
  }

 private:
  const char* what_;
  std::string text_;
  int count_ = 0;
};

/// What all parts must agree on.
void check_same(const NamedPart& one, const NamedPart& other) {
  const PartInfo& a = *one.info;
  const PartInfo& b = *other.info;
  const auto differ = [&](const char* what, const auto& of_a, const auto& of_b) {
    refuse(fmt::format("parts: the {} of {} is {}, but that of {} is {}", what, one.name, of_a, other.name, of_b));
  };
  if (a.kind != b.kind) differ("kind", name_of(a.kind), name_of(b.kind));
  if (a.metric != b.metric) differ("metric", name_of(a.metric), name_of(b.metric));
  if (a.metric == Metric::minkowski && a.p != b.p) differ("exponent p", a.p, b.p);
  if (a.k != b.k) differ("k", a.k, b.k);
  if (a.cols != b.cols) differ("number of columns", a.cols, b.cols);
  if (a.has_radii != b.has_radii) {
    refuse(fmt::format("parts: {} has a radius for each query, but {} has one for all",
                       a.has_radii ? one.name : other.name, a.has_radii ? other.name : one.name));
  }
  if (a.radius != b.radius) differ("radius", a.radius, b.radius);
  if (a.order != b.order) differ("order of lists", name_of(a.order), name_of(b.order));
  if (a.place.self != b.place.self) {
    refuse(fmt::format("parts: the queries of {} are rows of the table, but those of {} are not",
                       a.place.self ? one.name : other.name, a.place.self ? other.name : one.name));
  }
  if (a.place.total_rows != b.place.total_rows) {
    differ("number of all rows", a.place.total_rows, b.place.total_rows);
  }
  if (a.place.total_queries != b.place.total_queries) {
    differ("number of all queries", a.place.total_queries, b.place.total_queries);
  }
}

/// Refuses shards of a group that overlap, or do not number the table's rows from 0 to the last one. Without a total
/// the table ends where the last of them does.
std::int64_t check_rows(std::span<const NamedPart> parts, const PartGroup& group, std::int64_t total,
                        std::size_t groups) {
  Missing missing("rows");
  std::int64_t end = 0;
  std::size_t before = group.parts.front();
  for (const std::size_t number : group.parts) {
    const NumberRange rows = rows_of(*parts[number].info);
    if (rows.begin < end) {
      refuse(fmt::format("parts: {} and {} both have rows {} for the same queries", parts[before].name,
                         parts[number].name, shown_range({rows.begin, std::min(rows.end, end)})));
    }
    missing.add({end, rows.begin});
    end = rows.end;
    before = number;
  }
  if (total > 0) missing.add({end, total});
  missing.refuse_any(
      groups == 1 ? "" : " for queries " + shown_range({group.first_query, group.first_query + group.queries}));
  return end;
}

}  // namespace

bool describes_part(const PartInfo& info) noexcept {
  const PartOptions& place = info.place;
  const auto whole = [](std::int64_t first, std::int64_t count, std::int64_t total) {
    return first >= 0 && count >= 1 && total >= 0 && first <= std::numeric_limits<std::int64_t>::max() - count &&
           (total == 0 || first + count <= total);
  };
  const bool has_k = info.kind == PartKind::knn;
  const bool has_exponent = info.metric != Metric::minkowski || (info.p >= 1 && std::isfinite(info.p));
  const bool has_radius = has_k ? info.radius == 0 && !info.has_radii : !std::isnan(info.radius);
  const bool has_order = info.order == RadiusOrder::key || info.kind == PartKind::radius;
  return whole(place.first_id, info.rows, place.total_rows) &&
         whole(place.first_query, info.queries, place.total_queries) && info.cols >= 1 &&
         (has_k ? info.k >= 1 : info.k == 0) && has_exponent && has_radius && has_order;
}

void check_info(const PartInfo& info, const std::string& name) {
  if (!describes_part(info)) refuse(fmt::format("parts: the numbers of {} describe no part of a search", name));
}

FittedParts fit_parts(std::span<const NamedPart> parts) {
  if (parts.empty()) refuse("parts: there are none to merge");
  for (const NamedPart& part : parts) check_info(*part.info, part.name);
  for (const NamedPart& part : parts.subspan(1)) check_same(parts.front(), part);
  const PartOptions& place = parts.front().info->place;

  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t number) {
    const PartInfo& info = *parts[number].info;
    return std::tuple(info.place.first_query, info.queries, info.place.first_id, info.rows);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });

  FittedParts fitted;
  Missing missing("queries");
  std::int64_t end = place.total_queries > 0 ? 0 : parts[order.front()].info->place.first_query;
  for (const std::size_t number : order) {
    const NumberRange queries = queries_of(*parts[number].info);
    const bool is_same = !fitted.groups.empty() && fitted.groups.back().first_query == queries.begin &&
                         fitted.groups.back().queries == queries.end - queries.begin;
    if (!is_same) {
      if (queries.begin < end) {
        refuse(
            fmt::format("parts: {} has queries {} and {} has queries {}, which must be the same or have none in common",
                        parts[fitted.groups.back().parts.front()].name,
                        shown_range(queries_of(*parts[fitted.groups.back().parts.front()].info)), parts[number].name,
                        shown_range(queries)));
      }
      missing.add({end, queries.begin});
      end = queries.end;
      fitted.groups.push_back({queries.begin, queries.end - queries.begin, {}});
      fitted.queries += queries.end - queries.begin;
    }
    fitted.groups.back().parts.push_back(number);
  }
  if (place.total_queries > 0) missing.add({end, place.total_queries});
  missing.refuse_any("");
  for (const PartGroup& group : fitted.groups) {
    const std::int64_t rows = check_rows(parts, group, place.total_rows, fitted.groups.size());
    if (fitted.table_rows != 0 && rows != fitted.table_rows) {
      Missing last("rows");
      last.add({std::min(rows, fitted.table_rows), std::max(rows, fitted.table_rows)});
      last.refuse_any(" for some of the queries");
    }
    fitted.table_rows = rows;
  }
  return fitted;
}

void check_part(const Context& ctx, const NeighborPart& part, const std::string& name) {
  const PartInfo& info = part.info;
  const auto require = [&](bool right, const char* why) {
    if (!right) throw Error(ErrorCode::bad_data, fmt::format("parts: {}: {}", name, why));
  };
  const auto m = static_cast<std::size_t>(info.queries);
  require(part.radii.size() == (info.has_radii ? m : 0), "its radii do not number its queries");
  core::Poll poll(ctx);
  if (info.kind == PartKind::count) {
    require(part.ids.empty() && part.keys.empty() && part.offsets.empty(), "it has lists beside its counts");
    require(part.counts.size() == m, "its counts do not number its queries");
    for (const std::int64_t count : part.counts) {
      poll.step();
      require(count >= 0 && count <= info.rows, "a count is below 0 or above the number of its rows");
    }
    return;
  }
  require(part.counts.empty(), "it has counts beside its lists");
  require(part.ids.size() == part.keys.size(), "it has more ids than keys, or fewer");
  if (part.offsets.empty()) {
    require(info.kind == PartKind::knn && info.k <= info.rows && part.ids.size() % m == 0 &&
                part.ids.size() / m == static_cast<std::size_t>(info.k),
            "its lists do not have k neighbors each, and it has no offsets");
    return;
  }
  require(part.offsets.size() == m + 1 && part.offsets.front() == 0 && part.offsets.back() == std::ssize(part.ids),
          "its offsets do not divide its lists");
  const std::int64_t longest = info.kind == PartKind::knn ? std::min(info.k, info.rows) : info.rows;
  for (std::size_t i = 0; i < m; ++i) {
    poll.step();
    const std::int64_t begin = part.offsets[i];
    require(begin <= part.offsets[i + 1] && part.offsets[i + 1] - begin <= longest,
            "a list is longer than it may be, or its offsets descend");
  }
}

}  // namespace vicinal::ops
