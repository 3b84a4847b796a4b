// --resume of `kmeans`: the state between two iterations is kept in a file, and the same command goes on from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/resume_folder.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// What decides a clustering: tables and options, and the names of their files for sentences.
struct ClusteringFiles {
  std::string table;
  std::string weights;
  std::string centres;  ///< of --init
};

class ResumedClustering {
 public:
  /// Opens the folder, and reads the state that an earlier run of the same job has kept. Throws as ResumeFolder, and
  /// for a file of the state that is damaged.
  ResumedClustering(const Runtime& runtime, const CommonOptions& common, const ResumeArguments& arguments,
                    const TableView& table, const KMeansOptions& options, const ClusteringFiles& files);
  /// Options with which `kmeans` goes on from the state and keeps later ones here. They borrow from this object.
  [[nodiscard]] KMeansOptions options(KMeansOptions options);
  /// The result is written elsewhere: removes what the folder has.
  void finish();

 private:
  void read_state();
  void keep(const KMeansCheckpoint& state);

  const ResumeArguments& arguments_;
  Context host_;  ///< for the files; a device has its work
  ResumeFolder folder_;
  std::optional<KMeansCheckpoint> state_;
  std::string kept_;  ///< the file of the last state
};

}  // namespace vicinal::cli
