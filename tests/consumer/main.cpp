// What a user of an installed vicinal writes: neighbors of four points on a line, the answer known by hand.
#include <iostream>
#include <vector>
#include <vicinal/vicinal.hpp>

int main() {
  const std::vector<double> points = {0, 1, 3, 7};  // [4, 1]
  const auto graph = vicinal::knn(vicinal::Context::cpu(), {points.data(), 4, 1}, {.k = 2});
  const std::vector<std::int64_t> ids = {1, 2, 0, 2, 1, 0, 2, 1};
  const std::vector<double> distances = {1, 3, 1, 2, 2, 3, 4, 6};
  const bool right = graph.ids == ids && graph.distances == distances;
  bool refused = false;
  try {
    vicinal::knn(vicinal::Context::cpu(), {points.data(), 4, 1}, {.k = 4});
  } catch (const vicinal::Error& error) {  // the type crosses the border of the shared object
    refused = error.code() == vicinal::ErrorCode::invalid_argument;
  }
  std::cout << "vicinal " << VICINAL_VERSION << ": " << (right && refused ? "right" : "wrong") << '\n';
  return right && refused ? 0 : 1;
}
