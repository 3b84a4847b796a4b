// KMeansSteps: k-means one step at a time. Unlike other objects that Python holds, it changes, so one thread at a time
// may use it.
#include <atomic>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "interruptible.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Steps, what they borrow, and the context that they run in, which no other call may have meanwhile.
struct HeldSteps {
  std::unique_ptr<Session> session;
  std::shared_ptr<const void> storage;
  std::unique_ptr<KMeansSteps> steps;
  mutable std::atomic_flag busy;
};

/// Of the steps that a Python object holds, for one call.
class Turn {
 public:
  explicit Turn(nb::handle steps) {
    const Native* const native = native_of(steps);
    if (native == nullptr || *native->type != typeid(HeldSteps)) refuse("steps", steps, "a KMeansSteps");
    held_ = std::static_pointer_cast<const HeldSteps>(native->value);
    if (held_->busy.test_and_set()) {
      held_ = nullptr;
      throw Error(ErrorCode::invalid_argument, "KMeansSteps: another thread is using it; give each thread its own");
    }
  }
  ~Turn() {
    if (held_ != nullptr) held_->busy.clear();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Runs `work` without the GIL; Ctrl-C stops it.
  template <class Work>
  auto run(double operations, const Work& work) const {
    decltype(work(*held_->steps)) result;
    const auto all = [&] { result = work(*held_->steps); };
    if (operations < kFewOperations) {
      const nb::gil_scoped_release released;
      all();
    } else {
      run_interruptibly(all, held_->session->context().cancel_token());
    }
    return result;
  }
  [[nodiscard]] double rows() const { return static_cast<double>(held_->steps->rows()); }
  [[nodiscard]] double cols() const { return static_cast<double>(held_->steps->cols()); }
  [[nodiscard]] double clusters() const { return static_cast<double>(held_->steps->clusters()); }

 private:
  std::shared_ptr<const HeldSteps> held_;
};

nb::object steps_call(nb::handle table, nb::dict keywords) {
  Call call("KMeansSteps", std::move(keywords));
  KMeansStepsOptions options;
  const auto read = [&](const char* name, auto& out) {
    if (const nb::object value = call.keyword(name)) Setting{name, value, call}.read(out);
  };
  read("clusters", options.clusters);
  read("weights", options.weights);
  read("metric", options.metric);
  call.refuse_others();
  const Input input = call.table("table", table);
  auto held = std::make_shared<HeldSteps>();
  call.run([&](const Context& ctx) {
    const Input rows = in_memory(ctx, input);
    held->storage = rows.storage;
    held->steps = std::make_unique<KMeansSteps>(ctx, rows.view, options);
  });
  held->session = call.take_session();
  return Answer(call, std::shared_ptr<const HeldSteps>(held))
      .value("rows", held->steps->rows())
      .value("cols", held->steps->cols())
      .value("clusters", held->steps->clusters())
      .text("metric", name_of(options.metric))
      .plan(held->steps->plan())
      .done();
}

void centres_call(nb::handle steps, nb::handle centres, bool first) {
  Call call(first ? "KMeansSteps.start" : "KMeansSteps.set_centres", nb::dict());
  const Input input = call.host_table("centres", centres);
  const Turn turn(steps);
  turn.run(turn.clusters() * turn.cols() + (first ? turn.rows() : 0), [&](KMeansSteps& held) {
    first ? held.start(input.view) : held.set_centres(input.view);
    return 0;
  });
}

nb::object assign_call(nb::handle steps) {
  const Turn turn(steps);
  const KMeansAssigned done =
      turn.run(turn.rows() * turn.cols() * turn.clusters(), [](KMeansSteps& held) { return held.assign(); });
  return nb::make_tuple(done.changed, done.empty);
}

void move_call(nb::handle steps, nb::handle row, nb::handle cluster) {
  Call call("KMeansSteps.move_row", nb::dict());
  std::int64_t moved = 0;
  std::int64_t to = 0;
  Setting{"row", row, call}.read(moved);
  Setting{"cluster", cluster, call}.read(to);
  const Turn turn(steps);
  turn.run(turn.cols(), [&](KMeansSteps& held) {
    held.move_row(moved, to);
    return 0;
  });
}

double means_call(nb::handle steps) {
  const Turn turn(steps);
  return turn.run(turn.clusters() * turn.cols(), [](KMeansSteps& held) { return held.means(); });
}

nb::object centres_of_call(nb::handle steps) {
  const Turn turn(steps);
  std::vector<double> centres =
      turn.run(turn.clusters() * turn.cols(), [](KMeansSteps& held) { return held.centres(); });
  return array_of(std::move(centres),
                  {static_cast<std::int64_t>(turn.clusters()), static_cast<std::int64_t>(turn.cols())});
}

nb::object labels_call(nb::handle steps) {
  const Turn turn(steps);
  return array_of(turn.run(turn.rows(), [](KMeansSteps& held) { return held.labels(); }),
                  {static_cast<std::int64_t>(turn.rows())});
}

nb::object sizes_call(nb::handle steps) {
  const Turn turn(steps);
  return array_of(turn.run(turn.clusters(), [](KMeansSteps& held) { return held.sizes(); }),
                  {static_cast<std::int64_t>(turn.clusters())});
}

nb::object keys_call(nb::handle steps) {
  const Turn turn(steps);
  return array_of(turn.run(turn.rows() * turn.cols(), [](KMeansSteps& held) { return held.keys(); }),
                  {static_cast<std::int64_t>(turn.rows())});
}

double inertia_call(nb::handle steps) {
  const Turn turn(steps);
  return turn.run(turn.rows() * turn.cols(), [](KMeansSteps& held) { return held.inertia(); });
}

}  // namespace

void bind_steps(nb::module_& module) {
  module.def("kmeans_steps", &steps_call, any("table"), nb::arg("keywords"));
  module.def("kmeans_steps_centres", &centres_call, any("steps"), any("centres"), nb::arg("first"));
  module.def("kmeans_steps_assign", &assign_call, any("steps"));
  module.def("kmeans_steps_move", &move_call, any("steps"), any("row"), any("cluster"));
  module.def("kmeans_steps_means", &means_call, any("steps"));
  module.def("kmeans_steps_centres_of", &centres_of_call, any("steps"));
  module.def("kmeans_steps_labels", &labels_call, any("steps"));
  module.def("kmeans_steps_sizes", &sizes_call, any("steps"));
  module.def("kmeans_steps_keys", &keys_call, any("steps"));
  module.def("kmeans_steps_inertia", &inertia_call, any("steps"));
}

}  // namespace vicinal::python
