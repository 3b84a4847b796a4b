// Ranks that are processes, each of which runs this under mpirun (test_ranks.py):
//   operations PIECE        every operation of a communicator, messages in pieces of so many bytes
//   results [PIECE]         knn, radius, k-means, lof and merge_labels against the single process and against threads,
//                           bit for bit
//   hosts                   prints how many ranks are on the host
//   wrong CASE              ranks that come to different operations, or with different options
//   fails KIND RANK         k-means in which one rank has a NaN, too little memory, or is cancelled
//   fault KIND RANK ROUND   what happens to one rank in some round of exchanges
//   alone                   one rank fails outside of a phase, and rank 0 does not come in time
//   own LEVEL               in a program that starts MPI itself, with communicators of its own
// A rank that finds something wrong prints a sentence and returns 1.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "vicinal/vicinal.hpp"

namespace vicinal {
namespace {

using namespace std::chrono_literals;

int faults = 0;

void expect(bool is_so, const std::string& what) {
  if (is_so) return;
  ++faults;
  std::fprintf(stderr, "not as expected: %s\n", what.c_str());
}

/// At once: MPI_Abort, by whichever rank, ends this process as it is.
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool sum_fails = false;  // the next one that MPI is asked for

std::span<const std::byte> bytes_of(const std::vector<std::int64_t>& values) {
  return std::as_bytes(std::span(values));
}
std::span<std::byte> room_of(std::vector<std::int64_t>& values) {
  return std::as_writable_bytes(std::span(values));
}

bool are_same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// ---- operations -----------------------------------------------------------------------------------------------------

void check_operations(Communicator& own) {
  const std::int64_t rank = own.rank();
  const std::int64_t ranks = own.size();
  std::uint64_t sent = own.bytes_sent();
  expect(sent == 0, "bytes before the first operation");
  for (std::int64_t turn = 0; turn < 6; ++turn) {  // each root, size and number of places of up to three ranks
    const std::int64_t root = turn % ranks;
    for (const std::int64_t count : {0, 1, 1000}) {
      std::vector<std::int64_t> values(static_cast<std::size_t>(count));
      std::iota(values.begin(), values.end(), 1000 * rank + turn);
      std::vector<std::int64_t> expected(values.size());
      std::iota(expected.begin(), expected.end(), 1000 * root + turn);
      own.broadcast(room_of(values), static_cast<int>(root));
      expect(values == expected, "broadcast");
      sent += rank == root ? 8 * values.size() : 0;

      std::vector<std::int64_t> most(values.size());
      std::iota(most.begin(), most.end(), rank == turn % ranks ? rank : -turn);
      std::vector<std::int64_t> sums = most;
      own.all_reduce_max(most);
      own.all_reduce_sum(sums);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        expect(most[at] == turn % ranks + i, "maximum");
        expect(sums[at] == turn % ranks - (ranks - 1) * turn + ranks * i, "sum");
      }
      sent += 16 * values.size();
    }
    // Parts of unequal sizes, some of them empty, one much longer than the others.
    const auto part_size = [&](std::int64_t of) { return (of + turn) % ranks == 0 ? 700 : (of + turn) % 3; };
    const std::vector<std::int64_t> part(static_cast<std::size_t>(part_size(rank)), 100 * rank + turn);
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> expected;
    for (std::int64_t of = 0; of < ranks; ++of) {
      sizes.push_back(8 * part_size(of));
      expected.insert(expected.end(), static_cast<std::size_t>(part_size(of)), 100 * of + turn);
    }
    std::vector<std::int64_t> all(expected.size());
    own.all_gather(bytes_of(part), sizes, room_of(all));
    expect(all == expected, "gather");
    sent += 8 * part.size();

    // Around by `turn` places, each rank with another size.
    const auto around_size = [&](std::int64_t of) { return static_cast<std::size_t>(of == 1 ? 0 : 300 * of + turn); };
    const std::int64_t to = (rank + turn) % ranks;
    const std::int64_t from = (rank + (ranks - 1) * turn) % ranks;
    const std::vector<std::int64_t> around(around_size(rank), 7 * rank + turn);
    std::vector<std::int64_t> arrived(around_size(from));
    own.send_receive(bytes_of(around), static_cast<int>(to), room_of(arrived), static_cast<int>(from));
    expect(arrived == std::vector<std::int64_t>(around_size(from), 7 * from + turn), "send and receive");
    sent += 8 * around.size();
    own.barrier();
  }
  std::array<std::int64_t, 2> values = {std::numeric_limits<std::int64_t>::max(), rank == 1 ? -5 : 0};
  own.all_reduce_sum(values);
  expect(static_cast<std::uint64_t>(values[0]) ==
             static_cast<std::uint64_t>(ranks) * static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
         "a sum modulo 2^64");
  expect(values[1] == (ranks > 1 ? -5 : 0), "a sum of what one rank has");
  sent += 16;
  expect(own.bytes_sent() == (ranks == 1 ? 0 : sent), "bytes sent");
}

// ---- results --------------------------------------------------------------------------------------------------------

/// The second shard is far larger than the others, the first one is small.
std::vector<std::int64_t> unequal_cuts(std::int64_t n, std::int64_t ranks) {
  std::vector<std::int64_t> cuts = {0};
  for (std::int64_t rank = 1; rank < ranks; ++rank) cuts.push_back(rank == 1 ? 3 : n - 17 * (ranks - rank));
  cuts.push_back(n);
  return cuts;
}

std::vector<Isa> isas_of_this_machine() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    try {
      (void)Context::cpu({.threads = 1, .isa = isa});
      isas.push_back(isa);
    } catch (const Error&) {  // the machine lacks it
    }
  }
  return isas;
}

