// The program `vicinal-bench`: times the library, and other libraries beside it. It is not installed.
#include "base/program.hpp"
#include "command/commands.hpp"

int main(int argc, char** argv) {
  using namespace vicinal::cli;
  return run_program({"vicinal-bench",
                      "Time vicinal on this machine",
                      {"vicinal-bench knn --rows 5000 --queries 500 --dims 32 -k 10 --verify", "vicinal-bench peak"},
                      {add_bench_devices, add_bench_growth, add_bench_knn, add_bench_match, add_bench_papers,
                       add_bench_peak, add_bench_peers, add_bench_ranks, add_bench_read, add_bench_ready}},
                     argc, argv);
}
