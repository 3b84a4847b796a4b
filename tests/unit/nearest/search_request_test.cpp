// A search's arguments are looked at once a call (ops/nearest/search.hpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/index_access.hpp"
#include "ops/nearest/search.hpp"
#include "refusal.hpp"

namespace vicinal {
namespace {

class SearchRequestOf : public testing::Test {
 protected:
  SearchRequestOf() : values_(200), exclude_(50, -1) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i * i % 97);
  }

  [[nodiscard]] TableView table() const { return {values_.data(), 100, 2}; }
  [[nodiscard]] TableView queries() const { return {values_.data(), 50, 2}; }
  [[nodiscard]] KnnOptions options() const { return {.k = 3, .exclude = exclude_}; }

  Context ctx_ = Context::cpu({.threads = 1});
  std::vector<float> values_;
  std::vector<std::int64_t> exclude_;
};

TEST_F(SearchRequestOf, ACallThatPreparesTheTableLooksAtTheArgumentsOnce) {
  const TableView asked = queries();
  ops::SearchRequest request = ops::checked_request(ctx_, table(), &asked, options());
  const Index index(ctx_, table());
  // Whoever looks now refuses it.
  exclude_[7] = 100;
  EXPECT_NO_THROW(ops::plan_job(ctx_, kernels::prepared_of(index), request, true));
  EXPECT_NO_THROW(ops::plan_search(ctx_, table(), request));
  ops::SearchRequest other = ops::request_of(&asked, options());
  const std::string sentence =
      refusal(ErrorCode::invalid_argument, [&] { ops::plan_job(ctx_, kernels::prepared_of(index), other, true); });
  EXPECT_EQ(sentence.rfind("exclude: entry 7 is 100", 0), 0U) << sentence;
}

TEST_F(SearchRequestOf, OneThatWasRefusedIsLookedAtAgain) {
  exclude_[7] = 100;
  const TableView asked = queries();
  ops::SearchRequest request = ops::request_of(&asked, options());
  EXPECT_THROW(request.check(ctx_, table()), Error);
  EXPECT_THROW(request.check(ctx_, table()), Error);
  exclude_[7] = 99;
  EXPECT_NO_THROW(request.check(ctx_, table()));
}

}  // namespace
}  // namespace vicinal