/// Instruction sets differ between ranks.
Context context_of(int rank, int turn) {
  static const std::vector<Isa> isas = isas_of_this_machine();
  return Context::cpu({.threads = 1, .isa = isas[static_cast<std::size_t>(rank + turn) % isas.size()]});
}

/// Runs body(communicator) on threads, and returns how many bytes the one of this rank has sent.
std::uint64_t bytes_by_threads(int rank, int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Communicator> ends = Communicator::threads(ranks);
  std::vector<std::thread> threads;
  for (Communicator& end : ends) threads.emplace_back([&] { body(end); });
  for (std::thread& thread : threads) thread.join();
  return ends[static_cast<std::size_t>(rank)].bytes_sent();
}

/// body(communicator) over processes, and over threads: the same bytes.
void check_bytes(Communicator& own, const std::string& what, const std::function<void(Communicator&)>& body) {
  const std::uint64_t before = own.bytes_sent();
  body(own);
  const std::uint64_t by_processes = own.bytes_sent() - before;
  expect(by_processes == bytes_by_threads(own.rank(), own.size(), body),
         what + ": bytes sent, " + std::to_string(by_processes));
}

struct Sample {
  std::vector<double> values;
  std::int64_t n = 0;
  std::int64_t d = 0;
  [[nodiscard]] TableView view() const { return {values.data(), n, d}; }
};

/// Rows of small integers, of which many are equal: ties on every side of a cut.
Sample sample_with_ties(std::int64_t n, std::int64_t d) {
  Sample sample{{}, n, d};
  std::uint64_t state = 7;
  for (std::int64_t i = 0; i < n * d; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    sample.values.push_back(static_cast<double>(state >> 61));
  }
  return sample;
}

void check_kmeans(Communicator& own, const Sample& sample, KMeansOptions options, int turn, const std::string& what) {
  const std::vector<std::int64_t> cuts = unequal_cuts(sample.n, own.size());
  const std::vector<double> weights(options.weights.begin(), options.weights.end());
  const KMeans whole = kmeans(context_of(0, turn), sample.view(), options);
  check_bytes(own, what, [&](Communicator& ranks) {
    const auto at = static_cast<std::size_t>(ranks.rank());
    KMeansOptions mine = options;
    if (!weights.empty()) {
      mine.weights = std::span(weights).subspan(static_cast<std::size_t>(cuts[at]),
                                                static_cast<std::size_t>(cuts[at + 1] - cuts[at]));
    }
    const KMeans part =
        kmeans(context_of(ranks.rank(), turn), ranks, sample.view().slice(cuts[at], cuts[at + 1]), cuts[at], mine);
    expect(are_same_bits(part.centres, whole.centres), what + ": centers");
    expect(are_same_bits({&part.inertia, 1}, {&whole.inertia, 1}), what + ": inertia");
    expect(part.iterations == whole.iterations, what + ": iterations");
    expect(part.sizes == whole.sizes, what + ": sizes");
    expect(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin() + cuts[at],
                      whole.labels.begin() + cuts[at + 1]),
           what + ": labels");
  });
}

