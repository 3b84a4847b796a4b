// Options that every working subcommand understands in the same way, and the context that follows from them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/parser.hpp"
#include "base/progress.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cli {

struct CommonOptions {
  bool json = false;
  bool quiet = false;
  bool explain = false;
  std::string progress = "auto";
  int threads = 0;
  std::string memory_limit;
  std::string device_memory_limit;
  std::string device = "auto";
  std::string isa = "auto";
  std::int64_t stall_limit = 86'400;  ///< seconds, of ranks
};

/// Metric, exponent and method, as options.
struct SearchOptions {
  std::string metric = "euclidean";
  double p = 2;
  std::string method = "automatic";
  std::string screen = "automatic";
  std::string filter;  ///< .npy of bools or uint8, one a table row
};

/// How the tables of a subcommand are read, as options.
struct InputOptions {
  std::vector<std::string> labels;  ///< columns that hold labels
  std::vector<std::string> drop;
  std::string member;
  std::string decimal;
  std::string delimiter;
  std::string comment;
  std::string format = "auto";
  std::string dtype = "as-stored";
  std::int64_t sparse_columns = 0;
  bool header = false;
  bool keep_index = false;
  bool no_header = false;
};

/// What a running subcommand works with.
struct Runtime {
  std::shared_ptr<ProgressLine> progress;
  Context ctx;
};

void add_common_options(const Parser& command, CommonOptions& options);
/// --stall-limit, of a command that `mpirun` may divide among ranks.
void add_rank_options(const Parser& command, CommonOptions& options);
/// Metric, exponent and method.
void add_metric_options(const Parser& command, SearchOptions& options);
/// These, screen and filter.
void add_search_options(const Parser& command, SearchOptions& options);
void add_input_options(const Parser& command, InputOptions& options);

/// "4G", "512M", "1.5GiB", "100kB", plain bytes; K, M, G, T are powers of 1024, as memory is sold.
/// Throws `invalid_argument` for anything else.
std::uint64_t parse_size(std::string_view text, std::string_view option);

/// Whether a subcommand has work for a device: those that have none do not wake one unless they are told to.
enum class Computes : std::uint8_t { on_device, on_host };

/// The context that the options ask for. Throws `device_unavailable` for CUDA that is not there, `invalid_argument` for
/// a name that is none.
Runtime make_runtime(const CommonOptions& options, Computes computes = Computes::on_device);

/// The CPU's context, and after it `runtime`'s where that is a device's: what a benchmark compares.
std::vector<Context> cpu_and_device(const CommonOptions& options, const Runtime& runtime);

}  // namespace vicinal::cli
