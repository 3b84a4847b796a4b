// Digest: XXH64, whatever the pieces; of tables, whatever the strides.
#include "base/digest.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

using cli::Digest;
using cli::digest_of;

TEST(CommandDigest, IsXxh64) {
  EXPECT_EQ(digest_of(""), "ef46db3751d8e999");
  EXPECT_EQ(digest_of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(digest_of("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(digest_of("Nobody inspects the spammish repetition"), "fbcea83c8a378bf1");
}

TEST(CommandDigest, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + i % 23);
  for (std::size_t piece = 1; piece < 80; ++piece) {
    Digest digest;
    for (std::size_t at = 0; at < text.size(); at += piece) digest.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(digest.text(), digest_of(text)) << piece;
  }
}

TEST(CommandDigest, OfTablesLooksAtValuesShapeAndType) {
  const Context ctx = Context::cpu();
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const std::vector<float> columns = {1, 4, 2, 5, 3, 6};
  const std::vector<float> spread = {1, 2, 3, 0, 4, 5, 6, 0};
  const std::vector<double> wider(rows.begin(), rows.end());
  const std::string digest = digest_of(ctx, TableView(rows.data(), 2, 3));
  EXPECT_EQ(digest_of(ctx, TableView(columns.data(), DType::float32, 2, 3, 1, 2)), digest);
  EXPECT_EQ(digest_of(ctx, TableView(spread.data(), DType::float32, 2, 3, 4)), digest);
  EXPECT_NE(digest_of(ctx, TableView(rows.data(), 3, 2)), digest);
  EXPECT_NE(digest_of(ctx, TableView(columns.data(), 2, 3)), digest);
  EXPECT_NE(digest_of(ctx, TableView(wider.data(), 2, 3)), digest);
}

}  // namespace
}  // namespace vicinal
