// Matches two maps: a field that was divided, and one that did not change.
#include <array>
#include <cstdio>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

namespace {

void add_rectangle(vc::Polygons& map, double x0, double y0, double x1, double y1) {
  const std::array<double, 8> ring = {x0, y0, x1, y0, x1, y1, x0, y1};
  map.add_ring(ring);
  map.end_part();
  map.end_feature();
}

}  // namespace

int main() {
  const vc::Context ctx = vc::Context::cpu();
  vc::Polygons before;
  vc::Polygons after;
  add_rectangle(before, 0, 0, 4, 4);
  add_rectangle(before, 4, 0, 8, 4);
  add_rectangle(after, 0, 0, 2, 4);
  add_rectangle(after, 2, 0, 4, 4);
  add_rectangle(after, 4, 0, 8, 4);
  const vc::Match found = vc::match(ctx, before.view(), after.view());
  for (const vc::MatchGroup& group : found.groups) {
    std::printf("%lld before, %lld after: %s, %g square units shared\n", static_cast<long long>(group.count_a),
                static_cast<long long>(group.count_b), vc::name_of(group.change).data(), group.shared);
  }
  return found.groups.size() == 2 && found.groups[0].change == vc::Change::split &&
                 found.groups[1].change == vc::Change::unchanged
             ? 0
             : 1;
}
