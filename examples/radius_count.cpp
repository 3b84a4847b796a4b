// An index asked twice: who lies within a radius (as CSR), and how many do. The radius is inclusive.
#include <iostream>
#include <vector>
#include <vicinal/vicinal.hpp>

int main() {
  namespace vc = vicinal;
  const auto ctx = vc::Context::cpu();
  const std::vector<double> points = {0, 1, 2, 4, 8};  // [5, 1]
  const vc::Index index(ctx, {points.data(), 5, 1});
  const auto near = vc::radius(ctx, index, {.radius = 2});
  const auto counts = vc::count(ctx, index, {.radius = 2});
  bool right = counts.counts == std::vector<std::int64_t>{2, 2, 3, 1, 0};
  for (std::int64_t i = 0; i < near.rows; ++i) {
    std::cout << "row " << i << ": " << counts.counts[i] << " neighbors within 2:";
    for (const std::int64_t id : near.ids_of(i)) std::cout << ' ' << id;
    std::cout << '\n';
    right = right && static_cast<std::int64_t>(near.ids_of(i).size()) == counts.counts[i];
  }
  return right ? 0 : 1;
}
