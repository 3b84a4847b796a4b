// What is said when CUDA, or a part of it, is not there; and what of the device's side needs no device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "plugin/cuda/loader.hpp"
#include "plugin/files.hpp"
#include "refusal.hpp"
#include "variable.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal {
namespace {

void expect_words(const std::string& sentence, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(sentence.find(word), std::string::npos) << "no '" << word << "' in: " << sentence;
  }
}

TEST(Plugin, AFileThatIsNotThereIsNamed) {
  expect_words(refusal(ErrorCode::device_unavailable, [] { plugin::load_functions("/nowhere/libvicinal_cuda.so"); }),
               {"plug-in", "/nowhere/libvicinal_cuda.so"});
}

TEST(Plugin, ASharedObjectWithoutTheSymbolIsNone) {
  expect_words(
      refusal(ErrorCode::device_unavailable, [] { plugin::load_functions(VICINAL_TEST_PLUGINS "no_symbol.so"); }),
      {VICINAL_TEST_PLUGINS "no_symbol.so", "vicinal_cuda_plugin"});
}

TEST(Plugin, AnotherVersionIsRefused) {
  expect_words(
      refusal(ErrorCode::device_unavailable, [] { plugin::load_functions(VICINAL_TEST_PLUGINS "other_version.so"); }),
      {VICINAL_TEST_PLUGINS "other_version.so", std::to_string(plugin::kPluginVersion + 1),
       std::to_string(plugin::kPluginVersion)});
}

plugin::PluginFile cuda_file() {
  return {Plugin::cuda, "VICINAL_CUDA_PLUGIN", "libvicinal_cuda.so"};
}

/// The names that are tried.
std::vector<std::string> tried(plugin::PluginFile& file) {
  struct Loaded {
    std::string path;
  };
  std::vector<std::string> names;
  file.ask_finder();
  refusal(ErrorCode::device_unavailable, [&] {
    file.load([&](const std::vector<std::string>& candidates) -> Loaded {
      names = candidates;
      throw Error(ErrorCode::device_unavailable, "");
    });
  });
  return names;
}

/// A finder for a scope.
class Finder {
 public:
  explicit Finder(PluginFinder find) { set_plugin_finder(std::move(find)); }
  ~Finder() { set_plugin_finder({}); }
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;
};

TEST(Plugin, TheVariableNamesTheOnlyFileThatIsTried) {
  plugin::PluginFile file = cuda_file();
  {
    const Variable variable("VICINAL_CUDA_PLUGIN", "/somewhere/plugin.so");
    EXPECT_EQ(tried(file), std::vector<std::string>{"/somewhere/plugin.so"});
  }
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  const std::vector<std::string> candidates = tried(file);
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].substr(candidates[0].rfind('/')), "/libvicinal_cuda.so");
  EXPECT_EQ(candidates[1], "libvicinal_cuda.so");
}

TEST(Plugin, AFileThatTheProgramNamesIsTheOnlyOneButForTheVariable) {
  plugin::PluginFile file = cuda_file();
  file.name("/mine/plugin.so");
  {
    const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
    EXPECT_EQ(tried(file), std::vector<std::string>{"/mine/plugin.so"});
  }
  const Variable variable("VICINAL_CUDA_PLUGIN", "/somewhere/plugin.so");
  EXPECT_EQ(tried(file), std::vector<std::string>{"/somewhere/plugin.so"});
}

TEST(Plugin, AFinderIsAskedWhereNothingElseNamesAFileAndBeforeTheSystem) {
  int calls = 0;
  std::string path = "/package/libvicinal_cuda.so";
  const Finder finder([&](Plugin plugin) {
    ++calls;
    EXPECT_EQ(plugin, Plugin::cuda);
    return path;
  });
  plugin::PluginFile file = cuda_file();
  {
    const Variable variable("VICINAL_CUDA_PLUGIN", "/somewhere/plugin.so");
    EXPECT_EQ(tried(file), std::vector<std::string>{"/somewhere/plugin.so"});
  }
  EXPECT_EQ(calls, 0);
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  const std::vector<std::string> candidates = tried(file);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_EQ(candidates[1], path);
  EXPECT_EQ(candidates[2], "libvicinal_cuda.so");
  path.clear();  // the package is gone, and what it named with it
  EXPECT_EQ(tried(file).size(), 2U);
  file.name("/mine/plugin.so");
  EXPECT_EQ(tried(file), std::vector<std::string>{"/mine/plugin.so"});
  EXPECT_EQ(calls, 2);
}

