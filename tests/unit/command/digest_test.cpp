// Digest: whatever the pieces; of tables, whatever the strides.
#include "base/digest.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

using cli::Digest;
using cli::digest_of;

TEST(CommandDigest, HasBothChecksumsAndTheLength) {
  EXPECT_EQ(digest_of(""), "0000000000000001-0");
  EXPECT_EQ(digest_of("123456789"), "cbf43926091e01de-9");
}

TEST(CommandDigest, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + i % 23);
  for (std::size_t piece = 1; piece < 80; ++piece) {
    Digest digest;
    digest.add(nullptr, 0);
    for (std::size_t at = 0; at < text.size(); at += piece) digest.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(digest.text(), digest_of(text)) << piece;
  }
}

TEST(CommandDigest, ChangesWithEveryBit) {
  const std::string text(40, 'a');
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(digest_of(changed), digest_of(text)) << bit;
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
