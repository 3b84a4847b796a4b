// AtomicFile: a target is whole or untouched, and nothing is left behind (contract clause 11).
#include "io/atomic_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "io_testing.hpp"

namespace vicinal {
namespace {

using io::AtomicFile;
using io::OutputGroup;
using io_testing::expect_error;
using io_testing::Folder;

TEST(IoAtomicFile, AppearsOnCommitOnly) {
  const Folder folder;
  folder.put("a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write("new ");
    const std::string large(1 << 20, 'x');
    file.write(large);
    EXPECT_EQ(file.size(), 4U + large.size());
    EXPECT_EQ(folder.get("a.txt"), "old");
    EXPECT_EQ(folder.names().size(), 2U);
    file.commit();
  }
  EXPECT_EQ(folder.get("a.txt").size(), 4U + (1 << 20));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.txt"});
}

TEST(IoAtomicFile, LeavesNothingWithoutCommit) {
  const Folder folder;
  folder.put("a.txt", "old");
  { AtomicFile(folder / "a.txt").write("new"); }
  { AtomicFile(folder / "b.txt").write("new"); }
  EXPECT_EQ(folder.get("a.txt"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.txt"});
}

void write_committed(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(IoOutputGroup, AllFilesAppearOnCommitOnly) {
  const Folder folder;
  folder.put("a.txt", "old");
  {
    const OutputGroup never;
    write_committed(folder / "a.txt", "new");
    write_committed(folder / "b.txt", "new");
    EXPECT_EQ(folder.get("a.txt"), "old");
    EXPECT_EQ(folder.names().size(), 3U);
  }
  EXPECT_EQ(folder.get("a.txt"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.txt"});
  {
    OutputGroup outer;
    write_committed(folder / "a.txt", "new");
    {
      OutputGroup inner;
      write_committed(folder / "b.txt", "new");
      EXPECT_TRUE(inner.commit().empty());
    }
    EXPECT_EQ(folder.get("a.txt"), "old");
    EXPECT_FALSE(std::filesystem::exists(folder / "b.txt"));
    EXPECT_EQ(folder.names().size(), 3U);
    const std::vector<std::string> targets = outer.commit();
    EXPECT_EQ(targets, (std::vector<std::string>{(folder / "a.txt").string(), (folder / "b.txt").string()}));
    EXPECT_TRUE(outer.commit().empty());
  }
  EXPECT_EQ(folder.get("a.txt"), "new");
  EXPECT_EQ(folder.get("b.txt"), "new");
  write_committed(folder / "c.txt", "alone again");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.txt", "b.txt", "c.txt"}));
}

TEST(IoOutputGroup, ARenameThatFailsLeavesNoTemporary) {
  const Folder folder;
  {
    OutputGroup group;
    for (const char* name : {"a.txt", "b.txt", "c.txt"}) write_committed(folder / name, "new");
    std::filesystem::create_directory(folder / "b.txt");
    expect_error(ErrorCode::io, {"cannot write", "b.txt", "written already: '" + (folder / "a.txt").string() + "'"},
                 [&] { group.commit(); });
  }
  EXPECT_EQ(folder.get("a.txt"), "new");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.txt", "b.txt"}));
}

TEST(IoOutputGroup, AnInterruptRemovesWhatWaits) {
  const Folder folder;
  const OutputGroup group;
  write_committed(folder / "a.txt", "new");
  io::remove_temporaries();
  EXPECT_TRUE(folder.names().empty());
}

TEST(IoAtomicFile, RefusesWhatCannotBeATarget) {
  const Folder folder;
  std::filesystem::create_directory(folder / "sub");
  expect_error(ErrorCode::io, {"sub", "is a folder"}, [&] { AtomicFile file(folder / "sub"); });
  expect_error(ErrorCode::io, {"none/a.txt", "does not exist"}, [&] { AtomicFile file(folder / "none/a.txt"); });
  expect_error(ErrorCode::io, {"folder"}, [&] { AtomicFile file(folder / "new/"); });
  folder.put("plain", "x");
  expect_error(ErrorCode::io, {"plain/a.txt"}, [&] { AtomicFile file(folder / "plain/a.txt"); });
  expect_error(ErrorCode::invalid_argument, {"empty"}, [&] { AtomicFile file(""); });
  expect_error(ErrorCode::io, {"write"}, [&] { AtomicFile file(folder / std::string(300, 'n')); });
}

TEST(IoAtomicFile, TakesTheLongestName) {
  const Folder folder;
  const std::string name(255, 'n');
  AtomicFile file(folder / name);
  file.write("x");
  file.commit();
  EXPECT_EQ(folder.get(name), "x");
}

TEST(IoAtomicFile, KeepsPermissions) {
  const Folder folder;
  const mode_t old_mask = ::umask(027);
  write_text(folder / "new", "x");
  ::umask(old_mask);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
  folder.put("old", "x");
  ASSERT_EQ(::chmod((folder / "old").c_str(), 0604), 0);
  write_text(folder / "old", "y");
  ASSERT_EQ(::stat((folder / "old").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0604U);
}

TEST(IoAtomicFile, FollowsLinks) {
  const Folder folder;
  folder.put("real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  std::filesystem::create_symlink("missing", folder / "dangling");
  std::filesystem::create_symlink("loop", folder / "loop");
  write_text(folder / "link", "new");
  write_text(folder / "dangling", "made");
  EXPECT_EQ(folder.get("real"), "new");
  EXPECT_EQ(folder.get("missing"), "made");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  expect_error(ErrorCode::io, {"loop"}, [&] { write_text(folder / "loop", "x"); });
}

TEST(IoAtomicFile, WritesSpecialFilesDirectly) {
  write_text("/dev/null", "x");
  expect_error(ErrorCode::io, {"/dev/full", "No space left"}, [] { write_text("/dev/full", "x"); });
  const Folder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream in(pipe);
    std::getline(in, got, '\0');
  });
  write_text(pipe, std::string(300000, 'p'));
  reader.join();
  EXPECT_EQ(got, std::string(300000, 'p'));
  EXPECT_EQ(folder.names().size(), 1U);
}

/// Runs `body` in a child; its exit status.
template <class Body>
int exit_status_of(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(IoAtomicFile, DiskFullLeavesNothing) {
  const Folder folder;
  folder.put("a.bin", "old");
  // A limit on the size of files stands in for a full disk: write() fails after a part was taken.
  const int status = exit_status_of([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    try {
      write_text(folder / "a.bin", std::string(3 << 20, 'x'));
    } catch (const Error& error) {
      const std::string_view sentence = error.what();
      return error.code() == ErrorCode::io && sentence.find("a.bin") != std::string_view::npos &&
                     sentence.find("File too large") != std::string_view::npos
                 ? 0
                 : 2;
    }
    return 3;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.get("a.bin"), "old");
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST(IoAtomicFile, InterruptRemovesTemporaries) {
  const Folder folder;
  const int status = exit_status_of([&] {
    std::vector<std::unique_ptr<AtomicFile>> files;
    for (int i = 0; i < 20; ++i) {
      files.push_back(std::make_unique<AtomicFile>(folder / ("f" + std::to_string(i))));
      files.back()->write("x");
    }
    files[3]->commit();
    files[5].reset();
    if (folder.names().size() != 19) return 1;
    io::remove_temporaries();
    if (folder.names() != std::vector<std::string>{"f3"}) return 2;
    try {
      files[4]->commit();
    } catch (const Error& error) {
      return error.code() == ErrorCode::io ? 0 : 3;
    }
    return 4;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f3"});
}

TEST(IoAtomicFile, ACancelEndsALongWriteAndALongSync) {
  const Folder folder;
  const std::string large(std::size_t{16} << 20, 'x');
  for (const bool written : {false, true}) {
    const CancelToken token;
    AtomicFile file(folder / "a", &token);
    if (written) file.write(large);
    token.cancel();
    expect_error(ErrorCode::cancelled, {}, [&] { written ? file.commit() : file.write(large); });
    EXPECT_TRUE(folder.names().empty()) << written;
  }
}

TEST(IoAtomicFile, ChildLeavesTheParentsFilesBe) {
  const Folder folder;
  AtomicFile file(folder / "a");
  file.write("x");
  EXPECT_EQ(exit_status_of([] {
              io::remove_temporaries();
              return 0;
            }),
            0);
  file.commit();
  EXPECT_EQ(folder.get("a"), "x");
}

}  // namespace
}  // namespace vicinal
