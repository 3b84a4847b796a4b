// The names of the public enums, spelled the same in C++, in the command and in files.
#include "core/names.hpp"

#include "core/isa.hpp"
#include "vicinal/context.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<Metric>, 8> kMetrics = {{
    {Metric::euclidean, "euclidean"},
    {Metric::sqeuclidean, "sqeuclidean"},
    {Metric::inner_product, "inner_product"},
    {Metric::cosine, "cosine"},
    {Metric::manhattan, "manhattan"},
    {Metric::chebyshev, "chebyshev"},
    {Metric::minkowski, "minkowski"},
    {Metric::hamming, "hamming"},
}};

constexpr std::array<core::Named<Method>, 11> kMethods = {{
    {Method::automatic, "automatic"},
    {Method::fused, "fused"},
    {Method::direct, "direct"},
    {Method::kdtree, "kdtree"},
    {Method::product_kmin, "product_kmin"},
    {Method::product_bitonic, "product_bitonic"},
    {Method::product_timed, "product_timed"},
    {Method::direct_filter, "direct_filter"},
    {Method::tiled_insertion, "tiled_insertion"},
    {Method::insertion, "insertion"},
    {Method::block_heap, "block_heap"},
}};

constexpr std::array<core::Named<ScreenType>, 4> kScreens = {{
    {ScreenType::automatic, "automatic"},
    {ScreenType::float32, "float32"},
    {ScreenType::bfloat16, "bfloat16"},
    {ScreenType::int8, "int8"},
}};

constexpr std::array<core::Named<RadiusOrder>, 2> kRadiusOrders = {{
    {RadiusOrder::key, "key"},
    {RadiusOrder::id, "id"},
}};

constexpr std::array<core::Named<Packing>, 3> kPackings = {{
    {Packing::automatic, "automatic"},
    {Packing::never, "never"},
    {Packing::now, "now"},
}};

constexpr std::array<core::Named<PartKind>, 3> kPartKinds = {{
    {PartKind::knn, "knn"},
    {PartKind::radius, "radius"},
    {PartKind::count, "count"},
}};

constexpr std::array<core::Named<Isa>, 4> kIsas = {{
    {Isa::automatic, "automatic"},
    {Isa::baseline, "baseline"},
    {Isa::avx2, "avx2"},
    {Isa::avx512, "avx512"},
}};

constexpr std::array<core::Named<DType>, 5> kDTypes = {{
    {DType::uint8, "uint8"},
    {DType::float16, "float16"},
    {DType::bfloat16, "bfloat16"},
    {DType::float32, "float32"},
    {DType::float64, "float64"},
}};

constexpr std::array<core::Named<Shape>, 7> kShapes = {{
    {Shape::swiss_roll, "swiss_roll"},
    {Shape::s_curve, "s_curve"},
    {Shape::blobs, "blobs"},
    {Shape::moons, "moons"},
    {Shape::kdd, "kdd"},
    {Shape::poker, "poker"},
    {Shape::covertype, "covertype"},
}};

}  // namespace

std::string_view name_of(Metric metric) noexcept {
  return core::name_in(kMetrics, metric);
}
std::string_view name_of(Method method) noexcept {
  return core::name_in(kMethods, method);
}
std::string_view name_of(ScreenType screen) noexcept {
  return core::name_in(kScreens, screen);
}
std::string_view name_of(RadiusOrder order) noexcept {
  return core::name_in(kRadiusOrders, order);
}
std::string_view name_of(Packing packing) noexcept {
  return core::name_in(kPackings, packing);
}
std::string_view name_of(PartKind kind) noexcept {
  return core::name_in(kPartKinds, kind);
}
std::string_view name_of(Isa isa) noexcept {
  return core::name_in(kIsas, isa);
}
std::string_view name_of(DType dtype) noexcept {
  return core::name_in(kDTypes, dtype);
}
std::string_view name_of(Shape shape) noexcept {
  return core::name_in(kShapes, shape);
}

Metric metric_from(std::string_view name) {
  return core::value_in(kMetrics, "metric", name);
}
Method method_from(std::string_view name) {
  return core::value_in(kMethods, "method", name);
}
ScreenType screen_from(std::string_view name) {
  return core::value_in(kScreens, "screen", name);
}
RadiusOrder radius_order_from(std::string_view name) {
  return core::value_in(kRadiusOrders, "order", name);
}
Packing packing_from(std::string_view name) {
  return core::value_in(kPackings, "packed", name);
}
PartKind part_kind_from(std::string_view name) {
  return core::value_in(kPartKinds, "kind of part", name);
}
Shape shape_from(std::string_view name) {
  return core::value_in(kShapes, "shape", name);
}
Isa core::isa_from(std::string_view name) {
  return value_in(kIsas, "instruction set", name);
}

}  // namespace vicinal
