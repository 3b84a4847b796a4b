#include "call.hpp"

#include <algorithm>
#include <utility>

#include "buffer.hpp"
#include "interruptible.hpp"
#include "table_input.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Thrown into the library where Python raised; `Call::run` then throws what was raised.
[[noreturn]] void leave_library() {
  throw Error(ErrorCode::cancelled, "Python raised an error");
}

nb::object tables(const char* function) {
  return nb::module_::import_("vicinal._tables").attr(function);
}

thread_local Call* running = nullptr;

/// Says whose work runs on this thread. A signal handler may call the library meanwhile, so calls nest.
class Running {
 public:
  explicit Running(Call* call) : before_(std::exchange(running, call)) {}
  ~Running() { running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Call* before_;
};

}  // namespace

const Native* native_of(nb::handle value) {
  const nb::object native = nb::getattr(value, "_native", nb::none());
  return nb::isinstance<Native>(native) ? nb::inst_ptr<Native>(native) : nullptr;
}

Call::Call(const char* function, nb::dict keywords) : function_(function), keywords_(std::move(keywords)) {
  const auto read = [this](const char* name, auto& out) {
    names_.push_back(name);
    if (const nb::object value = take(name)) Setting{name, value, *this}.read(out);
  };
  read("device", place_.device);
  read("threads", place_.threads);
  read("memory_limit", place_.memory_limit);
  read("device_memory_limit", place_.device_memory_limit);
  names_.push_back("progress");
  if (const nb::object value = take("progress")) {
    progress_ = nb::module_::import_("vicinal._progress").attr("reporter")(value);
  }
}

Call::~Call() {
  if (!progress_ || progress_.is_none()) return;
  try {
    const nb::object close = nb::getattr(progress_, "close", nb::none());
    if (!close.is_none()) close();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("closing the progress bar");
  }
}

nb::object Call::take(const char* name) {
  if (!keywords_.contains(name)) return {};
  nb::object value = keywords_[name];
  nb::del(keywords_[name]);
  return value.is_none() ? nb::object() : value;
}

void Call::on_host() {
  if (place_.device == "auto") place_.device = "cpu";
}

nb::object Call::keyword(const char* name) {
  names_.push_back(name);
  return take(name);
}

void Call::refuse_others() {
  if (keywords_.size() == 0) return;
  const auto unknown = nb::cast<std::string>(keywords_.keys()[0]);
  nb::list known;
  for (const std::string_view name : names_) known.append(nb::str(name.data(), name.size()));
  const nb::object sentence = nb::module_::import_("vicinal._names").attr("unknown")(function_, unknown, known);
  throw nb::type_error(nb::cast<std::string>(sentence).c_str());
}

Session& Call::session() {
  if (session_ == nullptr) session_ = std::make_unique<Session>(place_);
  return *session_;
}

std::unique_ptr<Session> Call::take_session() {
  Session& session = this->session();
  session.tell(nullptr);  // the call's progress function ends with it
  return std::move(session_);
}

Input Call::look(const char* name, nb::handle value, int* device) {
  if (const auto read = native<Table>(value)) return {read->view, read};
  // Plain arrays of a native type need no look from Python.
  if (auto input = plain_table(value)) return *input;
  const nb::tuple answer = nb::cast<nb::tuple>(tables("table")(value, name));
  count_copied(nb::cast<std::int64_t>(answer[2]));
  const auto kind = nb::cast<std::string>(answer[0]);
  if (kind == "blocks") return block_table(answer[1]);
  if (kind == "csr") return csr_table(answer[1], name);
  if (kind == "arrow") return arrow_table(*this, answer[1], name);
  if (kind != "path") return imported_table(kind, answer[1], name, device);
  const auto path = nb::cast<std::string>(answer[1]);
  auto table = std::make_shared<Table>();
  run([&](const Context& ctx) { *table = read_table(ctx, path); });
  return {table->view, table};
}

Input Call::table(const char* name, nb::handle value) {
  int device = 0;
  Input input = look(name, value, &device);
  const bool on_device = input.view.memory() == Memory::cuda;
  if (on_device && place_.device == "cpu") {
    throw Error(ErrorCode::invalid_argument, std::string(name) + ": is in device memory, but device is 'cpu'");
  }
  if (on_device && place_.device == "auto") place_.device = "cuda:" + std::to_string(device);
  if (!on_device_) {
    on_device_ = on_device;
    first_table_ = name;
  } else if (*on_device_ != on_device) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + ": is in " + (on_device ? "device" : "host") +
                                                 " memory, but " + first_table_ + " is not; move one of them");
  }
  return input;
}

Input Call::host_table(const char* name, nb::handle value) {
  int device = 0;
  Input input = look(name, value, &device);
  if (input.view.memory() == Memory::cuda) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + ": is in device memory; expected host memory");
  }
  return input;
}

std::span<const std::byte> Call::elements(const char* name, nb::handle value, const char* kind) {
  const nb::tuple answer = nb::cast<nb::tuple>(tables("vector")(value, name, kind));
  count_copied(nb::cast<std::int64_t>(answer[1]));
  const auto buffer = Buffer::of(answer[0]);
  keep(buffer);
  return {static_cast<const std::byte*>(buffer->data()), static_cast<std::size_t>(buffer->bytes())};
}
std::span<const std::int64_t> Call::integers(const char* name, nb::handle value) {
  const auto bytes = elements(name, value, "int64");
  return {reinterpret_cast<const std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)};
}
std::span<const double> Call::numbers(const char* name, nb::handle value) {
  const auto bytes = elements(name, value, "float64");
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}
std::span<const std::uint64_t> Call::bitmap(const char* name, nb::handle rows) {
  const nb::tuple answer = nb::cast<nb::tuple>(tables("bitmap")(rows, name));
  filtered_rows_ = nb::cast<std::int64_t>(answer[1]);
  const auto buffer = Buffer::of(answer[0]);
  count_copied(buffer->bytes());
  keep(buffer);
  return {static_cast<const std::uint64_t*>(buffer->data()),
          static_cast<std::size_t>(buffer->bytes()) / sizeof(std::uint64_t)};
}

void Call::check_filter(std::int64_t rows) const {
  if (!filtered_rows_ || *filtered_rows_ == rows) return;
  throw Error(ErrorCode::invalid_argument,
              "filter: " + std::to_string(*filtered_rows_) + " bools for a table of " + std::to_string(rows) + " rows");
}

void Call::run(const std::function<void(const Context&)>& work, double operations) {
  Session& session = this->session();
  if (progress_ && !progress_.is_none()) {
    session.tell([this](std::string_view stage, double fraction) {
      ask_python([&] { progress_(nb::str(stage.data(), stage.size()), fraction); });
    });
  }
  const auto marked = [&] {
    const Running mark(this);
    work(session.context());
  };
  try {
    if (operations < kFewOperations) {
      const nb::gil_scoped_release released;
      marked();
    } else {
      run_interruptibly(marked, session.context().cancel_token());
    }
  } catch (const Error&) {
    if (raised_) throw std::move(*raised_);
    throw;
  }
  if (raised_) throw std::move(*raised_);
}

Call& Call::current() {
  if (running == nullptr) throw Error(ErrorCode::internal, "a block source was asked outside of a call");
  return *running;
}

void Call::ask_python(const std::function<void()>& question) {
  const nb::gil_scoped_acquire held;
  try {
    question();
  } catch (nb::python_error& error) {
    if (!raised_) raised_.emplace(std::move(error));
    session_->context().cancel_token().cancel();
    leave_library();
  }
}

}  // namespace vicinal::python
