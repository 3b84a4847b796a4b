// Long work shows its progress and can be stopped from anywhere: here by the progress function itself.
#include <iostream>
#include <vicinal/vicinal.hpp>

int main() {
  namespace vc = vicinal;
  const vc::CancelToken stop;  // copies share one flag; a signal handler may set it
  const auto ctx = vc::Context::cpu({.progress =
                                         [stop](std::string_view stage, double fraction) {
                                           std::cout << stage << ' ' << static_cast<int>(100 * fraction) << " %\n";
                                           stop.cancel();
                                         },
                                     .cancel = stop});
  const vc::Generated data = vc::generate(vc::Context::cpu(), {.rows = 30000, .cols = 32, .seed = 7});
  try {
    vc::knn(ctx, {data.points.data(), data.rows, data.cols}, {.k = 10});
  } catch (const vc::Error& error) {
    std::cout << "stopped: " << error.what() << '\n';
    return error.code() == vc::ErrorCode::cancelled ? 0 : 1;
  }
  std::cout << "the search ended before it said anything\n";
  return 1;
}