void check_lof(Communicator& own, const NeighborGraph& graph, const LofOptions& options, const std::string& what) {
  const std::vector<std::int64_t> cuts = unequal_cuts(graph.rows, own.size());
  const Lof whole = lof(context_of(0, 0), graph, options);
  check_bytes(own, what, [&](Communicator& ranks) {
    const auto at = static_cast<std::size_t>(ranks.rank());
    NeighborGraph mine = graph;
    mine.rows = cuts[at + 1] - cuts[at];
    mine.ids.assign(graph.ids.begin() + cuts[at] * graph.k, graph.ids.begin() + cuts[at + 1] * graph.k);
    mine.distances.assign(graph.distances.begin() + cuts[at] * graph.k,
                          graph.distances.begin() + cuts[at + 1] * graph.k);
    const Lof part = lof(context_of(ranks.rank(), 0), ranks, mine, cuts[at], options);
    expect(
        are_same_bits(
            part.scores,
            std::span(whole.scores).subspan(static_cast<std::size_t>(cuts[at]), static_cast<std::size_t>(mine.rows))),
        what + ": scores");
    expect(are_same_bits({&part.threshold, 1}, {&whole.threshold, 1}), what + ": threshold");
    expect(part.outliers == whole.outliers, what + ": outliers");
  });
}

bool are_lists_of(const NeighborGraph& part, const NeighborGraph& whole, std::int64_t begin) {
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const auto ids = part.ids_of(row);
    const auto expected = whole.ids_of(begin + row);
    if (!std::equal(ids.begin(), ids.end(), expected.begin(), expected.end()) ||
        !are_same_bits(part.distances_of(row), whole.distances_of(begin + row))) {
      return false;
    }
  }
  return true;
}

/// Neighbors within the table, and of queries that few ranks have: few enough to be sent, and too many.
void check_neighbors(Communicator& own, const Sample& sample) {
  const std::vector<std::int64_t> cuts = unequal_cuts(sample.n, own.size());
  const NeighborGraph nearest = knn(context_of(0, 0), sample.view(), {.k = 7});
  const NeighborGraph near = radius(context_of(0, 0), sample.view(), {.radius = 2});
  check_bytes(own, "knn", [&](Communicator& ranks) {
    const auto at = static_cast<std::size_t>(ranks.rank());
    const TableView shard = sample.view().slice(cuts[at], cuts[at + 1]);
    const NeighborGraph part = knn(context_of(ranks.rank(), 0), ranks, shard, cuts[at], {.k = 7});
    expect(part.rows == shard.rows() && are_lists_of(part, nearest, cuts[at]), "knn: lists");
    const NeighborGraph within = radius(context_of(ranks.rank(), 0), ranks, shard, cuts[at], {.radius = 2});
    expect(within.rows == shard.rows() && are_lists_of(within, near, cuts[at]), "radius: lists");
  });
  for (const std::int64_t m : {4, 200}) {
    const Sample asked = sample_with_ties(m, sample.d);
    const NeighborGraph whole = knn(context_of(0, 0), sample.view(), asked.view(), {.k = 7});
    check_bytes(own, "knn of queries", [&](Communicator& ranks) {
      const auto at = static_cast<std::size_t>(ranks.rank());
      const TableView shard = sample.view().slice(cuts[at], cuts[at + 1]);
      const std::int64_t begin = ranks.rank() < 2 ? m / 2 * ranks.rank() : m;
      const std::int64_t end = ranks.rank() == 0 && ranks.size() > 1 ? m / 2 : m;
      const NeighborGraph part =
          knn(context_of(ranks.rank(), 0), ranks, shard, cuts[at], asked.view().slice(begin, end), {.k = 7});
      expect(part.rows == end - begin && are_lists_of(part, whole, begin), "knn of queries: lists");
    });
  }
}

