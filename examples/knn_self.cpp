// Neighbors of a table within itself: a row is never its own neighbor, not even among its exact duplicates.
#include <iostream>
#include <vector>
#include <vicinal/vicinal.hpp>

int main() {
  namespace vc = vicinal;
  const std::vector<float> points = {0, 0, 3, 4, 0, 0, 6, 8};  // [4, 2], rows 0 and 2 are equal
  const auto graph = vc::knn(vc::Context::cpu(), {points.data(), 4, 2}, {.k = 2});
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    std::cout << "row " << i << ':';
    for (std::int64_t r = 0; r < graph.k; ++r) {
      std::cout << "  " << graph.ids_of(i)[r] << " at " << graph.distances_of(i)[r];
    }
    std::cout << '\n';
  }
  const std::vector<std::int64_t> ids = {2, 1, 0, 2, 0, 1, 1, 0};  // ties by the smaller id
  const std::vector<double> distances = {0, 5, 5, 5, 0, 5, 5, 10};
  return graph.ids == ids && graph.distances == distances ? 0 : 1;
}
