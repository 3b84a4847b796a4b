// The exported table: each function catches what is thrown behind it.
#include <mpi.h>

#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "mpi/group.hpp"
#include "plugin/abi/mpi.hpp"

namespace vicinal::mpi {
namespace {

void tell(Status* status, StatusCode code, const char* text) {
  status->code = code;
  std::strncpy(status->text, text, sizeof status->text - 1);
  status->text[sizeof status->text - 1] = '\0';
}

template <class Work>
void guarded(Status* status, const Work& work) {
  status->code = kOk;
  try {
    work();
  } catch (const Ended& ended) {
    status->error = ended.error();
    tell(status, kEnded, ended.what());
  } catch (const Fault& fault) {
    tell(status, fault.code(), fault.what());
  } catch (const std::bad_alloc& none) {
    tell(status, kNoMemory, none.what());
  } catch (const std::exception& error) {
    tell(status, kInternal, error.what());
  }
}

Group& group_of(void* handle) {
  return *static_cast<Group*>(handle);
}

std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

void* open(const Opening* opening, Facts* facts, Status* status) {
  Group* group = nullptr;
  guarded(status, [&] { group = new Group(*opening, *facts); });
  return group;
}

void close(void* handle) {
  delete static_cast<Group*>(handle);
}

void broadcast(void* handle, void* data, std::int64_t bytes, std::int32_t root, Status* status) {
  guarded(status, [&] { group_of(handle).broadcast({static_cast<std::byte*>(data), size_of(bytes)}, root); });
}

void all_gather(void* handle, const void* part, const std::int64_t* sizes, std::int32_t rank, std::int32_t ranks,
                void* all, std::int64_t bytes, Status* status) {
  guarded(status, [&] {
    group_of(handle).all_gather({static_cast<const std::byte*>(part), size_of(sizes[rank])}, {sizes, size_of(ranks)},
                                {static_cast<std::byte*>(all), size_of(bytes)});
  });
}

void all_reduce(void* handle, std::int64_t* values, std::int64_t count, std::int32_t reduction, Status* status) {
  guarded(status, [&] { group_of(handle).all_reduce({values, size_of(count)}, static_cast<Reduction>(reduction)); });
}

void send_receive(void* handle, const void* sent, std::int64_t sent_bytes, std::int32_t to, void* received,
                  std::int64_t received_bytes, std::int32_t from, Status* status) {
  guarded(status, [&] {
    group_of(handle).send_receive({static_cast<const std::byte*>(sent), size_of(sent_bytes)}, to,
                                  {static_cast<std::byte*>(received), size_of(received_bytes)}, from);
  });
}

void barrier(void* handle, Status* status) {
  guarded(status, [&] { group_of(handle).barrier(); });
}

void abandon(void* handle, std::int32_t error, const char* sentence, Status* ended) {
  guarded(ended, [&] { throw group_of(handle).abandon(error, sentence); });
}

/// The first line of what the library says of itself, up to a comma: "Open MPI v4.1.4".
const char* library() {
  static const std::string kText = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string whole(text.data());
    return whole.substr(0, whole.find_first_of(",\n"));
  }();
  return kText.c_str();
}

}  // namespace
}  // namespace vicinal::mpi

extern "C" __attribute__((visibility("default"))) const vicinal::mpi::Functions* vicinal_mpi_plugin() {
  using namespace vicinal::mpi;
  static const Functions kFunctions = {kPluginVersion, sizeof(Functions), library(),    open,    close,  broadcast,
                                       all_gather,     all_reduce,        send_receive, barrier, abandon};
  return &kFunctions;
}
