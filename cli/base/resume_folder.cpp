// See resume_folder.hpp.
#include "base/resume_folder.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/digest.hpp"
#include "io/atomic_file.hpp"
#include "vicinal/error.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "job.json";
constexpr const char* kLock = "lock";
constexpr const char* kFormat = "vicinal-resume";
constexpr int kVersion = 1;  // of the record and of the files beside it
constexpr std::uintmax_t kLargestRecord = std::uintmax_t{64} << 20;
constexpr int kDeepest = 8;  // of what a record has within each other; what is deeper is none of a record's

[[noreturn]] void refuse(ErrorCode code, const std::string& why) {
  throw Error(code, "--resume: " + why);
}

[[noreturn]] void fail(const char* what, const fs::path& path, int error) {
  refuse(ErrorCode::io, fmt::format("cannot {} '{}': {}", what, path.string(), std::generic_category().message(error)));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The name of the file that a temporary of AtomicFile was to become ("x" of "x.tmp.123.4"); empty for other names.
std::string_view target_of(std::string_view name) {
  const std::size_t at = name.rfind(".tmp.");
  if (at == std::string_view::npos) return {};
  const std::string_view numbers = name.substr(at + 5);
  const std::size_t dot = numbers.find('.');
  const bool is_temporary =
      dot != std::string_view::npos && is_number(numbers.substr(0, dot)) && is_number(numbers.substr(dot + 1));
  return is_temporary ? name.substr(0, at) : std::string_view();
}

/// The record that a text has; no object where it has none.
Json parsed(const std::string& text) {
  const auto is_shallow = [](int depth, Json::parse_event_t, const Json&) { return depth <= kDeepest; };
  return Json::parse(text, is_shallow, false);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A record without its own digest, as text.
std::string body_of(const Json& record) {
  Json body = record;
  body.erase("digest");
  return body.dump();
}

}  // namespace

void refuse_kept_file(const fs::path& path, const std::string& remedy) {
  refuse(ErrorCode::bad_data,
         fmt::format("'{}' is damaged, or not the file that this job wrote; {}", path.string(), remedy));
}

JobFact values_of(std::string key, Json digest, const std::string& file) {
  return {std::move(key), std::move(digest), file, "with other values in " + file};
}

void ResumeArguments::add_to(const Parser& app) {
  const std::string group = "Going on after an interruption";
  given_folder_ = app.add_option("--resume", folder,
                                 "Keep finished work in this folder; after an interruption the same command goes on "
                                 "from there")
                      .type_name("DIR")
                      .group(group);
  given_seconds_ =
      app.add_option("--resume-every", seconds, "Seconds of work between two writes to the folder of --resume")
          .type_name("SECONDS")
          .capture_default_str()
          .group(group);
}

void ResumeArguments::check() const {
  if (given_folder_ && given_folder_->given() && folder.empty()) {
    throw Error(ErrorCode::invalid_argument, "--resume: the name of the folder is empty");
  }
  if (!(seconds >= 0 && std::isfinite(seconds))) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--resume-every: is {}, must be at least 0", seconds));
  }
  if (given_seconds_ && given_seconds_->given() && folder.empty()) {
    throw Error(ErrorCode::invalid_argument, "--resume-every: is for the folder of --resume, which is not given");
  }
}

ResumeFolder::ResumeFolder(const Context& ctx, const std::string& path, const std::vector<JobFact>& facts,
                           std::string suffix)
    : ctx_(ctx), path_(path), suffix_(std::move(suffix)) {
  std::vector<JobFact> all = {{"vicinal", VICINAL_VERSION, "version of vicinal"}};
  all.insert(all.end(), facts.begin(), facts.end());
  for (const JobFact& fact : all) job_[fact.key] = fact.value;
  const bool made_now = make();
  try {
    lock();
    read_record(all);
    refuse_foreign_files();
    remove_temporaries();
    if (state_.is_null()) save(Json::object());
  } catch (...) {
    if (made_lock_ && holds_lock()) ::unlink((path_ / kLock).c_str());
    if (made_now) ::rmdir(path_.c_str());
    if (lock_ >= 0) ::close(lock_);
    throw;
  }
}