void check_results(Communicator& own) {
  const Sample sample = sample_with_ties(300, 3);
  check_neighbors(own, sample);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < sample.n; ++i) weights.push_back(0.3 * static_cast<double>(i % 4));
  int turn = 0;
  for (const KMeansInit init : {KMeansInit::plus_plus, KMeansInit::parallel, KMeansInit::random, KMeansInit::first_k}) {
    const std::string what = "k-means, init " + std::string(name_of(init));
    check_kmeans(own, sample, {.clusters = 7, .init = init, .seed = 3, .tolerance = 1e-4}, ++turn, what);
    check_kmeans(own, sample, {.clusters = 5, .init = init, .weights = weights, .runs = 2, .seed = 4}, ++turn,
                 what + ", weights");
  }
  const NeighborGraph graph = knn(context_of(0, 0), sample.view(), {.k = 6});
  for (const OutlierScore score : {OutlierScore::lof, OutlierScore::simplified_lof, OutlierScore::knn,
                                   OutlierScore::knn_weighted, OutlierScore::loop}) {
    check_lof(own, graph, {.k = 6, .score = score, .contamination = 0.1}, "lof, score " + std::string(name_of(score)));
  }

  // Chains that no shard sees whole: vertex i is joined to i - 6 by rank i % ranks.
  const auto labels_of = [](std::int64_t rank, std::int64_t ranks) {
    std::vector<std::int64_t> labels(200);
    std::iota(labels.begin(), labels.end(), 0);
    for (std::int64_t i = 6; i < 200; ++i) {
      if (i % ranks == rank && i % 10 != 0)
        labels[static_cast<std::size_t>(i)] = labels[static_cast<std::size_t>(i - 6)];
    }
    return labels;
  };
  std::vector<std::vector<std::int64_t>> all;
  std::vector<std::span<const std::int64_t>> views;
  for (std::int64_t rank = 0; rank < own.size(); ++rank) all.push_back(labels_of(rank, own.size()));
  views.assign(all.begin(), all.end());
  const std::vector<std::int64_t> whole = merge_labels(context_of(0, 0), views);
  expect(std::set<std::int64_t>(whole.begin(), whole.end()).size() > 6, "several components");
  check_bytes(own, "merge_labels", [&](Communicator& ranks) {
    expect(merge_labels(context_of(0, 0), ranks, all[static_cast<std::size_t>(ranks.rank())]) == whole, "merge_labels");
  });
}

// ---- what goes wrong ------------------------------------------------------------------------------------------------

void come_wrongly(Communicator& own, std::string_view which) {
  std::array<std::int64_t, 2> two = {};
  const auto bytes = std::as_writable_bytes(std::span(two));
  const int rank = own.rank();
  const int ranks = own.size();
  if (which == "operation") rank == 1 ? own.barrier() : own.all_reduce_sum(two);
  if (which == "size") own.all_reduce_max(std::span(two).first(rank == 2 ? 1 : 2));
  if (which == "root") own.broadcast(bytes, rank == 2 ? 1 : 0);
  if (which == "sent") {
    std::vector<std::int64_t> received(2);
    own.send_receive(bytes.first(rank == 1 ? 8 : 16), (rank + 1) % ranks, room_of(received), (rank + 2) % ranks);
  }
  if (which == "parts") {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks), 8);
    std::vector<std::int64_t> all(sizes.size());
    if (rank == 2) std::swap(sizes[0] += 8, sizes[1] -= 8);
    own.all_gather(bytes.first(8), sizes, room_of(all));
  }
  if (which == "abandon" && rank == 2) own.abandon("the disk is full");
  if (which == "long" && rank == 2) own.abandon(std::string(1499, 'x') + "\u00e9");  // cut at 1500 bytes
  if (which == "leave" && rank == 1) Communicator gone = std::move(own);
  if (own.size() > 0) own.barrier();
}