TEST(Plugin, WhatIsLoadedNeedsNoFinder) {
  struct Loaded {
    std::string path;
  };
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  const Finder finder([](Plugin) { return "/package/libvicinal_cuda.so"; });
  plugin::PluginFile file = cuda_file();
  file.ask_finder();
  EXPECT_EQ(file.load([](const auto& candidates) { return Loaded{candidates.at(1)}; }).path,
            "/package/libvicinal_cuda.so");
  const Finder none([](Plugin) -> std::filesystem::path { throw Error(ErrorCode::internal, "was asked"); });
  EXPECT_NO_THROW(file.ask_finder());
}

TEST(Plugin, AFinderSaysWhyItsFileCannotBeUsed) {
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  const Finder finder([](Plugin) -> std::filesystem::path {
    throw Error(ErrorCode::device_unavailable, "the package is of another version");
  });
  plugin::PluginFile file = cuda_file();
  EXPECT_EQ(refusal(ErrorCode::device_unavailable, [&] { file.ask_finder(); }), "the package is of another version");
}

TEST(Plugin, AFinderMayNeedThePluginItself) {
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  plugin::PluginFile file = cuda_file();
  int depth = 0;
  const Finder finder([&](Plugin) {
    if (++depth < 3) tried(file);
    set_plugin_finder({});
    return "/package/libvicinal_cuda.so";
  });
  EXPECT_EQ(tried(file).size(), 3U);
  EXPECT_EQ(depth, 3);
}

TEST(Plugin, IsNamedBeforeItIsLoaded) {
  struct Loaded {
    std::string path;
  };
  const Variable variable("VICINAL_CUDA_PLUGIN", nullptr);
  plugin::PluginFile file = cuda_file();
  file.name("/a.so");
  file.name("/b.so");
  const auto fails = [](const auto& names) -> Loaded { throw Error(ErrorCode::device_unavailable, names.at(0)); };
  EXPECT_EQ(refusal(ErrorCode::device_unavailable, [&] { file.load(fails); }), "/b.so");
  file.name("/c.so");  // what was not loaded, another file may be
  EXPECT_EQ(file.load([](const auto& names) { return Loaded{names.at(0)}; }).path, "/c.so");
  file.name("/c.so");
  expect_words(refusal(ErrorCode::invalid_argument, [&] { file.name("/d.so"); }),
               {"plugin: cuda is already loaded, from /c.so"});
}

TEST(Plugin, MayBeNamedAgainByAnotherPathToTheFileThatIsLoaded) {
  struct Loaded {
    std::string path;
  };
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "vicinal_named_again";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.so") << "a";
  std::ofstream(folder / "b.so") << "b";
  std::filesystem::remove(folder / "link.so");
  std::filesystem::create_symlink(folder / "a.so", folder / "link.so");
  const std::string loaded = folder / "a.so";
  plugin::PluginFile file = cuda_file();
  file.name(folder / "b.so");
  file.load([&](const auto&) { return Loaded{loaded}; });  // the environment named another
  EXPECT_NO_THROW(file.name(folder / "b.so"));
  EXPECT_NO_THROW(file.name(folder / "link.so"));
  EXPECT_NO_THROW(file.name(folder / "." / "a.so"));
  std::ofstream(folder / "c.so") << "c";
  expect_words(refusal(ErrorCode::invalid_argument, [&] { file.name(folder / "c.so"); }),
               {"plugin: cuda is already loaded, from " + loaded});
  std::filesystem::remove_all(folder);
}

