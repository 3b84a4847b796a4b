// Words: the texts by which Python names the library's enumerators, the same as the command's.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "vicinal/vicinal.hpp"

namespace vicinal::python {

// The second argument only says which enumeration is meant.
inline Metric from_text(std::string_view text, Metric) {
  return metric_from(text);
}
inline Method from_text(std::string_view text, Method) {
  return method_from(text);
}
inline ScreenType from_text(std::string_view text, ScreenType) {
  return screen_from(text);
}
inline Plugin from_text(std::string_view text, Plugin) {
  return plugin_from(text);
}
inline Packing from_text(std::string_view text, Packing) {
  return packing_from(text);
}
inline RadiusOrder from_text(std::string_view text, RadiusOrder) {
  return radius_order_from(text);
}
inline KMeansInit from_text(std::string_view text, KMeansInit) {
  return kmeans_init_from(text);
}
inline LleVariant from_text(std::string_view text, LleVariant) {
  return lle_variant_from(text);
}
inline LleSolver from_text(std::string_view text, LleSolver) {
  return lle_solver_from(text);
}
inline LlePieces from_text(std::string_view text, LlePieces) {
  return lle_pieces_from(text);
}
inline OutlierScore from_text(std::string_view text, OutlierScore) {
  return outlier_score_from(text);
}
inline Duplicates from_text(std::string_view text, Duplicates) {
  return duplicates_from(text);
}
inline Ties from_text(std::string_view text, Ties) {
  return ties_from(text);
}
inline AcrossK from_text(std::string_view text, AcrossK) {
  return across_k_from(text);
}
inline ClusterSelection from_text(std::string_view text, ClusterSelection) {
  return cluster_selection_from(text);
}
inline CoclusterMethod from_text(std::string_view text, CoclusterMethod) {
  return cocluster_method_from(text);
}
inline EdgeRule from_text(std::string_view text, EdgeRule) {
  return edge_rule_from(text);
}
inline Shape from_text(std::string_view text, Shape) {
  return shape_from(text);
}
inline Symmetry from_text(std::string_view text, Symmetry) {
  return symmetry_from(text);
}
inline FileFormat from_text(std::string_view text, FileFormat) {
  return file_format_from(text);
}
inline Scaling from_text(std::string_view text, Scaling) {
  return scaling_from(text);
}
inline TextCodes from_text(std::string_view text, TextCodes) {
  return text_codes_from(text);
}
// Those that the library does not name, or has no inverse of the name of.
LleCount from_text(std::string_view text, LleCount);
KMeansRule from_text(std::string_view text, KMeansRule);
EmptyClusters from_text(std::string_view text, EmptyClusters);
Agreement from_text(std::string_view text, Agreement);
Weighting from_text(std::string_view text, Weighting);

std::string_view word_of(KMeansRule rule);
std::string_view word_of(EmptyClusters empty);
std::string_view word_of(Agreement agreement);
std::string_view word_of(Weighting weights);
template <class Enum>
requires requires(Enum value) {
  name_of(value);
}
std::string_view word_of(Enum value) {
  return name_of(value);
}

template <class Enum>
concept Words = std::is_enum_v<Enum> && requires(std::string_view text, Enum value) {
  { from_text(text, value) } -> std::same_as<Enum>;
};

}  // namespace vicinal::python
