// Relations, areas and directions against an exact oracle (lattice_region.hpp), on random regions that touch themselves
// and each other in every way that whole coordinates allow. Regions are drawn on a small lattice and then mapped by
// shears, powers of two and translations that float64 holds exactly: needles and the ends of the range have the
// relations of the lattice. VICINAL_FUZZ_PAIRS sets how many pairs of regions are drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "geo/layer.hpp"
#include "geo/overlap.hpp"
#include "geo/relation.hpp"
#include "lattice_region.hpp"
#include "simd/overlap_kernels.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::lattice {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kPairs = 1000;
#else
constexpr std::int64_t kPairs = 20000;
#endif

std::int64_t pairs_to_draw() {
  const char* const asked = std::getenv("VICINAL_FUZZ_PAIRS");
  return asked != nullptr ? std::strtoll(asked, nullptr, 10) : kPairs;
}

int whole(Random& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

/// Squares of a lattice, each cut into two triangles, turned and sheared.
struct Mesh {
  std::vector<Triangle> triangles;

  Mesh(Random& random, int most_cells) {
    const int step = whole(random, 1, 3);
    const int x0 = whole(random, 0, 3);
    const int y0 = whole(random, 0, 3);
    const int turn = whole(random, 0, 3);
    const int columns = whole(random, 1, most_cells);
    const int rows = whole(random, 1, most_cells);
    const auto corner = [&](int i, int j) {
      const std::int64_t x = x0 + step * i;
      const std::int64_t y = y0 + step * j;
      return turn == 1 ? Corner{x + y, y} : turn == 2 ? Corner{x, x + y} : Corner{x, y};
    };
    for (int i = 0; i < columns; ++i) {
      for (int j = 0; j < rows; ++j) {
        const Corner p = corner(i, j);
        const Corner q = corner(i + 1, j);
        const Corner r = corner(i + 1, j + 1);
        const Corner s = corner(i, j + 1);
        if (whole(random, 0, 1) == 0) {
          triangles.push_back({p, q, r});
          triangles.push_back({p, r, s});
        } else {
          triangles.push_back({p, q, s});
          triangles.push_back({q, r, s});
        }
      }
    }
  }
};

using Triangles = std::vector<Triangle>;

Triangles some_of(const Triangles& all, Random& random) {
  const int percent = whole(random, 1, 5) * 20;
  Triangles some;
  for (const Triangle& t : all) {
    if (whole(random, 1, 100) <= percent) some.push_back(t);
  }
  if (some.empty()) some.push_back(all[random() % all.size()]);
  return some;
}

Division some_division(Random& random) {
  return static_cast<Division>(whole(random, 0, 2));
}

/// x' = scale (x + shear y) + east, y' = scale y, or the two the other way round; all exact.
struct Map {
  double scale = 1;
  double shear = 0;
  double east = 0;
  bool turned = false;

  [[nodiscard]] double area() const { return scale * scale; }
  void add(const Region& region, Polygons& to) const {
    for (const Part& part : region) {
      for (const Ring& ring : part) {
        std::vector<double> xy;
        for (const Corner& c : ring) {
          const auto y = static_cast<double>(c.y);
          const double x = scale * (static_cast<double>(c.x) + shear * y) + east;
          xy.push_back(turned ? scale * y : x);
          xy.push_back(turned ? x : scale * y);
        }
        to.add_ring(xy);
      }
      to.end_part();
    }
    to.end_feature();
  }
};

const char* draw_map(Random& random, Map& map) {
  map.turned = random() % 2 == 0;
  switch (whole(random, 0, 7)) {
    case 0:
      map.shear = std::ldexp(1, whole(random, 1, 46)) + whole(random, -3, 3);
      return "needles";
    case 1:
      map.scale = 0x1p-398;
      map.shear = std::ldexp(1, whole(random, 1, 46));
      return "smallest";
    case 2:
      map.scale = 0x1p413;
      map.shear = std::ldexp(1, whole(random, 1, 46));
      return "largest";
    case 3:
      map.east = std::ldexp(1, 46) + whole(random, 0, 1000);
      return "far from the origin";
    case 4:
      map.scale = 0x1p-30;
      map.east = 1 << 16;
      map.shear = whole(random, -100, 100);
      return "fractions";
    default:
      return "plain";
  }
}

/// The second region's triangles, from the first one's mesh and choice.
const char* draw_other(Random& random, const Triangles& mesh, const Triangles& first, Triangles& second) {
  switch (whole(random, 0, 6)) {
    case 0:
      second = first;
      return "equal";
    case 1:
      second = some_of(first, random);
      return "within the first";
    case 2:
      for (const Triangle& t : mesh) {
        if (std::find(first.begin(), first.end(), t) == first.end()) second.push_back(t);
      }
      if (second.empty()) second = first;
      return "complement";
    case 3:
      second = some_of(mesh, random);
      return "of the same mesh";
    default:
      second = some_of(Mesh(random, 4).triangles, random);
      return "of another mesh";
  }
}

RegionRelation turned_round(RegionRelation relation) {
  switch (relation) {
    case RegionRelation::covers:
      return RegionRelation::covered_by;
    case RegionRelation::covered_by:
      return RegionRelation::covers;
    case RegionRelation::contains:
      return RegionRelation::within;
    case RegionRelation::within:
      return RegionRelation::contains;
    default:
      return relation;
  }
}

std::string text_of(const Polygons& polygons) {
  std::string text;
  for (std::size_t p = 0; p + 1 < polygons.parts.size(); ++p) {
    text += " part";
    for (std::int64_t r = polygons.parts[p]; r < polygons.parts[p + 1]; ++r) {
      text += " (";
      for (std::int64_t k = polygons.rings[std::size_t(r)]; k < polygons.rings[std::size_t(r) + 1]; ++k) {
        text += std::to_string(polygons.points[std::size_t(2 * k)]) + " " +
                std::to_string(polygons.points[std::size_t(2 * k + 1)]) + ", ";
      }
      text += ")";
    }
  }
  return text;
}

double magnitude(__float128 v) {
  return static_cast<double>(v < 0 ? -v : v);
}

TEST(OverlapFuzz, EqualsExactArithmeticOnRegionsThatTouchThemselves) {
  Random random(24);
  std::map<std::string, std::int64_t> kinds;
  const Context ctx = Context::cpu({.threads = 1});
  geo::OverlapArea shared_area(cpu::overlap_kernels(ctx.isa()));
  geo::RelationOf relation_of;
  const std::int64_t draws = pairs_to_draw();
  for (std::int64_t draw = 0; draw < draws && !::testing::Test::HasFailure(); ++draw) {
    const Mesh mesh(random, 4);
    const Triangles first = some_of(mesh.triangles, random);
    Triangles second;
    Map map;
    const std::string other = draw_other(random, mesh.triangles, first, second);
    const std::string mapped = draw_map(random, map);
    const Region a = region_of(first, some_division(random), random);
    const Region b = region_of(second, some_division(random), random);
    const Lie lie = lie_of(a, b);
    Polygons sides[2];
    map.add(a, sides[0]);
    map.add(b, sides[1]);
    const geo::Layer layers[2] = {geo::make_layer(ctx, sides[0].view(), "a"),
                                  geo::make_layer(ctx, sides[1].view(), "b")};
    const std::string shown = text_of(sides[0]) + "\n  and" + text_of(sides[1]);
    EXPECT_EQ(name_of(relation_of(layers[0], 0, layers[1], 0)), name_of(lie.relation))
        << other << ", " << mapped << shown;
    EXPECT_EQ(name_of(relation_of(layers[1], 0, layers[0], 0)), name_of(turned_round(lie.relation))) << mapped << shown;
    const geo::SharedArea shared = shared_area(layers[0], 0, layers[1], 0);
    const double off = magnitude(static_cast<__float128>(shared.area) - lie.area * map.area());
    EXPECT_TRUE(off <= shared.error) << off << " > " << shared.error << ", " << mapped << shown;
    for (std::size_t side = 0; side < 2; ++side) {
      const double exact = static_cast<double>(doubled_area(side == 0 ? first : second)) / 2 * map.area();
      const double bound = geo::area_error(layers[side].boxes[0], layers[side].first_run[1]);
      EXPECT_TRUE(std::fabs(layers[side].areas[0] - exact) <= bound) << layers[side].areas[0] << mapped << shown;
    }
    const Overlaps found = overlaps(ctx, sides[0].view(), sides[1].view());
    if (lie.relation == RegionRelation::disjoint) {
      EXPECT_TRUE(found.pairs.empty()) << shown;
    } else {
      ASSERT_EQ(found.pairs.size(), 1U) << shown;
      EXPECT_EQ(name_of(found.pairs[0].relation), name_of(lie.relation)) << other << ", " << mapped << shown;
      EXPECT_TRUE(std::isfinite(found.pairs[0].area) && std::isfinite(found.pairs[0].width)) << shown;
    }
    ++kinds["relation " + std::string(name_of(lie.relation))];
    ++kinds["second region " + other];
    ++kinds["map " + mapped];
  }
  std::string counts;
  for (const auto& [kind, count] : kinds) counts += "; " + kind + ": " + std::to_string(count);
  RecordProperty("pairs", std::to_string(draws) + counts);
  if (std::getenv("VICINAL_FUZZ_PAIRS") != nullptr)
    std::printf("%lld pairs%s\n", static_cast<long long>(draws), counts.c_str());
}

}  // namespace
}  // namespace vicinal::lattice
