// --resume DIR: what is finished of a job is kept in files of DIR, so that the same command goes on there after the
// process was killed (docs/scale.md). job.json is the record of a folder: the job that it is of, and the state that the
// job keeps. The record and all other files appear whole or not at all (io::AtomicFile).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
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
  /// Refuses seconds that are no time, an empty name of a folder, and seconds without a folder.
  void check() const;

 private:
  std::optional<Option> given_folder_;
  std::optional<Option> given_seconds_;
};

/// One of the things that decide a job's result.
struct JobFact {
  std::string key;           ///< in the record
  Json value;                ///< a whole number, a text (of a float64, too: JSON has no infinity), or null
  std::string shown;         ///< its name in sentences: an option, or "number of rows in 'x.npy'"
  std::string differs = {};  ///< "with other values in 'x.npy'": what is said of a job with another value; empty: both
};

/// The digest of a file's values. `file` is quoted.
JobFact values_of(std::string key, Json digest, const std::string& file);

/// Throws `bad_data` saying that a file in such a folder is not the one that the record tells of.
[[noreturn]] void refuse_kept_file(const std::filesystem::path& path, const std::string& remedy);

class ResumeFolder {
 public:
  /// Opens the folder, which is made where there is none, and locks it until this object or the process ends. Files
  /// that a killed process was writing are removed. `suffix`: of the files that the job keeps beside its record, whose
  /// names are a number and the suffix. A folder that is refused stays as it was.
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
  /// Writes the record with another state. Throws as `require_lock`.
  void save(Json state);
  /// Throws `io` if the lock is no longer in the folder: someone removed it, and the folder may be another job's.
  void require_lock() const;
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
  /// Throws `invalid_argument` for a file with the suffix that is none of these.
  void require_only(const std::vector<std::string>& files) const;
  [[noreturn]] void refuse_file(const std::string& name, const std::string& remedy) const;
  [[noreturn]] void refuse_record() const;
  /// The job is done, and its result is told: removes these files, which it kept, then the record and the lock, and the
  /// folder where this job made it. What cannot be removed is a note.
  void finish(std::vector<std::string> files);

 private:
  bool make();
  void lock();
  [[nodiscard]] bool holds_lock() const;
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
  bool made_lock_ = false;  // by this run
  bool made_ = false;       // by this job, perhaps in an earlier run
  Json job_;
  Json state_;
};

}  // namespace vicinal::cli
