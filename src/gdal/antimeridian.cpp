// See antimeridian.hpp. A ring is unrolled: each point is moved by as many turns as the steps before it went over the
// antimeridian. Strips of one turn of the unrolled plane are cut out, moved back and put together by GEOS.
#include "gdal/antimeridian.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vicinal::gdal {
namespace {

constexpr double kHalf = 180;
constexpr double kTurn = 360;
constexpr double kPole = 90;

using Geometry = std::unique_ptr<OGRGeometry>;

/// A ring, and how its steps are read.
struct Reading {
  const OGRLinearRing& ring;
  bool wide = false;  ///< a step of 360 degrees is as wide as it says, not none

  /// How many turns the step to point i > 0 goes over the antimeridian: -1, 0 or 1.
  [[nodiscard]] int turns(int i) const {
    const double step = ring.getX(i) - ring.getX(i - 1);
    if (std::fabs(step) <= kHalf || (wide && std::fabs(step) == kTurn)) return 0;
    return step > 0 ? -1 : 1;
  }
  [[nodiscard]] int turns() const {
    int sum = 0;
    for (int i = 1; i < ring.getNumPoints(); ++i) sum += turns(i);
    return sum;
  }
  [[nodiscard]] bool crosses() const {
    for (int i = 0; i < ring.getNumPoints(); ++i) {
      if (std::fabs(ring.getX(i)) > kHalf || (i > 0 && turns(i) != 0)) return true;
    }
    return false;
  }
  [[nodiscard]] bool runs_along() const {
    for (int i = 1; i < ring.getNumPoints(); ++i) {
      if (std::fabs(ring.getX(i)) == kHalf && ring.getX(i - 1) == ring.getX(i) && ring.getY(i - 1) != ring.getY(i)) {
        return true;
      }
    }
    return false;
  }
};

/// The ring as a polygon of the unrolled plane, over the pole where it goes around.
std::unique_ptr<OGRPolygon> unrolled(const Reading& reading, double pole) {
  auto whole = std::make_unique<OGRPolygon>();
  auto line = std::make_unique<OGRLinearRing>();
  int turns = 0;
  for (int i = 0; i < reading.ring.getNumPoints(); ++i) {
    if (i > 0) turns += reading.turns(i);
    line->addPoint(reading.ring.getX(i) + kTurn * turns, reading.ring.getY(i));
  }
  if (turns != 0) {
    const double first = line->getX(0);
    const double last = line->getX(line->getNumPoints() - 1);
    line->addPoint(last, pole);
    line->addPoint(first, pole);
  }
  line->closeRings();
  whole->addRingDirectly(line.release());
  return whole;
}

/// A ring that runs along the antimeridian was cut there by whoever made it, if it would else go around or enclose
/// nothing.
Reading reading_of(const OGRLinearRing& ring) {
  Reading reading{ring};
  if (!reading.crosses() || !reading.runs_along()) return reading;
  reading.wide = reading.turns() != 0 || unrolled(reading, 0)->get_Area() == 0;
  return reading;
}

Geometry strip_of(int turn) {
  auto whole = std::make_unique<OGRPolygon>();
  auto line = std::make_unique<OGRLinearRing>();
  const double west = kTurn * turn - kHalf;
  const double east = kTurn * turn + kHalf;
  line->addPoint(west, -kPole);
  line->addPoint(east, -kPole);
  line->addPoint(east, kPole);
  line->addPoint(west, kPole);
  line->closeRings();
  whole->addRingDirectly(line.release());
  return whole;
}

class Shift : public OGRDefaultGeometryVisitor {
 public:
  explicit Shift(double by) : by_(by) {}
  using OGRDefaultGeometryVisitor::visit;
  void visit(OGRPoint* point) override { point->setX(point->getX() + by_); }

 private:
  double by_;
};

/// `whole` and `more` by the even-odd rule; null stays null.
Geometry either(Geometry whole, Geometry more) {
  if (!whole || !more) return nullptr;
  return Geometry(whole->SymDifference(more.get()));
}

/// What the ring encloses, in [-180, 180].
Geometry enclosed(const OGRLinearRing& ring, double pole) {
  Geometry whole = unrolled(reading_of(ring), pole);
  if (!whole->IsValid()) whole.reset(whole->MakeValid());
  if (!whole) return nullptr;
  OGREnvelope box;
  whole->getEnvelope(&box);
  Geometry pieces = std::make_unique<OGRMultiPolygon>();
  const int last = static_cast<int>(std::ceil((box.MaxX - kHalf) / kTurn));
  for (int turn = static_cast<int>(std::floor((box.MinX + kHalf) / kTurn)); turn <= last; ++turn) {
    Geometry piece(whole->Intersection(strip_of(turn).get()));
    if (!piece) return nullptr;
    Shift shift(-kTurn * turn);
    piece->accept(&shift);
    pieces = either(std::move(pieces), std::move(piece));
  }
  return pieces;
}

}  // namespace

bool crosses_antimeridian(const OGRPolygon& polygon) {
  return std::any_of(polygon.begin(), polygon.end(),
                     [](const OGRLinearRing* ring) { return reading_of(*ring).crosses(); });
}

std::unique_ptr<OGRGeometry> cut_at_antimeridian(const OGRPolygon& polygon) {
  const OGRLinearRing& shell = *polygon.getExteriorRing();
  double latitudes = 0;
  for (int i = 0; i < shell.getNumPoints(); ++i) latitudes += shell.getY(i);
  const double pole = latitudes < 0 ? -kPole : kPole;
  Geometry pieces = std::make_unique<OGRMultiPolygon>();
  for (const OGRLinearRing* ring : polygon) pieces = either(std::move(pieces), enclosed(*ring, pole));
  return pieces;
}

}  // namespace vicinal::gdal
