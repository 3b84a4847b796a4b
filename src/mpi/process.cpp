// See process.hpp. The first thing that MPI_Finalize does, whoever calls it, is to delete what is attached to
// MPI_COMM_SELF. There groups leave, so that ranks that still wait are told, and there a job is ended in which a rank
// no longer answers, or an operation is cut short, because MPI_Finalize would wait for that rank.
#include "mpi/process.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace vicinal::mpi {
namespace {

struct Process {
  std::mutex mutex;
  std::vector<Group*> groups;
  bool is_attached = false;
  std::atomic<bool> must_abort = false;
};
Process& process() {
  static auto* const kProcess = new Process;  // outlives what ends at exit
  return *kProcess;
}

int at_end(MPI_Comm /*self*/, int /*key*/, void* /*value*/, void* /*state*/) {
  std::vector<Group*> groups;
  {
    const std::lock_guard lock(process().mutex);
    groups = process().groups;
  }
  for (Group* const group : groups) {
    if (group->is_inside()) {  // on another thread, which uses the group
      abort_at_end();
    } else {
      group->leave();
    }
  }
  if (process().must_abort) {
    std::fflush(nullptr);  // MPI_Abort ends the process without that
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_SUCCESS;
}

void end_at_exit() {
  if (is_running()) MPI_Finalize();
}

/// The parts of Open MPI that it loads itself look for its symbols among those of the whole process.
void show_symbols() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&MPI_Init_thread), &library) != 0 && library.dli_fname != nullptr) {
    dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  }
}

}  // namespace

bool is_running() noexcept {
  int flag = 0;
  MPI_Initialized(&flag);
  if (flag == 0) return false;
  MPI_Finalized(&flag);
  return flag == 0;
}

void start() {
  const std::lock_guard lock(process().mutex);
  int flag = 0;
  MPI_Finalized(&flag);
  if (flag != 0) throw Fault(kIo, "communicator: MPI has been finalized in this process");
  MPI_Initialized(&flag);
  if (flag == 0) {
    show_symbols();
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
    std::atexit(end_at_exit);
  }
  require_mpi();
  if (process().is_attached) return;
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, nullptr));
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr));
  process().is_attached = true;
}

void require_mpi() {
  if (!is_running()) throw Fault(kIo, "communicator: MPI has been finalized in this process");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) return;
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  if (is_main == 0) {
    throw Fault(kInvalidArgument,
                "communicator: this program has started MPI for calls of its main thread only; "
                "MPI_Init_thread with MPI_THREAD_SERIALIZED or more allows others");
  }
}

void enlist(Group* group) {
  const std::lock_guard lock(process().mutex);
  process().groups.push_back(group);
}

void strike_off(Group* group) noexcept {
  const std::lock_guard lock(process().mutex);
  auto& groups = process().groups;
  groups.erase(std::remove(groups.begin(), groups.end(), group), groups.end());
}

void abort_at_end() noexcept {
  process().must_abort = true;
}

}  // namespace vicinal::mpi
