// See peers.hpp.
#include "command/peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "core/distance.hpp"
#include "vicinal/io.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kBrute = {"faiss", "sklearn", "sklearnex"};
const std::vector<std::string> kTrees = {"sklearn-tree", "scipy", "pykdtree", "nanoflann", "libann"};
constexpr const char* kHowToMake = "make it with `vicinal-bench peers knn` in vicinal's source tree";

fs::path peers_script(const PeerOptions& options) {
  const fs::path dir = options.dir.empty() ? find_peers_dir() : fs::path(options.dir);
  std::error_code error;
  if (!dir.empty() && fs::exists(dir / "knn.py", error)) return fs::absolute(dir / "knn.py");
  throw Error(ErrorCode::invalid_argument,
              dir.empty() ? "--peers-dir: this command is not in vicinal's source tree; name its folder bench/peers"
                          : fmt::format("--peers-dir: there is no knn.py in '{}'", dir.string()));
}

fs::path peers_python(const PeerOptions& options, const fs::path& script) {
  const char* variable = std::getenv("VICINAL_PEERS_PYTHON");
  const bool in_environment = options.python.empty() && variable != nullptr && *variable != '\0';
  const fs::path python = in_environment           ? fs::path(variable)
                          : options.python.empty() ? script.parent_path().parent_path() / ".venv-peers/bin/python"
                                                   : fs::path(options.python);
  if (access(python.c_str(), X_OK) == 0) return fs::absolute(python);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: there is no Python '{}'; {}", in_environment ? "VICINAL_PEERS_PYTHON" : "--peers-python",
                          python.string(), kHowToMake));
}

/// NumPy's name of a type that peers read.
std::string npy_type(DType dtype) {
  if (dtype == DType::uint8) return "|u1";
  if (dtype == DType::float32) return "<f4";
  if (dtype == DType::float64) return "<f8";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--peers: they take uint8, float32 and float64, not {}", name_of(dtype)));
}

void write_rows(const fs::path& path, const TableView& view) {
  const auto size = static_cast<std::size_t>(size_of(view.dtype()));
  std::vector<std::byte> packed;
  const void* data = view.data();
  if (view.col_stride() != 1 || (view.row_stride() != view.cols() && view.rows() > 1)) {
    packed.resize(static_cast<std::size_t>(view.rows() * view.cols()) * size);
    std::byte* out = packed.data();
    for (std::int64_t i = 0; i < view.rows(); ++i) {
      for (std::int64_t j = 0; j < view.cols(); ++j, out += size) {
        const std::int64_t element = i * view.row_stride() + j * view.col_stride();
        std::memcpy(out, static_cast<const std::byte*>(data) + element * static_cast<std::int64_t>(size), size);
      }
    }
    data = packed.data();
  }
  write_npy(path, {data, npy_type(view.dtype()), {view.rows(), view.cols()}});
}

template <class T>
void widen_as(const TableView& view, std::int64_t row, double* out) {
  const T* from = static_cast<const T*>(view.data()) + row * view.row_stride();
  for (std::int64_t j = 0; j < view.cols(); ++j) out[j] = static_cast<double>(from[j * view.col_stride()]);
}

void widen(const TableView& view, std::int64_t row, double* out) {
  if (view.dtype() == DType::uint8) return widen_as<std::uint8_t>(view, row, out);
  if (view.dtype() == DType::float32) return widen_as<float>(view, row, out);
  widen_as<double>(view, row, out);
}

/// What a peer's process may end with; becomes PeerResult::error.
struct PeerFailed {
  std::string sentence;
};

}  // namespace

fs::path find_peers_dir() {
  std::error_code error;
  for (fs::path at = fs::read_symlink("/proc/self/exe", error).parent_path(); at.has_relative_path();
       at = at.parent_path()) {
    if (fs::exists(at / "bench/peers/knn.py", error)) return at / "bench/peers";
  }
  return {};
}

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "vicinal-peers-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorCode::io, fmt::format("--peers: no folder like '{}': {}", name, std::strerror(errno)));
  }
  path = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// One running peer: lines of JSON back and forth, and the seconds it has left.
class PeerProcess {
 public:
  PeerProcess(const Context& ctx, std::string name, double seconds)
      : ctx_(ctx), seconds_left_(seconds), limit_(seconds) {
    result_.about = {{"name", std::move(name)}};
  }
  ~PeerProcess() { end(); }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Starts `words`, which write their answers into `folder`, and waits for the warm-up call.
  void start(const std::vector<std::string>& words, const fs::path& folder) {
    folder_ = folder;
    fs::create_directory(folder);
    spawn(words);
    attempt([&] {
      result_.about = answer();
      warmup_ = result_.about.at("warmup");
      result_.about.erase("warmup");
    });
  }

  /// One timed call, unless it would not fit into the time there is. A warm-up that leaves none is what counts.
  void take_turn() {
    if (!running()) return;
    attempt([&] {
      if (const double call = warmup_.at("total"); 1.5 * call > seconds_left_) {
        if (result_.total.seconds.empty()) note(warmup_);
        return;
      }
      if (write(to_, "run\n", 4) != 4) throw PeerFailed{last_words()};
      resume();
      note(answer());
    });
  }