void compute_and_fail(Communicator& own, std::string_view kind, int bad) {
  Sample sample = sample_with_ties(300, 3);
  const std::vector<std::int64_t> cuts = unequal_cuts(sample.n, own.size());
  const auto at = static_cast<std::size_t>(own.rank());
  const std::int64_t row = cuts[static_cast<std::size_t>(bad)] + 2;
  if (kind == "nan") sample.values[static_cast<std::size_t>(3 * row + 1)] = std::numeric_limits<double>::quiet_NaN();
  CpuOptions here{.threads = 1};
  if (own.rank() == bad && kind == "memory") here.memory_limit = 1;
  if (own.rank() == bad && kind == "cancel") here.cancel.cancel();
  const TableView shard = sample.view().slice(cuts[at], cuts[at + 1]);
  std::string first;
  for (int turn = 0; turn < 2; ++turn) {  // such an error does not end the group
    try {
      (void)kmeans(Context::cpu(here), own, shard, cuts[at], {.clusters = 4});
      expect(false, "all ranks fail");
    } catch (const Error& error) {
      first = std::to_string(static_cast<int>(error.code())) + ": " + error.what();
    }
  }
  own.barrier();
  say(first);
}

void signal_later(int signal, std::chrono::milliseconds pause) {
  std::thread([=] {
    std::this_thread::sleep_for(pause);
    kill(getpid(), signal);
  }).detach();
}

void meet_a_fault(Communicator& own, const std::string& kind, int rank, int round) {
  // Long enough that a rank stops while bytes travel.
  const bool is_within = kind == "stop-within";
  std::vector<std::int64_t> values(is_within ? 2'000'000 : 50'000);
  for (int at = 0; at < (is_within ? 10'000 : 30); ++at) {
    if (own.rank() == rank && at == round) {
      if (is_within) signal_later(SIGSTOP, 300ms);
      if (kind == "pause") {
        if (const pid_t parent = getpid(); fork() == 0) {
          // Again and again, because the first may come before the parent stops.
          for (std::this_thread::sleep_for(700ms); getppid() == parent; std::this_thread::sleep_for(100ms)) {
            kill(parent, SIGCONT);
          }
          _exit(0);
        }
        raise(SIGSTOP);
      }
      if (kind == "kill") raise(SIGKILL);
      if (kind == "stop") raise(SIGSTOP);
      if (kind == "exit") std::exit(3);
      if (kind == "quit") _exit(0);
      if (kind == "terminate") std::terminate();
      if (kind == "throw") throw std::runtime_error("rank " + std::to_string(rank) + " throws");
      if (kind == "late") std::this_thread::sleep_for(15s);
      if (kind == "mpi") sum_fails = true;
      if (kind == "exit-within") {
        std::thread([&] { own.barrier(); }).detach();
        std::this_thread::sleep_for(300ms);
        std::exit(3);
      }
    } else if (kind == "exit-within" && at == round) {
      std::this_thread::sleep_for(5s);
    }
    own.all_reduce_sum(values);
    own.barrier();
  }
}

/// Rank 1 fails outside of a phase, while rank 0 stays away longer than the stall limit.
void lack_memory_alone(Communicator& own) {
  const Sample sample = sample_with_ties(300, 3);
  const std::vector<std::int64_t> cuts = unequal_cuts(sample.n, own.size());
  const auto at = static_cast<std::size_t>(own.rank());
  const auto progress = [&](std::string_view, double) {
    if (own.rank() == 1) throw std::bad_alloc();
    std::this_thread::sleep_for(15s);
  };
  (void)kmeans(Context::cpu({.threads = 1, .progress = progress}), own, sample.view().slice(cuts[at], cuts[at + 1]),
               cuts[at], {.clusters = 4});
}

bool refused_as(ErrorCode code, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != code) std::fprintf(stderr, "%s\n", error.what());
    return error.code() == code;
  }
  return false;
}

