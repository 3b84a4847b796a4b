// Errors and names: exit codes, and names that lead there and back.
#include "vicinal/error.hpp"

#include <gtest/gtest.h>

#include "vicinal/context.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

TEST(Error, ExitCodesAreThoseOfTheContract) {
  EXPECT_EQ(exit_code(ErrorCode::internal), 1);
  EXPECT_EQ(exit_code(ErrorCode::invalid_argument), 2);
  EXPECT_EQ(exit_code(ErrorCode::bad_data), 3);
  EXPECT_EQ(exit_code(ErrorCode::io), 3);
  EXPECT_EQ(exit_code(ErrorCode::over_memory), 4);
  EXPECT_EQ(exit_code(ErrorCode::device_unavailable), 5);
  EXPECT_EQ(exit_code(ErrorCode::cancelled), 130);
}

TEST(Error, KeepsCodeAndSentence) {
  const Error error(ErrorCode::bad_data, "line 3 is short");
  EXPECT_EQ(error.code(), ErrorCode::bad_data);
  EXPECT_STREQ(error.what(), "line 3 is short");
}

TEST(Names, LeadThereAndBack) {
  for (int i = 0; i < 8; ++i) {
    const auto metric = static_cast<Metric>(i);
    EXPECT_EQ(metric_from(name_of(metric)), metric);
  }
  for (int i = 0; i < 3; ++i) {
    const auto method = static_cast<Method>(i);
    EXPECT_EQ(method_from(name_of(method)), method);
  }
  for (int i = 0; i < 7; ++i) {
    const auto shape = static_cast<Shape>(i);
    EXPECT_EQ(shape_from(name_of(shape)), shape);
  }
}

TEST(Names, AreSpelledAsDocumented) {
  EXPECT_EQ(name_of(Metric::sqeuclidean), "sqeuclidean");
  EXPECT_EQ(name_of(Metric::inner_product), "inner_product");
  EXPECT_EQ(name_of(Isa::avx512), "avx512");
  EXPECT_EQ(name_of(DType::bfloat16), "bfloat16");
  EXPECT_EQ(name_of(Shape::swiss_roll), "swiss_roll");
}

TEST(Names, AnUnknownOneIsRefusedWithTheListOfThoseThereAre) {
  try {
    metric_from("Euclidean");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    const std::string what = error.what();
    EXPECT_NE(what.find("'Euclidean'"), std::string::npos) << what;
    EXPECT_NE(what.find("chebyshev"), std::string::npos) << what;
  }
  EXPECT_THROW(method_from(""), Error);
  EXPECT_THROW(shape_from("roll"), Error);
}

TEST(DType, SizesAreBytesOfAnElement) {
  EXPECT_EQ(size_of(DType::uint8), 1);
  EXPECT_EQ(size_of(DType::float16), 2);
  EXPECT_EQ(size_of(DType::bfloat16), 2);
  EXPECT_EQ(size_of(DType::float32), 4);
  EXPECT_EQ(size_of(DType::float64), 8);
}

}  // namespace
}  // namespace vicinal
