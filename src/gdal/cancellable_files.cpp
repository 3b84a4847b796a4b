// See cancellable_files.hpp.
#include "gdal/cancellable_files.hpp"

#include <cpl_vsi.h>

namespace vicinal::gdal {
namespace {

constexpr const char* kPrefix = "/vsivicinal/";  // GDAL keeps the pointer

struct Asked {
  void* host = nullptr;
  std::int32_t (*cancelled)(void* host) = nullptr;
};
thread_local Asked asked;

VSILFILE* file_of(void* file) {
  return static_cast<VSILFILE*>(file);
}

int stat_of(void* /*own*/, const char* name, VSIStatBufL* found, int flags) {
  return VSIStatExL(name, found, flags);
}

void* open_file(void* /*own*/, const char* name, const char* access) {
  return VSIFOpenL(name, access);
}

char** siblings_of(void* /*own*/, const char* folder) {
  return VSIReadDir(folder);
}

char** folder_of(void* /*own*/, const char* folder, int most) {
  return VSIReadDirEx(folder, most);
}

vsi_l_offset place_in(void* file) {
  return VSIFTellL(file_of(file));
}

int seek_in(void* file, vsi_l_offset offset, int whence) {
  return VSIFSeekL(file_of(file), offset, whence);
}

std::size_t read_from(void* file, void* to, std::size_t size, std::size_t count) {
  return is_cancelled() ? 0 : VSIFReadL(to, size, count, file_of(file));
}

int is_at_end(void* file) {
  return is_cancelled() || VSIFEofL(file_of(file)) != 0 ? 1 : 0;
}

std::size_t write_to(void* file, const void* from, std::size_t size, std::size_t count) {
  return is_cancelled() ? 0 : VSIFWriteL(from, size, count, file_of(file));
}

int flush_file(void* file) {
  return VSIFFlushL(file_of(file));
}

int truncate_file(void* file, vsi_l_offset size) {
  return VSIFTruncateL(file_of(file), size);
}

int remove_file(void* /*own*/, const char* name) {
  return VSIUnlink(name);
}

int close_file(void* file) {
  return VSIFCloseL(file_of(file));
}

bool install() {
  VSIFilesystemPluginCallbacksStruct* const calls = VSIAllocFilesystemPluginCallbacksStruct();
  calls->stat = stat_of;
  calls->open = open_file;
  calls->sibling_files = siblings_of;
  calls->read_dir = folder_of;
  calls->tell = place_in;
  calls->seek = seek_in;
  calls->read = read_from;
  calls->eof = is_at_end;
  calls->write = write_to;
  calls->flush = flush_file;
  calls->truncate = truncate_file;
  calls->unlink = remove_file;
  calls->close = close_file;
  const bool installed = VSIInstallPluginHandler(kPrefix, calls) == 0;
  VSIFreeFilesystemPluginCallbacksStruct(calls);
  return installed;
}

}  // namespace

std::string cancellable(const std::string& path) {
  static const bool kInstalled = install();
  return kInstalled ? std::string(kPrefix) + path : path;
}

Watching::Watching(void* host, std::int32_t (*cancelled)(void* host)) {
  asked = {host, cancelled};
}

Watching::~Watching() {
  asked = {};
}

bool is_cancelled() {
  return asked.cancelled != nullptr && asked.cancelled(asked.host) != 0;
}

}  // namespace vicinal::gdal