  PeerResult finish(const NeighborGraph& truth, const TableView& table, const TableView& queries) {
    end();
    attempt([&] { compare(truth, table, queries); });
    return result_;
  }

 private:
  [[nodiscard]] std::string name() const { return result_.about.at("name"); }
  [[nodiscard]] bool running() const { return process_ > 0; }

  /// Runs `work`; what goes wrong with the peer ends it and becomes its error.
  template <class Work>
  void attempt(Work work) {
    if (!result_.error.empty()) return;
    try {
      work();
    } catch (const PeerFailed& failed) {
      fail(failed.sentence);
    } catch (const Json::exception& error) {
      fail(fmt::format("its answer cannot be read: {}", error.what()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      fail(error.what());
    }
  }

  void fail(const std::string& sentence) {
    end();
    result_.error = sentence;
    result_.about = {{"name", name()}};
  }

  void note(const Json& seconds) {
    result_.build.seconds.push_back(seconds.at("build"));
    result_.query.seconds.push_back(seconds.at("query"));
    result_.total.seconds.push_back(seconds.at("total"));
    result_.cpu.seconds.push_back(seconds.at("cpu"));
  }

  void spawn(const std::vector<std::string>& words) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorCode::io, fmt::format("--peers: no pipe: {}", std::strerror(errno)));
    }
    const int errors = open((folder_ / "stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::vector<char*> arguments(words.size() + 1, nullptr);
    std::transform(words.begin(), words.end(), arguments.begin(),
                   [](const std::string& word) { return const_cast<char*>(word.c_str()); });
    process_ = fork();
    if (process_ == 0) {  // only async-signal-safe calls from here on
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(errors, STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    if (errors >= 0) close(errors);
    to_ = in[1];
    from_ = out[0];
    if (process_ < 0) throw Error(ErrorCode::io, fmt::format("--peers: no process: {}", std::strerror(errno)));
    setpgid(process_, process_);
  }

  void resume() const { kill(-process_, SIGCONT); }

  /// The next line as JSON; the process sleeps again when it is there.
  Json answer() {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const double limit = seconds_left_;
    std::string line;
    while (line.empty() || line.back() != '\n') {
      ctx_.check_cancelled();
      seconds_left_ = limit - std::chrono::duration<double>(Clock::now() - start).count();
      if (seconds_left_ <= 0) throw PeerFailed{fmt::format("no answer within {:g} s (--peer-timeout)", limit_)};
      pollfd waiting = {from_, POLLIN, 0};
      if (poll(&waiting, 1, 100) <= 0) continue;
      char byte = 0;
      if (read(from_, &byte, 1) != 1) throw PeerFailed{last_words()};
      line += byte;
    }
    kill(-process_, SIGSTOP);
    Json json = Json::parse(line);
    if (json.contains("error")) throw PeerFailed{json["error"]};
    return json;
  }

  /// Why it ended, as far as its stderr says.
  [[nodiscard]] std::string last_words() const {
    std::ifstream file(folder_ / "stderr");
    std::string last;
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) last = line;
    }
    return last.empty() ? "it ended without a word" : "it ended: " + last;
  }

  void end() {
    if (!running()) return;
    kill(-process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    close(to_);
    close(from_);
  }

  /// A query is right when the keys of the ids it got are ours, bit for bit, and no id comes twice: then the ids are
  /// the same but for rows that tie with the k-th.
  void compare(const NeighborGraph& truth, const TableView& table, const TableView& queries) {
    const Table ids = read_table(ctx_, folder_ / "ids.npy");
    const Table distances = read_table(ctx_, folder_ / "distances.npy");
    for (const TableView& view : {ids.view, distances.view}) {
      if (view.rows() != truth.rows || view.cols() != truth.k || view.dtype() != DType::float64) {
        throw PeerFailed{"its answer has another shape"};
      }
    }
    const auto k = static_cast<std::size_t>(truth.k);
    const std::int64_t cols = table.cols();
    std::vector<double> query(cols), row(cols), id(k), reported(k), found(k);
    for (std::int64_t i = 0; i < truth.rows; ++i) {
      if (i % 1024 == 0) ctx_.check_cancelled();
      widen(queries, i, query.data());
      widen(ids.view, i, id.data());
      widen(distances.view, i, reported.data());
      bool right = true;
      for (std::size_t j = 0; j < k; ++j) {
        right = right && id[j] >= 0 && id[j] < static_cast<double>(table.rows());
        if (!right) break;
        widen(table, static_cast<std::int64_t>(id[j]), row.data());
        found[j] = std::sqrt(core::euclidean_key(query.data(), row.data(), cols));
        const double off = std::fabs(reported[j] - found[j]);
        result_.distance_error = std::max(result_.distance_error, found[j] > 0 ? off / found[j] : off);
      }
      std::sort(found.begin(), found.end());
      std::sort(id.begin(), id.end());
      right = right && std::adjacent_find(id.begin(), id.end()) == id.end() &&
              std::equal(found.begin(), found.end(), truth.distances_of(i).begin());
      result_.correct += right ? 1 : 0;
    }
  }

  const Context& ctx_;
  PeerResult result_;
  Json warmup_;
  fs::path folder_;
  double seconds_left_;
  double limit_;
  pid_t process_ = -1;
  int to_ = -1;
  int from_ = -1;
};

std::vector<std::string> peer_choices() {
  std::vector<std::string> choices = {"all", "brute", "trees"};
  choices.insert(choices.end(), kBrute.begin(), kBrute.end());
  choices.insert(choices.end(), kTrees.begin(), kTrees.end());
  return choices;
}

std::vector<std::string> peers_from(const std::string& names) {
  std::vector<std::string> peers;
  const auto add = [&peers](const std::vector<std::string>& more) {
    for (const std::string& name : more) {
      if (std::find(peers.begin(), peers.end(), name) == peers.end()) peers.push_back(name);
    }
  };
  const std::vector<std::string> choices = peer_choices();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    if (std::find(choices.begin(), choices.end(), name) == choices.end()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--peers: '{}' is not one of {}", name, fmt::join(choices, ", ")));
    }
    if (name == "all" || name == "brute") add(kBrute);
    if (name == "all" || name == "trees") add(kTrees);
    if (name != "all" && name != "brute" && name != "trees") add({name});
  }
  return peers;
}

Peers::Peers(const Context& ctx, const PeerOptions& options, const TableView& table, const TableView& queries,
             std::int64_t k)
    : table_(table), queries_(queries) {
  const std::vector<std::string> names = peers_from(options.names);
  const fs::path script = peers_script(options);
  const fs::path python = peers_python(options, script);
  npy_type(table.dtype());
  npy_type(queries.dtype());
  write_rows(folder_.path / "table.npy", table);
  write_rows(folder_.path / "queries.npy", queries);
  for (const std::string& name : names) {
    ctx.report("peers warm up", static_cast<double>(peers_.size()) / static_cast<double>(names.size()));
    peers_.push_back(std::make_unique<PeerProcess>(ctx, name, options.timeout));
    peers_.back()->start({python, script, name, "--serve", "--table", folder_.path / "table.npy", "--queries",
                          folder_.path / "queries.npy", "-k", std::to_string(k), "--threads",
                          std::to_string(ctx.threads()), "--output", folder_.path / name},
                         folder_.path / name);
  }
}

Peers::~Peers() = default;

void Peers::take_turns() {
  for (const auto& peer : peers_) peer->take_turn();
}

std::vector<PeerResult> Peers::finish(const NeighborGraph& truth) {
  std::vector<PeerResult> results;
  for (const auto& peer : peers_) results.push_back(peer->finish(truth, table_, queries_));
  return results;
}

void add_to_json(Json& json, const std::vector<PeerResult>& results, const Timings& ours, std::int64_t queries) {
  Json peers = Json::array();
  const PeerResult* fastest = nullptr;
  for (const PeerResult& result : results) {
    Json peer = result.about;
    if (!result.error.empty()) {
      peer["error"] = result.error;
      peers.push_back(peer);
      continue;
    }
    peer["build"] = to_json(result.build);
    peer["query"] = to_json(result.query);
    peer["total"] = to_json(result.total);
    peer["cpu"] = to_json(result.cpu);
    peer["ratio"] = result.total.median() / ours.median();
    peer["correct_rows"] = result.correct;
    peer["correct_share"] = static_cast<double>(result.correct) / static_cast<double>(queries);
    peer["distance_error"] = result.distance_error;
    peers.push_back(peer);
    if (fastest == nullptr || result.total.median() < fastest->total.median()) fastest = &result;
  }
  json["peers"] = peers;
  json["fastest_peer"] = fastest == nullptr ? Json(nullptr) : fastest->about["name"];
  json["ratio_to_fastest"] = fastest == nullptr ? Json(nullptr) : Json(fastest->total.median() / ours.median());
}

std::string format_peers(const std::vector<PeerResult>& results, const PeerResult& ours, std::int64_t queries) {
  std::vector<std::vector<std::string>> lines = {
      {"", "version", "build s", "query s", "total s", "least s", "to ours", "right rows", "distance error"}};
  const auto add = [&](const PeerResult& result, const std::string& right, const std::string& distance_error) {
    lines.push_back({result.about["name"], result.about["version"], fmt::format("{:.3f}", result.build.median()),
                     fmt::format("{:.3f}", result.query.median()), fmt::format("{:.3f}", result.total.median()),
                     fmt::format("{:.3f}", result.total.least()),
                     fmt::format("{:.2f}", result.total.median() / ours.total.median()), right, distance_error});
  };
  add(ours, "", "");
  std::string failures;
  for (const PeerResult& result : results) {
    if (result.error.empty()) {
      add(result, fmt::format("{} of {}", result.correct, queries), fmt::format("{:.1e}", result.distance_error));
    } else {
      failures += fmt::format("{}: {}\n", result.about["name"].get<std::string>(), result.error);
    }
  }
  return format_table(lines) + failures;
}

}  // namespace vicinal::cli
