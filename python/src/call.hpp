// Call: one call of a function of the package. It reads the keywords, borrows the arguments, computes without the GIL
// and knows how many bytes were copied on the way.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "sessions.hpp"
#include "settings.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::python {

/// A table as the library takes it, and what it borrows from.
struct Input {
  TableView view;
  std::shared_ptr<const void> storage;
};

class Call {
 public:
  /// `keywords` belong to the call: what is read is taken out. Those that every function has are read at once: device,
  /// threads, memory_limit, device_memory_limit, progress.
  Call(const char* function, nanobind::dict keywords);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Options from the keywords, with C++'s defaults; `fields` are those that Python names.
  template <class Options>
  Options options(const Fields<Options>& fields, Options options = {}) {
    for (const Field<Options>& field : fields) {
      names_.push_back(field.name);
      if (const nanobind::object value = take(field.name)) field.set(options, {field.name, value, *this});
    }
    return options;
  }
  /// For a function that computes on the CPU alone: the device is then not looked for.
  void on_host();
  /// A keyword of the function alone; null where it is not given.
  nanobind::object keyword(const char* name);
  [[nodiscard]] bool has(const char* name) const {
    return keywords_.contains(name) && !nanobind::object(keywords_[name]).is_none();
  }
  /// Raises TypeError for a keyword that nothing has read, naming the nearest one. Called when all are read.
  void refuse_others();

  /// A table: an array, whatever gives one, or a path, which is read. `name` stands for it in errors.
  Input table(const char* name, nanobind::handle value);
  /// One that the library takes from host memory, wherever the others are.
  Input host_table(const char* name, nanobind::handle value);
  /// `value` as an object of the library that an earlier call returned; null where it is none of that type.
  template <class T>
  std::shared_ptr<const T> native(nanobind::handle value);
  /// As `native`, but an error that says what was expected.
  template <class T>
  std::shared_ptr<const T> expect(const char* name, nanobind::handle value, const char* what);
  /// One-dimensional arrays, borrowed where type and layout fit, else copied.
  std::span<const std::int64_t> integers(const char* name, nanobind::handle value);
  std::span<const double> numbers(const char* name, nanobind::handle value);
  /// Bools as bits. How many there are, `check_filter` compares with the rows of the table.
  std::span<const std::uint64_t> bitmap(const char* name, nanobind::handle rows);
  void check_filter(std::int64_t rows) const;

  /// Runs `work` without the GIL; Ctrl-C stops it. What takes few operations is done before Ctrl-C could matter, and
  /// is not handed to another thread.
  void run(const std::function<void(const Context&)>& work,
           double operations = std::numeric_limits<double>::infinity());
  /// Calls Python from within `work`. If that raises, the call is cancelled, and ends with what was raised.
  void ask_python(const std::function<void()>& question);
  /// The call whose `work` runs on this thread. A block source asks: an index keeps it for later calls.
  static Call& current();

  /// The session in which the work ran, for an object that goes on working in it; the last thing asked of a call.
  std::unique_ptr<Session> take_session();

  void count_copied(std::int64_t bytes) noexcept { copied_ += bytes; }
  [[nodiscard]] std::int64_t copied() const noexcept { return copied_; }
  /// Keeps something until the call ends.
  void keep(std::shared_ptr<const void> storage) { kept_.push_back(std::move(storage)); }

 private:
  nanobind::object take(const char* name);
  Session& session();
  /// `device`: the number of the device that the table is on.
  Input look(const char* name, nanobind::handle value, int* device);
  std::span<const std::byte> elements(const char* name, nanobind::handle value, const char* kind);

  const char* function_;
  nanobind::dict keywords_;
  std::vector<std::string_view> names_;
  Place place_;
  nanobind::object progress_;
  std::unique_ptr<Session> session_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::int64_t copied_ = 0;
  std::optional<std::int64_t> filtered_rows_;
  std::optional<bool> on_device_;  // the first table
  std::string first_table_;
  std::optional<nanobind::python_error> raised_;  // set with the GIL
};

/// An object of the library as Python holds it: never changed, shared by results and the arrays that they show.
struct Native {
  std::shared_ptr<const void> value;
  const std::type_info* type = nullptr;
};
/// The Native of a Python object (its attribute `_native`), or null.
const Native* native_of(nanobind::handle value);

template <class T>
std::shared_ptr<const T> Call::native(nanobind::handle value) {
  const Native* const native = native_of(value);
  if (native == nullptr || *native->type != typeid(T)) return nullptr;
  return std::static_pointer_cast<const T>(native->value);
}

template <class T>
std::shared_ptr<const T> Call::expect(const char* name, nanobind::handle value, const char* what) {
  if (auto found = native<T>(value)) return found;
  refuse(name, value, what);
}

}  // namespace vicinal::python
