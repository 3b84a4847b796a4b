// The memory budget, and control groups read from made-up file systems of both versions.
#include "core/memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/cgroup.hpp"

namespace vicinal::core {
namespace {

namespace fs = std::filesystem;

/// A root folder of its own for each test.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("vicinal_cgroup_" + std::to_string(getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(Cgroup, WithoutFilesNothingIsLimited) {
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_TRUE(std::isinf(limits.cpus));
  EXPECT_EQ(limits.free_memory, UINT64_MAX);
}

TEST_F(Cgroup, Version2TakesTheTightestAncestor) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "600000\n");
  put("sys/fs/cgroup/a/memory.stat", "anon 500000\ninactive_file 50000\n");
  put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "600000\n");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.free_memory, 450000U);
  EXPECT_EQ(limits.cpus, 1.5);
}

TEST_F(Cgroup, Version2HighWaterMarkLimitsToo) {
  put("proc/self/cgroup", "0::/\n");
  put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("sys/fs/cgroup/memory.max", "1000\n");
  put("sys/fs/cgroup/memory.high", "700\n");
  put("sys/fs/cgroup/memory.current", "800\n");
  EXPECT_EQ(read_cgroup_limits(root_).free_memory, 0U);
}

TEST_F(Cgroup, Version1ReadsItsControllers) {
  put("proc/self/cgroup", "4:memory:/job\n2:cpuacct,cpu:/job\n1:name=systemd:/\n");
  put("proc/self/mountinfo",
      "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500\n");
  put("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 100\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.free_memory, 1600U);
  EXPECT_EQ(limits.cpus, 2.5);
}

TEST_F(Cgroup, InAContainerTheGroupOfTheMountPointIsTakenOffTheName) {
  put("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  put("proc/self/mountinfo", "31 23 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "2000\n");
  put("sys/fs/cgroup/memory/inner/memory.usage_in_bytes", "500\n");
  EXPECT_EQ(read_cgroup_limits(root_).free_memory, 1500U);
}

TEST_F(Cgroup, NonsenseDoesNotLimit) {
  put("proc/self/cgroup", "\n::\n0:\n4:memory\n0::/../..\n");
  put("proc/self/mountinfo", "x\n- -\n1 2 3 / /sys/fs/cgroup - cgroup2\n30 23 0:26 / /cg rw - cgroup2 c rw\n");
  put("cg/memory.max", "-5x\n");
  put("cg/memory.current", "\n");
  put("cg/cpu.max", "0 0\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_TRUE(std::isinf(limits.cpus));
  EXPECT_EQ(limits.free_memory, UINT64_MAX);
}

TEST(Memory, BytesAreShownInDecimalUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(512'000), "512 kB");
  EXPECT_EQ(format_bytes(1'500'000'000), "1.5 GB");
  EXPECT_EQ(format_bytes(999'960), "1 MB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "18.4 EB");
}

TEST(Memory, SomeIsFree) {
  EXPECT_GT(free_memory(), std::uint64_t{1} << 20);
}

TEST(Memory, AJobBeyondTheLimitIsRefusedWithNeedAndLimit) {
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = 1'000'000});
  EXPECT_NO_THROW(require_memory(ctx, 1'000'000, "test"));
  try {
    require_memory(ctx, 2'500'000, "the test job");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory);
    const std::string what = error.what();
    EXPECT_NE(what.find("the test job needs 2.5 MB"), std::string::npos) << what;
    EXPECT_NE(what.find("1 MB"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace vicinal::core