TEST(Plugin, ANameThatIsNoFileIsRefused) {
  expect_words(refusal(ErrorCode::invalid_argument, [] { set_plugin(Plugin::geo, ""); }), {"path: is empty"});
  expect_words(refusal(ErrorCode::io, [] { set_plugin(Plugin::cuda, "/nowhere/libvicinal_cuda.so"); }),
               {"path: there is no file /nowhere/libvicinal_cuda.so"});
  expect_words(refusal(ErrorCode::io, [] { set_plugin(Plugin::cuda, "/tmp"); }), {"path: there is no file /tmp"});
  expect_words(refusal(ErrorCode::invalid_argument, [] { set_plugin(static_cast<Plugin>(7), "/tmp"); }),
               {"plugin: unknown value 7"});
  expect_words(refusal(ErrorCode::invalid_argument, [] { (void)plugin_from("gdal"); }), {"gdal", "cuda", "geo"});
  EXPECT_EQ(name_of(plugin_from("geo")), "geo");
}

TEST(Plugin, AContextSaysWhatIsMissing) {
  const CudaStatus status = cuda_status();
  if (status.missing.empty()) GTEST_SKIP() << "nothing is missing here";
  EXPECT_TRUE(status.devices.empty() || status.plugin.empty());
  expect_words(refusal(ErrorCode::device_unavailable, [] { Context::cuda(); }), {"cuda:0", status.missing});
}

TEST(Plugin, DevicesAreSomeEachOnce) {
  expect_words(refusal(ErrorCode::invalid_argument, [] { Context::cuda({.devices = {}}); }), {"devices", "none"});
  expect_words(refusal(ErrorCode::invalid_argument, [] { Context::cuda({.devices = {-1}}); }), {"devices", "cuda:-1"});
  expect_words(refusal(ErrorCode::invalid_argument,
                       [] {
                         Context::cuda({.devices = {1, 0, 1}});
                       }),
               {"devices", "cuda:1", "twice"});
}

TEST(Plugin, OptionsOfTheHostAreCheckedFirst) {
  expect_words(refusal(ErrorCode::invalid_argument, [] { Context::cuda({.threads = -1}); }), {"threads", "-1"});
}

