// See resume.hpp.
#include "kmeans/resume.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <span>

#include "base/digest.hpp"
#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "io/atomic_file.hpp"

namespace vicinal::cli {
namespace {

constexpr const char* kSuffix = ".checkpoint";

std::string file_of(int number) {
  return fmt::format("{}{}", number, kSuffix);
}

std::vector<JobFact> facts_of(const Context& ctx, const TableView& table, const KMeansOptions& options,
                              const ClusteringFiles& files) {
  const auto quoted = [](const std::string& file) { return "'" + file + "'"; };
  std::vector<JobFact> facts = {
      {"command", "kmeans", "command"},
      {"rows", table.rows(), "number of rows in " + quoted(files.table)},
      {"cols", table.cols(), "number of columns in " + quoted(files.table)},
      {"dtype", name_of(table.dtype()), "type of the values in " + quoted(files.table)},
      values_of("table_digest", digest_of(ctx, table), quoted(files.table)),
      {"weighted", !options.weights.empty(), "use of --weights"},
  };
  if (!options.weights.empty()) {
    const TableView weights(options.weights.data(), std::ssize(options.weights), 1);
    facts.push_back(values_of("weights_digest", digest_of(ctx, weights), quoted(files.weights)));
  }
  facts.push_back({"init", name_of(options.init), "--init"});
  if (options.init == KMeansInit::given) {
    facts.push_back(values_of("centres_digest", digest_of(ctx, options.centres), quoted(files.centres)));
  }
  facts.push_back({"clusters", options.clusters, "number of clusters"});
  facts.push_back({"metric", name_of(options.metric), "--metric"});
  facts.push_back({"runs", options.runs, "--runs"});
  facts.push_back({"seed", options.seed, "--seed"});
  facts.push_back({"rule", options.rule == KMeansRule::classical ? "classical" : "settled", "--stop"});
  facts.push_back({"max_iterations", options.max_iterations, "--max-iterations"});
  facts.push_back({"tolerance", format_number(options.tolerance), "--tolerance"});
  facts.push_back({"changed_share", format_number(options.changed_share), "--changed-share"});
  facts.push_back({"empty", options.empty == EmptyClusters::keep ? "keep" : "farthest", "--empty"});
  facts.push_back({"batch_size", options.batch_size, "--batch-size"});
  facts.push_back({"history", options.history, "use of --report"});
  return facts;
}

Context context_of_files(const Runtime& runtime) {
  CpuOptions options;
  options.threads = 1;
  options.memory_limit = runtime.ctx.memory_limit();
  options.cancel = interrupt_token();
  return Context::cpu(options);
}

}  // namespace

ResumedClustering::ResumedClustering(const Runtime& runtime, const CommonOptions& common,
                                     const ResumeArguments& arguments, const TableView& table,
                                     const KMeansOptions& options, const ClusteringFiles& files)
    : arguments_(arguments),
      host_(context_of_files(runtime)),
      folder_(runtime.ctx, arguments.folder, facts_of(runtime.ctx, table, options, files), kSuffix) {
  read_state();
  if (!state_) return;
  tell(runtime, common,
       fmt::format("resumed from '{}': run {} of {}, after iteration {}", arguments.folder, state_->run + 1,
                   options.runs, state_->iterations));
}

void ResumedClustering::read_state() {
  folder_.require_only({file_of(0), file_of(1)});
  const Json& kept = folder_.state();
  if (!kept.contains("file")) return;
  if (!kept["file"].is_string() || !kept.value("digest", Json()).is_string()) folder_.refuse_record();
  kept_ = kept["file"].get<std::string>();
  if (kept_ != file_of(0) && kept_ != file_of(1)) folder_.refuse_record();
  if (digest_of_file(host_, folder_.file(kept_)) != kept.value("digest", std::string())) {
    folder_.refuse_file(kept_, "remove the folder to begin anew");
  }
  state_ = KMeansCheckpoint::load(host_, folder_.file(kept_));
}

/// The record tells of one file, and the next state is written to the other one.
void ResumedClustering::keep(const KMeansCheckpoint& state) {
  const std::string name = file_of(kept_ == file_of(0) ? 1 : 0);
  {
    io::OutputGroup file(host_.cancel_token());  // which appears while the folder is this process's
    state.save(host_, folder_.file(name));
    folder_.require_lock();
    file.commit();
  }
  folder_.save({{"file", name},
                {"digest", digest_of_file(host_, folder_.file(name))},
                {"run", state.run},
                {"iterations", state.iterations}});
  kept_ = name;
}

void ResumedClustering::finish() {
  folder_.finish({file_of(0), file_of(1)});
}

KMeansOptions ResumedClustering::options(KMeansOptions options) {
  options.checkpoint = [this](const KMeansCheckpoint& state) { keep(state); };
  options.checkpoint_seconds = arguments_.seconds;
  if (state_) options.resume = &*state_;
  return options;
}

}  // namespace vicinal::cli
