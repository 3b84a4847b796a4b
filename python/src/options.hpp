// The fields of the library's option structs: all that Python knows of names, types and defaults.
#pragma once

#include <nanobind/nanobind.h>

#include "settings.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::python {

/// What a NeighborModel is made with.
struct ModelOptions {
  std::int64_t k = 5;
  double radius = 0;
  Metric metric = Metric::euclidean;
  double p = 2;
  Weighting weights = Weighting::uniform;
  Scaling scaling = Scaling::none;
  TextCodes texts = TextCodes::ordinal;
};

/// A function's own keywords beside those of these structs are read where it is bound.
const Fields<KnnOptions>& knn_fields();
/// Of lists that must all have k neighbors: votes and means take no others.
const Fields<KnnOptions>& nearest_fields();
const Fields<RadiusOptions>& radius_fields();
const Fields<IndexOptions>& index_fields();
const Fields<VoteOptions>& vote_fields();
const Fields<RegressOptions>& regress_fields();
const Fields<CrossValidateOptions>& cross_validate_fields();
const Fields<ModelOptions>& model_fields(bool by_radius);
const Fields<LofOptions>& lof_fields();
const Fields<KMeansOptions>& kmeans_fields();
const Fields<SpanningTreeOptions>& spanning_tree_fields();
const Fields<HdbscanOptions>& hdbscan_fields();
const Fields<DbscanOptions>& dbscan_fields();
const Fields<OpticsOptions>& optics_fields();
const Fields<OpticsXiOptions>& optics_xi_fields();
const Fields<ValidityOptions>& validity_fields();
const Fields<LleOptions>& lle_fields();
const Fields<LlePiece>& lle_piece_fields();
const Fields<CoclusterOptions>& cocluster_fields();
const Fields<SpectralOptions>& spectral_fields();
const Fields<OverlapOptions>& overlap_fields();
const Fields<MatchOptions>& match_fields();
const Fields<GenerateOptions>& generate_fields();
const Fields<ReadOptions>& read_fields();
const Fields<WriteOptions>& write_fields();

/// {struct: {keyword: default}}, None where it depends on the call.
nanobind::dict defaults();

}  // namespace vicinal::python
