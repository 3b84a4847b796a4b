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

namespace vicinal::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "job.json";
constexpr const char* kLock = "lock";
constexpr const char* kFormat = "vicinal-resume";
constexpr int kVersion = 1;  // of the record and of the files beside it
constexpr std::uintmax_t kLargestRecord = std::uintmax_t{1} << 30;

[[noreturn]] void refuse(ErrorCode code, const std::string& why) {
  throw Error(code, "--resume: " + why);
}

[[noreturn]] void fail(const char* what, const fs::path& path, int error) {
  refuse(ErrorCode::io, fmt::format("cannot {} '{}': {}", what, path.string(), std::generic_category().message(error)));
}

/// The name of the file that a temporary of AtomicFile was to become ("x" of "x.tmp.123.4"); empty for other names.
std::string_view target_of(std::string_view name) {
  const std::size_t at = name.rfind(".tmp.");
  if (at == std::string_view::npos) return {};
  const std::string_view numbers = name.substr(at + 5);
  return numbers.find_first_not_of("0123456789.") == std::string_view::npos ? name.substr(0, at) : std::string_view();
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

void ResumeArguments::add_to(const Parser& app) {
  const std::string group = "Going on after an interruption";
  app.add_option("--resume", folder,
                 "Keep finished work in this folder; after an interruption the same command goes on from there")
      .type_name("DIR")
      .group(group);
  app.add_option("--resume-every", seconds, "Seconds of work between two writes to the folder of --resume")
      .type_name("SECONDS")
      .capture_default_str()
      .group(group);
}

void ResumeArguments::check() const {
  if (seconds >= 0 && std::isfinite(seconds)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("--resume-every: is {}, must be at least 0", seconds));
}

ResumeFolder::ResumeFolder(const Context& ctx, const std::string& path, const std::vector<JobFact>& facts,
                           std::string suffix)
    : ctx_(ctx), path_(path), suffix_(std::move(suffix)) {
  for (const JobFact& fact : facts) job_[fact.key] = fact.value;
  make();
  try {
    lock();
    remove_temporaries();
    read_record(facts);
    refuse_foreign_files();
    if (state_.is_null()) save(Json::object());
  } catch (...) {
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

void ResumeFolder::make() {
  made_ = ::mkdir(path_.c_str(), 0777) == 0;
  if (!made_ && errno != EEXIST) fail("make the folder", path_, errno);
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) fail("look at", path_, errno);
  if (!S_ISDIR(status.st_mode)) refuse(ErrorCode::io, fmt::format("'{}' is not a folder", path_.string()));
}

/// The lock ends with the process, however that ends. A lock file that was removed meanwhile locks nothing.
void ResumeFolder::lock() {
  const fs::path path = path_ / kLock;
  const auto refuse_used = [this] {
    refuse(ErrorCode::io, fmt::format("'{}' is in use by another process", path_.string()));
  };
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail("write", path, errno);
  while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) refuse_used();
    if (errno != EINTR) fail("lock", path, errno);
  }
  struct stat held {};
  struct stat named {};
  if (::fstat(lock_, &held) != 0) fail("lock", path, errno);
  if (::stat(path.c_str(), &named) != 0 || named.st_ino != held.st_ino || named.st_dev != held.st_dev) refuse_used();
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
  return name == kRecord || name == kLock || (name.size() > suffix_.size() && name.ends_with(suffix_));
}

void ResumeFolder::remove_temporaries() const {
  for (const std::string& name : names()) {
    const std::string_view target = target_of(name);
    if (!target.empty() && is_kept(target)) ::unlink((path_ / name).c_str());
  }
}

void ResumeFolder::refuse_foreign_files() const {
  const bool is_new = state_.is_null();
  for (const std::string& name : names()) {
    if (is_kept(name) && (!is_new || name == kLock || name == kRecord)) continue;
    if (is_new) ::unlink((path_ / kLock).c_str());
    refuse_foreign(name);
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
  const Json read = Json::parse(text, nullptr, false);
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
  made_ = read["made_folder"].get<bool>();
  state_ = read.value("state", Json());
  if (state_.is_null()) refuse_damaged();
}

void ResumeFolder::compare(const std::vector<JobFact>& facts, const Json& job) const {
  const std::string path = record().string();
  const char* const remedy = "name another folder, or remove this one to begin anew";
  for (const JobFact& fact : facts) {
    const Json there = job.value(fact.key, Json());
    if (there == fact.value) continue;
    if (fact.is_digest) {
      refuse(ErrorCode::invalid_argument,
             fmt::format("'{}' is of a job with other values in {}; {}", path, fact.shown, remedy));
    }
    refuse(ErrorCode::invalid_argument, fmt::format("'{}' is of a job whose {} is {}, not {}; {}", path, fact.shown,
                                                    text_of(there), text_of(fact.value), remedy));
  }
  if (job != job_) {
    refuse(ErrorCode::invalid_argument, fmt::format("'{}' is of another job; {}", path, remedy));
  }
}

void ResumeFolder::save(Json state) {
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
  refuse(ErrorCode::bad_data,
         fmt::format("'{}' is damaged, or not the file that this job wrote; {}", file(name).string(), remedy));
}

void ResumeFolder::finish() {
  for (const std::string& name : names()) {
    if (name != kRecord && name != kLock && is_kept(name) && ::unlink(file(name).c_str()) != 0 && errno != ENOENT) {
      fail("remove", file(name), errno);
    }
  }
  for (const char* const name : {kRecord, kLock}) {
    if (::unlink(file(name).c_str()) != 0 && errno != ENOENT) fail("remove", file(name), errno);
  }
  if (made_) ::rmdir(path_.c_str());  // someone may have put files there meanwhile
}

}  // namespace vicinal::cli
