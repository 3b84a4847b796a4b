// Context: options, instruction sets by name and environment, progress, cancel.
#include "vicinal/context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/context_state.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "variable.hpp"

namespace vicinal {
namespace {

ErrorCode code_of(const CpuOptions& options, std::string* sentence = nullptr) {
  try {
    Context::cpu(options);
  } catch (const Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST(Context, TakesTheThreadsAskedForAndAllByDefault) {
  EXPECT_EQ(Context::cpu({.threads = 3}).threads(), 3);
  EXPECT_EQ(Context::cpu().threads(), core::available_cores());
}

TEST(Context, RefusesThreadCountsOutsideTheirDomain) {
  EXPECT_EQ(code_of({.threads = -1}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({.threads = 1'000'000'000}), ErrorCode::invalid_argument);
}

TEST(Context, TakesTheMemoryLimitAskedForAndMostOfWhatIsFreeByDefault) {
  EXPECT_EQ(Context::cpu({.memory_limit = 12345}).memory_limit(), 12345U);
  const std::uint64_t limit = Context::cpu().memory_limit();
  EXPECT_GT(limit, 0U);
  EXPECT_LT(limit, core::free_memory() / 8 * 10);
}

TEST(Context, NeverReportsTheAutomaticInstructionSet) {
  const Variable unset("VICINAL_ISA", nullptr);
  const Isa isa = Context::cpu().isa();
  EXPECT_NE(isa, Isa::automatic);
  EXPECT_TRUE(core::has_isa(isa));
}

TEST(Context, AnInstructionSetIsTakenOrRefusedByName) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (core::has_isa(isa)) {
      EXPECT_EQ(Context::cpu({.isa = isa}).isa(), isa);
    } else {
      std::string sentence;
      EXPECT_EQ(code_of({.isa = isa}, &sentence), ErrorCode::device_unavailable);
      EXPECT_NE(sentence.find(name_of(isa)), std::string::npos) << sentence;
    }
  }
}

TEST(Context, TheEnvironmentNamesTheInstructionSetUnlessTheOptionDoes) {
  const Variable variable("VICINAL_ISA", "baseline");
  EXPECT_EQ(Context::cpu().isa(), Isa::baseline);
  if (core::has_isa(Isa::avx2)) {
    EXPECT_EQ(Context::cpu({.isa = Isa::avx2}).isa(), Isa::avx2);
  }
}

TEST(Context, AnUnknownInstructionSetInTheEnvironmentIsRefused) {
  const Variable variable("VICINAL_ISA", "sse9");
  std::string sentence;
  EXPECT_EQ(code_of({}, &sentence), ErrorCode::invalid_argument);
  EXPECT_NE(sentence.find("VICINAL_ISA"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("'sse9'"), std::string::npos) << sentence;
}

TEST(Context, AnEmptyOrAutomaticEnvironmentMeansNothing) {
  for (const char* value : {"", "automatic"}) {
    const Variable variable("VICINAL_ISA", value);
    EXPECT_NE(Context::cpu().isa(), Isa::automatic);
  }
}

TEST(Context, HoldsTheAblationThatTheEnvironmentNamedWhenItWasMade) {
  EXPECT_EQ(core::ContextAccess::ablation(Context::cpu()), core::Ablation::nothing);
  for (std::size_t i = 0; i < core::kAblationNames.size(); ++i) {
    std::optional<Context> ctx;
    {
      const Variable variable(core::kAblationVariable, core::kAblationNames[i]);
      ctx = Context::cpu();
    }
    EXPECT_EQ(core::ContextAccess::ablation(*ctx), static_cast<core::Ablation>(i));
  }
  const Variable variable(core::kAblationVariable, "everything");
  std::string sentence;
  EXPECT_EQ(code_of({}, &sentence), ErrorCode::invalid_argument);
  EXPECT_NE(sentence.find("VICINAL_ABLATION: unknown value 'everything'"), std::string::npos) << sentence;
}

TEST(Context, CopiesShareCancelAndPool) {
  const CancelToken token;
  const Context ctx = Context::cpu({.threads = 2, .cancel = token});
  const Context copy = ctx;
  EXPECT_EQ(&core::ContextAccess::pool(copy), &core::ContextAccess::pool(ctx));
  EXPECT_NO_THROW(copy.check_cancelled());
  token.cancel();
  EXPECT_TRUE(copy.cancel_token().cancelled());
  EXPECT_THROW(copy.check_cancelled(), Error);
}

TEST(Context, TokensOfTwoContextsAreTheirOwn) {
  const Context first = Context::cpu({.threads = 1});
  const Context second = Context::cpu({.threads = 1});
  first.cancel_token().cancel();
  EXPECT_NO_THROW(second.check_cancelled());
}

TEST(Context, ProgressIsThinnedOutButTheEndAlwaysArrives) {
  std::vector<double> fractions;
  const Context ctx = Context::cpu({.threads = 1, .progress = [&](std::string_view stage, double fraction) {
                                      EXPECT_EQ(stage, "search");
                                      fractions.push_back(fraction);
                                    }});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10000; ++i) ctx.report("search", i / 10000.0);
  const auto passed = std::chrono::steady_clock::now() - begin;
  ctx.report("search", 1);
  ASSERT_FALSE(fractions.empty());
  EXPECT_EQ(fractions.back(), 1);
  // At most one in 20 ms, the first and the last besides.
  EXPECT_LE(static_cast<std::int64_t>(fractions.size()), passed / std::chrono::milliseconds(20) + 3);
}

TEST(Context, ProgressTellsTheBeginningOfEveryStage) {
  std::vector<std::string> stages;
  const Context ctx =
      Context::cpu({.threads = 1, .progress = [&](std::string_view stage, double) { stages.emplace_back(stage); }});
  ctx.report("search", 0);
  ctx.report("weights", 0);
  ctx.report("solve", 0.5);
  EXPECT_EQ(stages, (std::vector<std::string>{"search", "weights", "solve"}));
}

TEST(Context, ProgressArrivesOnTheCallersThreadOnly) {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  const Context ctx = Context::cpu({.threads = 3, .progress = [&](std::string_view, double) {
                                      if (std::this_thread::get_id() != caller) ++elsewhere;
                                    }});
  core::parallel_for(ctx, 1000, [&](std::int64_t, int) { ctx.report("search", 1); });
  EXPECT_EQ(elsewhere, 0);
}

TEST(Context, ReportingWithoutAProgressFunctionDoesNothing) {
  EXPECT_NO_THROW(Context::cpu().report("search", 0.5));
}

}  // namespace
}  // namespace vicinal
