// See encode.hpp.
#include "core/encode.hpp"

#include <limits>
#include <string>
#include <vector>

#include "core/distinct.hpp"
#include "core/entry.hpp"

namespace vicinal {
namespace core {
namespace {

/// `Value` is what is compared, `Class` what a class is kept as.
template <class Class, class Value>
Labels encode_as(std::span<const Value> values, const std::function<void()>& poll) {
  if (values.empty()) throw Error(ErrorCode::bad_data, "labels: the list is empty");
  Distinct<Value> distinct(poll);
  Labels labels;
  labels.codes.reserve(values.size());
  for (const Value& value : values) {
    const std::int64_t number = distinct.number_of(value);
    if (number == std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::bad_data, "labels: more than 2147483647 different labels");
    }
    labels.codes.push_back(static_cast<std::int32_t>(number));
  }
  const std::vector<std::int64_t> order = distinct.sorted();
  std::vector<Class> classes;
  classes.reserve(order.size());
  std::vector<std::int32_t> rank(order.size());
  for (const std::int64_t number : order) {
    distinct.step();
    rank[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(classes.size());
    classes.emplace_back(distinct.value(number));
  }
  for (std::int32_t& code : labels.codes) {
    distinct.step();
    code = rank[static_cast<std::size_t>(code)];
  }
  labels.classes = std::move(classes);
  return labels;
}

}  // namespace

Labels encode(std::span<const std::int64_t> values, const std::function<void()>& poll) {
  return encode_as<std::int64_t>(values, poll);
}

Labels encode(std::span<const std::string_view> values, const std::function<void()>& poll) {
  return encode_as<std::string>(values, poll);
}

}  // namespace core

Labels encode_labels(std::span<const std::int64_t> values) try {
  const core::Entry entry;
  return core::encode(values, [] {});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Labels encode_labels(std::span<const std::string> values) try {
  const core::Entry entry;
  return core::encode(std::vector<std::string_view>(values.begin(), values.end()), [] {});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