TEST(Plugin, TheEnvironmentDecidesWhatAutomaticMeans) {
  {
    const Variable variable("VICINAL_DEVICE", "cpu");
    EXPECT_EQ(Context::automatic().device(), "cpu");
  }
  for (const char* value : {"abacus", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU"}) {
    const Variable variable("VICINAL_DEVICE", value);
    expect_words(refusal(ErrorCode::invalid_argument, [] { Context::automatic(); }), {"VICINAL_DEVICE", value});
  }
  for (const char* value : {"", "auto"}) {
    const Variable variable("VICINAL_DEVICE", value);
    EXPECT_NO_THROW(Context::automatic());
  }
  const Variable variable("VICINAL_DEVICE", "cuda:99");
  expect_words(refusal(ErrorCode::device_unavailable, [] { Context::automatic(); }), {"cuda:99"});
}

TEST(Plugin, TheProcessorIsCalledCpu) {
  const Context ctx = Context::cpu({.threads = 1});
  EXPECT_EQ(ctx.device(), "cpu");
  EXPECT_EQ(&kernels::backend_of(ctx), &kernels::cpu_backend());
  const std::vector<double> line = {0, 1, 3, 7};
  EXPECT_EQ(knn(ctx, TableView(line.data(), 4, 1), {.k = 1}).plan.device, "cpu");
}

TEST(DeviceSlot, KeepsOneEntryADeviceAndCopiesNone) {
  const kernels::DeviceSlot slot;
  EXPECT_EQ(slot.get(0), nullptr);
  const auto first = std::make_shared<int>(1);
  const auto second = std::make_shared<int>(2);
  slot.put(0, first);
  slot.put(3, second);
  EXPECT_EQ(slot.get(0), first);
  EXPECT_EQ(slot.get(3), second);
  slot.put(0, second);
  EXPECT_EQ(slot.get(0), second);
  EXPECT_EQ(first.use_count(), 1);
  const kernels::DeviceSlot copy(slot);
  EXPECT_EQ(copy.get(0), nullptr);
}

class Into : public ::testing::Test {
 protected:
  const Context ctx_ = Context::cpu({.threads = 2});
  const Generated made_ = generate(ctx_, {.rows = 300, .cols = 4, .centers = 5, .seed = 3});
  const TableView table_{made_.points.data(), 300, 4};
  const TableView queries_ = table_.slice(100, 140);
};

TEST_F(Into, ListsGoToTheCallersMemory) {
  std::vector<std::int64_t> ids(300 * 3);
  std::vector<double> distances(300 * 3);
  const KnnOutput output = {ids.data(), distances.data()};
  const NeighborGraph itself = knn(ctx_, table_, {.k = 3});
  const KnnSummary summary = knn_into(ctx_, table_, {.k = 3}, output);
  EXPECT_EQ(summary.rows, 300);
  EXPECT_EQ(summary.table_rows, 300);
  EXPECT_EQ(summary.k, 3);
  EXPECT_EQ(summary.plan.method, itself.plan.method);
  EXPECT_EQ(ids, itself.ids);
  EXPECT_EQ(distances, itself.distances);
  const NeighborGraph asked = knn(ctx_, table_, queries_, {.k = 2});
  (void)knn_into(ctx_, Index(ctx_, table_), queries_, {.k = 2}, output);
  ids.resize(80);
  distances.resize(80);
  EXPECT_EQ(ids, asked.ids);
  EXPECT_EQ(distances, asked.distances);
}

TEST_F(Into, MemoryThatCannotBeWrittenIsRefused) {
  std::vector<std::int64_t> ids(900);
  std::vector<double> distances(900);
  expect_words(refusal(ErrorCode::invalid_argument,
                       [&] {
                         (void)knn_into(ctx_, table_, {.k = 3}, {ids.data(), nullptr});
                       }),
               {"output"});
  expect_words(refusal(ErrorCode::device_unavailable,
                       [&] {
                         (void)knn_into(ctx_, table_, {.k = 3}, {ids.data(), distances.data(), Memory::cuda});
                       }),
               {"output", "CUDA"});
}

TEST_F(Into, ClassifyIsKnnAndVote) {
  const std::vector<Labels> outputs = {encode_labels(made_.labels)};
  for (const Weighting weights : {Weighting::uniform, Weighting::distance}) {
    const VoteOptions voting = {.weights = weights, .probabilities = true};
    const auto wanted = vote(ctx_, knn(ctx_, table_, queries_, {.k = 7}), outputs, voting);
    const Classification got = classify(ctx_, table_, queries_, outputs, {.k = 7}, voting);
    EXPECT_EQ(got.rows, 40);
    EXPECT_EQ(got.table_rows, 300);
    ASSERT_EQ(got.votes.size(), 1U);
    EXPECT_EQ(got.votes[0].codes, wanted[0].codes);
    EXPECT_EQ(got.votes[0].probabilities, wanted[0].probabilities);
  }
}

TEST_F(Into, ClassifyRefusesWhatKnnAndVoteRefuse) {
  std::vector<Labels> outputs = {encode_labels(made_.labels)};
  EXPECT_EQ(refusal(ErrorCode::invalid_argument, [&] { (void)classify(ctx_, table_, queries_, outputs, {.k = 301}); }),
            refusal(ErrorCode::invalid_argument, [&] { (void)knn(ctx_, table_, queries_, {.k = 301}); }));
  expect_words(refusal(ErrorCode::invalid_argument,
                       [&] {
                         (void)classify(ctx_, table_, queries_, outputs, {.metric = Metric::inner_product},
                                        {.weights = Weighting::distance});
                       }),
               {"inner_product"});
  outputs[0].codes.pop_back();
  expect_words(refusal(ErrorCode::invalid_argument, [&] { (void)classify(ctx_, table_, queries_, outputs, {.k = 3}); }),
               {"299", "300"});
}

}  // namespace
}  // namespace vicinal
