// Spools: what is written comes back, and what was drained takes no room any more.
#include "io/spool.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "io_testing.hpp"

namespace vicinal::io {
namespace {

std::set<int> open_files() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat status {};
    const int fd = std::stoi(entry.path().filename());
    if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) found.insert(fd);
  }
  return found;
}

std::uint64_t room_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(Spools, ADrainedOneTakesNoRoom) {
  const io_testing::Folder folder;
  const Context ctx = Context::cpu();
  const std::set<int> before = open_files();
  Spool spool(ctx, folder.path() / "out.npz");
  int fd = -1;
  for (const int open : open_files()) {
    if (!before.contains(open)) fd = open;
  }
  ASSERT_GE(fd, 0);
  std::string written(std::size_t{20} << 20, ' ');
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<char>(i * 2654435761U >> 13U);
  spool.write(written.data(), written.size());
  EXPECT_GE(room_of(fd), written.size());

  std::string read;
  spool.read([&](std::string_view piece) { read += piece; });
  EXPECT_EQ(read, written);
  EXPECT_GE(room_of(fd), written.size());

  std::string drained;
  spool.drain([&](std::string_view piece) { drained += piece; });
  EXPECT_EQ(drained, written);
  EXPECT_LT(room_of(fd), std::uint64_t{5} << 20);  // the last step, and the file system's own blocks
  EXPECT_EQ(spool.size(), written.size());
}

}  // namespace
}  // namespace vicinal::io
