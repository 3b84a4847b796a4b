// The peers of `vicinal-bench knn --peers`: other libraries' exact neighbors, timed in the same run as ours and on the
// same rows. Each is a process of its own (bench/peers/knn.py) that holds its data ready and is stopped while others
// compute, so that nobody's idle threads cost anybody time.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "command/harness.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

struct PeerOptions {
  std::string names;     ///< faiss,scipy or all, brute, trees; empty: no peers
  std::string python;    ///< empty: VICINAL_PEERS_PYTHON, then the environment that `vicinal-bench peers` makes
  std::string dir;       ///< folder of knn.py; empty: bench/peers of the source tree that this command was built in
  double timeout = 600;  ///< seconds for all calls of one peer together
};

/// The peers there are, groups first: for --help and the shell's completion.
std::vector<std::string> peer_choices();
/// The peers that `names` asks for, each once. Throws `invalid_argument` listing what there is.
std::vector<std::string> peers_from(const std::string& names);

/// The folder bench/peers of the source tree that this command was built in; empty if there is none above it.
std::filesystem::path find_peers_dir();

class PeerProcess;

/// A folder for temporary files that goes with its owner.
struct ScratchFolder {
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path path;
};

/// How one peer did.
struct PeerResult {
  Json about;         ///< name, version, dtype, threads, note, as it says itself; only the name after a failure
  std::string error;  ///< why there is no result, else empty
  Timings build;      ///< none when there is no result
  Timings query;
  Timings total;
  Timings cpu;                ///< of all its threads, idle spinning included
  std::int64_t correct = 0;   ///< queries whose neighbors are right: see count_correct
  double distance_error = 0;  ///< largest relative error of a distance it reported
};

/// Starts, stops and asks the peers. A peer that is missing or fails is a result with `error`, never an exception.
class Peers {
 public:
  /// Writes the rows to a folder of its own and has every peer read them and warm up, one after another.
  /// Throws `invalid_argument` when there is no Python or no knn.py, or rows of a type that peers do not take.
  Peers(const Context& ctx, const PeerOptions& options, const TableView& table, const TableView& queries,
        std::int64_t k);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// One timed call of each peer that still has time.
  void take_turns();
  /// Compares every answer with `truth` and ends the processes.
  std::vector<PeerResult> finish(const NeighborGraph& truth);

 private:
  const TableView table_;
  const TableView queries_;
  const ScratchFolder folder_;
  std::vector<std::unique_ptr<PeerProcess>> peers_;
};

/// "peers" and what follows from them, added to the benchmark's JSON.
void add_to_json(Json& json, const std::vector<PeerResult>& results, const Timings& ours, std::int64_t queries);
/// A table with our line first, and a line for each peer that failed.
std::string format_peers(const std::vector<PeerResult>& results, const PeerResult& ours, std::int64_t queries);

}  // namespace vicinal::cli