void compute(Communicator& own) {
  const Sample sample = sample_with_ties(40, 3);
  const std::vector<std::int64_t> cuts = {0, 10, 20, 40};
  const auto at = static_cast<std::size_t>(own.rank());
  (void)kmeans(Context::cpu({.threads = 1}), own, sample.view().slice(cuts[at], cuts[at + 1]), cuts[at],
               {.clusters = 3});
}

void use_own_mpi(const std::string& level, std::chrono::milliseconds stall_limit) {
  const std::map<std::string, int> levels = {{"single", MPI_THREAD_SINGLE}, {"multiple", MPI_THREAD_MULTIPLE}};
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, levels.at(level), &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Communicator whole;
  {
    // Ranks backwards, and without the last one.
    MPI_Comm part = MPI_COMM_NULL;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, -rank, &part);
    if (part == MPI_COMM_NULL) {
      expect(refused_as(ErrorCode::invalid_argument, [&] { (void)Communicator::mpi({.communicator = &part}); }),
             "a communicator that this process is not in");
    } else {
      Communicator own = Communicator::mpi({.stall_limit = stall_limit, .communicator = &part});
      expect(own.size() == size - 1 && own.rank() == size - 2 - rank, "a part of the ranks, backwards");
      check_operations(own);
    }
    whole = Communicator::mpi({.stall_limit = stall_limit});
    expect(whole.size() == size && whole.rank() == rank, "all ranks");
    std::thread([&] {  // another thread than the main one
      const bool may = provided >= MPI_THREAD_SERIALIZED;
      expect(may == !refused_as(ErrorCode::invalid_argument, [&] { whole.barrier(); }), "a barrier of another thread");
      expect(may == !refused_as(ErrorCode::invalid_argument, [&] { compute(whole); }), "k-means of another thread");
    })
        .join();
    whole.barrier();
  }
  MPI_Finalize();
  expect(refused_as(ErrorCode::io, [&] { (void)Communicator::mpi(); }), "a communicator after MPI has ended");
  expect(refused_as(ErrorCode::io, [&] { whole.barrier(); }), "a barrier after MPI has ended");
  expect(refused_as(ErrorCode::io, [&] { compute(whole); }), "k-means after MPI has ended");
}

void run(const std::vector<std::string>& words) {
  const std::string& what = words.at(0);
  const auto stall_limit = what == "fault" || what == "alone" ? 5s : 60s;
  if (what == "own") return use_own_mpi(words.at(1), stall_limit);
  MpiOptions options{.stall_limit = stall_limit};
  if (what == "operations" || (what == "results" && words.size() > 1)) options.piece_bytes = std::stoll(words.at(1));
  if (what == "pieces") {
    const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    options.piece_bytes = rank != nullptr && std::string_view(rank) == "1" ? 8 : 16;
  }
  Communicator own = Communicator::mpi(options);
  if (what == "operations") check_operations(own);
  if (what == "results") check_results(own);
  if (what == "hosts") say(std::to_string(own.ranks_on_host()));
  if (what == "wrong") come_wrongly(own, words.at(1));
  if (what == "fails") compute_and_fail(own, words.at(1), std::stoi(words.at(2)));
  if (what == "alone") lack_memory_alone(own);
  if (what == "fault") meet_a_fault(own, words.at(1), std::stoi(words.at(2)), std::stoi(words.at(3)));
}

}  // namespace
}  // namespace vicinal

/// In front of MPI's own, which the plug-in would call.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  if (vicinal::sum_fails) return MPI_ERR_INTERN;
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

/// A long sentence in short: mpirun may mix long lines of several ranks.
std::string in_short(const std::string& sentence) {
  if (sentence.size() <= 400) return sentence;
  return sentence.substr(0, 12) + "..." + sentence.substr(sentence.size() - 4) + ", " +
         std::to_string(sentence.size()) + " bytes";
}

int main(int count, char** words) {
  try {
    vicinal::run({words + 1, words + count});
  } catch (const vicinal::Error& error) {
    vicinal::say("error " + std::to_string(static_cast<int>(error.code())) + ": " + in_short(error.what()));
    return 1;
  }
  return vicinal::faults == 0 ? 0 : 1;
}
