// --resume DIR: what is finished of a job is kept in files of DIR, so that the same command goes on there after the
// process was killed (docs/scale.md). job.json is the record of a folder: the job that it is of, and the state that the
// job keeps. The record and all other files appear whole or not at all (io::AtomicFile).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.hpp"
#include "base/parser.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

/// --resume and --resume-every.
struct ResumeArguments {
  std::string folder;  ///< empty: nothing is kept
  double seconds = 30;

  void add_to(const Parser& app);
  [[nodiscard]] bool any() const { return !folder.empty(); }
  /// Refuses seconds that are no time.
  void check() const;
};

/// One of the things that decide a job's result.
struct JobFact {
  std::string key;         ///< in the record
  Json value;              ///< a number, a text, or null
  std::string shown;       ///< its name in sentences: an option, or "number of rows in 'x.npy'"
  bool is_digest = false;  ///< `shown` is then the name of the file that the value is a digest of
};

class ResumeFolder {
 public:
  /// Opens the folder, which is made where there is none, and locks it until this object or the process ends. Files
  /// that a killed process was writing are removed. `suffix`: of the files that the job keeps beside its record.
  ///
  /// Throws `io` for a folder that cannot be made, written or locked, or that another process has locked;
  /// `invalid_argument` for a record of another job, naming the first fact that differs, and for a folder with files of
  /// something else; `bad_data` for a damaged record.
  ResumeFolder(const Context& ctx, const std::string& path, const std::vector<JobFact>& facts, std::string suffix);
  ~ResumeFolder();
  ResumeFolder(const ResumeFolder&) = delete;
  ResumeFolder& operator=(const ResumeFolder&) = delete;

  /// What the last `save` kept; an empty object in a new folder.
  [[nodiscard]] const Json& state() const noexcept { return state_; }
  /// Writes the record with another state.
  void save(Json state);
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
  /// Throws `invalid_argument` for a file with the suffix that is none of these.
  void require_only(const std::vector<std::string>& files) const;
  /// Throws `bad_data` saying that the file is not the one that the record tells of.
  [[noreturn]] void refuse_file(const std::string& name, const std::string& remedy) const;
  /// The job is done: removes all that it kept, the record last, and the folder where this job made it.
  void finish();

 private:
  void make();
  void lock();
  void remove_temporaries() const;
  void read_record(const std::vector<JobFact>& facts);
  void compare(const std::vector<JobFact>& facts, const Json& job) const;
  void refuse_foreign_files() const;
  [[noreturn]] void refuse_foreign(const std::string& name) const;
  [[nodiscard]] bool is_kept(std::string_view name) const;
  [[nodiscard]] std::filesystem::path record() const;
  [[nodiscard]] std::vector<std::string> names() const;

  const Context ctx_;
  std::filesystem::path path_;
  std::string suffix_;
  int lock_ = -1;
  bool made_ = false;  // by this job, perhaps in an earlier run
  Json job_;
  Json state_;
};

}  // namespace vicinal::cli