ResumeFolder::~ResumeFolder() {
  if (lock_ >= 0) ::close(lock_);
}

fs::path ResumeFolder::record() const {
  return path_ / kRecord;
}

bool ResumeFolder::make() {
  made_ = ::mkdir(path_.c_str(), 0777) == 0;
  if (!made_ && errno != EEXIST) fail("make the folder", path_, errno);
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) fail("look at", path_, errno);
  if (!S_ISDIR(status.st_mode)) refuse(ErrorCode::io, fmt::format("'{}' is not a folder", path_.string()));
  if (!made_) return false;
  // After a power failure the folder is there if what holds it has reached the disk; one that cannot be synced is no
  // reason to fail.
  const int holder = ::open((path_ / "..").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (holder >= 0) {
    ::fsync(holder);
    ::close(holder);
  }
  return true;
}

/// The lock ends with the process, however that ends. A lock file that was removed meanwhile locks nothing. One that is
/// there already is of an earlier process if it is empty, as ours are.
void ResumeFolder::lock() {
  const fs::path path = path_ / kLock;
  const auto refuse_used = [this] {
    refuse(ErrorCode::io, fmt::format("'{}' is in use by another process", path_.string()));
  };
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  lock_ = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  const bool is_new = lock_ >= 0;
  if (!is_new && errno == EEXIST) lock_ = ::open(path.c_str(), kFlags);
  if (lock_ < 0 && errno == ELOOP) refuse_foreign(kLock);
  if (lock_ < 0 && errno == ENOENT) refuse_used();
  if (lock_ < 0) fail("write", path, errno);
  struct stat held {};
  if (::fstat(lock_, &held) != 0) fail("lock", path, errno);
  if (!S_ISREG(held.st_mode) || held.st_size != 0) refuse_foreign(kLock);
  while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) refuse_used();
    if (errno != EINTR) fail("lock", path, errno);
  }
  if (!holds_lock()) refuse_used();
  made_lock_ = is_new;
}

bool ResumeFolder::holds_lock() const {
  struct stat held {};
  struct stat named {};
  return ::fstat(lock_, &held) == 0 && ::lstat((path_ / kLock).c_str(), &named) == 0 && named.st_ino == held.st_ino &&
         named.st_dev == held.st_dev;
}

void ResumeFolder::require_lock() const {
  if (holds_lock()) return;
  refuse(ErrorCode::io,
         fmt::format("'{}' is no longer the folder of this process: its lock was removed or replaced", path_.string()));
}

std::vector<std::string> ResumeFolder::names() const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    found.push_back(entry->path().filename().string());
  }
  if (error) fail("read the folder", path_, error.value());
  std::sort(found.begin(), found.end());
  return found;
}

bool ResumeFolder::is_kept(std::string_view name) const {
  if (name == kRecord) return true;
  return name.ends_with(suffix_) && is_number(name.substr(0, name.size() - suffix_.size()));
}

void ResumeFolder::remove_temporaries() const {
  for (const std::string& name : names()) {
    if (is_kept(target_of(name))) ::unlink((path_ / name).c_str());
  }
}

/// A process that is killed before it has a record leaves its lock, and perhaps the record's temporary.
void ResumeFolder::refuse_foreign_files() const {
  const bool is_new = state_.is_null();
  for (const std::string& name : names()) {
    const std::string_view target = target_of(name);
    const bool is_known = is_new ? target == kRecord && !made_lock_ : is_kept(target.empty() ? name : target);
    if (name != kLock && !is_known) refuse_foreign(name);
  }
}

void ResumeFolder::refuse_foreign(const std::string& name) const {
  refuse(ErrorCode::invalid_argument,
         fmt::format("'{}' is not of an interrupted job; remove it, or name a new folder", file(name).string()));
}

void ResumeFolder::require_only(const std::vector<std::string>& files) const {
  for (const std::string& name : names()) {
    const bool is_known = std::find(files.begin(), files.end(), name) != files.end();
    if (name.ends_with(suffix_) && !is_known) refuse_foreign(name);
  }
}

void ResumeFolder::read_record(const std::vector<JobFact>& facts) {
  const std::string path = record().string();
  const auto refuse_damaged = [&path] {
    refuse(ErrorCode::bad_data, fmt::format("'{}' is damaged; remove the folder to begin anew", path));
  };
  std::error_code error;
  const auto status = fs::symlink_status(record(), error);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status) || fs::file_size(record(), error) > kLargestRecord || error) refuse_damaged();
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) fail("read", record(), EIO);
  const Json read = parsed(text);
  if (!read.is_object() || read.value("format", Json()) != kFormat) {
    refuse(ErrorCode::bad_data, fmt::format("'{}' is not the record of an interrupted job, or is damaged", path));
  }
  if (read.value("digest", Json()) != digest_of(body_of(read))) refuse_damaged();
  if (read.value("version", Json()) != kVersion) {
    refuse(ErrorCode::invalid_argument,
           fmt::format("'{}' was written by another version of vicinal (format {}, not {})", path,
                       text_of(read.value("version", Json())), kVersion));
  }
  const Json job = read.value("job", Json());
  if (!job.is_object() || !read.value("made_folder", Json()).is_boolean()) refuse_damaged();
  compare(facts, job);
  if (!read.value("state", Json()).is_object()) refuse_damaged();
  made_ = read["made_folder"].get<bool>();
  state_ = read["state"];
}

void ResumeFolder::compare(const std::vector<JobFact>& facts, const Json& job) const {
  const std::string path = record().string();
  const char* const remedy = "name another folder, or remove this one to begin anew";
  for (const JobFact& fact : facts) {
    const Json there = job.value(fact.key, Json());
    if (there == fact.value) continue;
    if (!fact.differs.empty()) {
      refuse(ErrorCode::invalid_argument, fmt::format("'{}' is of a job {}; {}", path, fact.differs, remedy));
    }
    refuse(ErrorCode::invalid_argument, fmt::format("'{}' is of a job whose {} is {}, not {}; {}", path, fact.shown,
                                                    text_of(there), text_of(fact.value), remedy));
  }
  if (job != job_) {
    refuse(ErrorCode::invalid_argument, fmt::format("'{}' is of another job; {}", path, remedy));
  }
}

void ResumeFolder::save(Json state) {
  require_lock();
  Json read = {{"format", kFormat}, {"version", kVersion}, {"made_folder", made_}};
  read["job"] = job_;
  read["state"] = std::move(state);
  read["digest"] = digest_of(read.dump());
  io::AtomicFile file(record(), &ctx_.cancel_token());
  file.write(read.dump(1) + "\n");
  file.commit();
  state_ = std::move(read["state"]);
}

void ResumeFolder::refuse_file(const std::string& name, const std::string& remedy) const {
  refuse_kept_file(file(name), remedy);
}

void ResumeFolder::refuse_record() const {
  refuse_file(kRecord, "remove the folder to begin anew");
}

void ResumeFolder::finish(std::vector<std::string> files) {
  files.insert(files.end(), {kRecord, kLock});
  try {
    require_lock();
    for (const std::string& name : files) {
      if (::unlink(file(name).c_str()) != 0 && errno != ENOENT) fail("remove", file(name), errno);
    }
  } catch (const Error& error) {  // the result is there
    return add_note(fmt::format("{}; remove what is left of this job in '{}' yourself", error.what(), path_.string()));
  }
  if (made_) ::rmdir(path_.c_str());  // someone may have put files there meanwhile
}

}  // namespace vicinal::cli
