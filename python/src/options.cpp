#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Those of `weights` and `filter`, which every struct that has them calls alike.
template <class Options>
Field<Options> weights_field() {
  return {"weights",
          [](Options& options, const Setting& setting) {
            if constexpr (requires { options.given; }) {
              setting.read_weights(options.weights, options.custom, options.given);
            } else {
              setting.read_weights(options.weights, options.custom);
            }
          },
          [](const Options& options) { return shown(options.weights); }};
}
template <class Options>
Field<Options> filter_field() {
  return {"filter", [](Options& options, const Setting& setting) { setting.read_filter(options.filter); },
          [](const Options&) -> nb::object { return nb::none(); }};
}

/// One radius, or one for each query.
Field<RadiusOptions> radius_field() {
  return {"radius",
          [](RadiusOptions& options, const Setting& setting) {
            if (!setting.is_array()) return setting.read(options.radius);
            setting.read(options.radii);
            if (!options.radii.empty()) return;
            throw Error(ErrorCode::invalid_argument, "radius: is empty; give one number, or one for each query");
          },
          [](const RadiusOptions& options) { return shown(options.radius); }};
}

/// Limits of groups are a struct within the options.
template <std::int64_t SplitOptions::*Member>
Field<MatchOptions> split_field(const char* name) {
  return {name, [](MatchOptions& options, const Setting& setting) { setting.read(options.split.*Member); },
          [](const MatchOptions& options) { return shown(options.split.*Member); }};
}

template <class Options>
nb::dict defaults_of(const Fields<Options>& fields) {
  return dict_of(fields, Options{});
}

}  // namespace

const Fields<KnnOptions>& nearest_fields() {
  static const Fields<KnnOptions> fields = {field<&KnnOptions::k>("k"),
                                            field<&KnnOptions::metric>("metric"),
                                            field<&KnnOptions::p>("p"),
                                            field<&KnnOptions::method>("method"),
                                            field<&KnnOptions::screen>("screen"),
                                            filter_field<KnnOptions>(),
                                            field<&KnnOptions::exclude>("exclude")};
  return fields;
}

const Fields<KnnOptions>& knn_fields() {
  static const Fields<KnnOptions> fields = [] {
    Fields<KnnOptions> all = nearest_fields();
    all.push_back(field<&KnnOptions::max_radius>("max_radius"));
    return all;
  }();
  return fields;
}

const Fields<RadiusOptions>& radius_fields() {
  static const Fields<RadiusOptions> fields = {radius_field(),
                                               field<&RadiusOptions::metric>("metric"),
                                               field<&RadiusOptions::p>("p"),
                                               field<&RadiusOptions::method>("method"),
                                               field<&RadiusOptions::screen>("screen"),
                                               filter_field<RadiusOptions>(),
                                               field<&RadiusOptions::exclude>("exclude"),
                                               field<&RadiusOptions::order>("order")};
  return fields;
}

const Fields<IndexOptions>& index_fields() {
  static const Fields<IndexOptions> fields = {field<&IndexOptions::copy>("copy"), field<&IndexOptions::tree>("tree"),
                                              field<&IndexOptions::packed>("packed"),
                                              field<&IndexOptions::pruned>("pruned")};
  return fields;
}

const Fields<VoteOptions>& vote_fields() {
  static const Fields<VoteOptions> fields = {weights_field<VoteOptions>(),
                                             field<&VoteOptions::probabilities>("probabilities")};
  return fields;
}

const Fields<RegressOptions>& regress_fields() {
  static const Fields<RegressOptions> fields = {weights_field<RegressOptions>(),
                                                field<&RegressOptions::outlier>("outlier")};
  return fields;
}

const Fields<CrossValidateOptions>& cross_validate_fields() {
  using Options = CrossValidateOptions;
  static const Fields<Options> fields = {
      field<&Options::k>("k"),       field<&Options::k_to>("k_to"),     field<&Options::folds>("folds"),
      field<&Options::seed>("seed"), weights_field<Options>(),          field<&Options::metric>("metric"),
      field<&Options::p>("p"),       field<&Options::method>("method"), field<&Options::screen>("screen")};
  return fields;
}

const Fields<LofOptions>& lof_fields() {
  using Options = LofOptions;
  static const Fields<Options> fields = {
      field<&Options::k>("k"), field<&Options::k_to>("k_to"), field<&Options::across>("across"),
      field<&Options::score>("score"), field<&Options::duplicates>("duplicates"), field<&Options::ties>("ties"),
      // `lambda` is a word of Python's own.
      field<&Options::lambda>("lambda_"), field<&Options::contamination>("contamination"),
      field<&Options::novelty>("novelty"), field<&Options::metric>("metric"), field<&Options::p>("p"),
      field<&Options::method>("method")};
  return fields;
}

const Fields<KMeansOptions>& kmeans_fields() {
  using Options = KMeansOptions;
  static const Fields<Options> fields = {field<&Options::init>("init"),
                                         {"centres",
                                          [](Options& options, const Setting& setting) {
                                            setting.read_table(options.centres);
                                            options.init = KMeansInit::given;
                                            options.clusters = options.centres.rows();
                                          },
                                          [](const Options&) -> nb::object { return nb::none(); }},
                                         // Behind the centers, whose number it must then be.
                                         field<&Options::clusters>("clusters"),
                                         field<&Options::metric>("metric"),
                                         field<&Options::weights>("weights"),
                                         field<&Options::runs>("runs"),
                                         field<&Options::seed>("seed"),
                                         field<&Options::max_iterations>("max_iterations"),
                                         field<&Options::tolerance>("tolerance"),
                                         field<&Options::changed_share>("changed_share"),
                                         field<&Options::rule>("rule"),
                                         field<&Options::empty>("empty"),
                                         field<&Options::batch_size>("batch_size"),
                                         field<&Options::history>("history")};
  return fields;
}

const Fields<SpanningTreeOptions>& spanning_tree_fields() {
  using Options = SpanningTreeOptions;
  static const Fields<Options> fields = {field<&Options::min_samples>("min_samples"),
                                         field<&Options::count_self>("count_self"),
                                         field<&Options::alpha>("alpha"),
                                         field<&Options::metric>("metric"),
                                         field<&Options::p>("p"),
                                         field<&Options::method>("method")};
  return fields;
}

const Fields<HdbscanOptions>& hdbscan_fields() {
  using Options = HdbscanOptions;
  static const Fields<Options> fields = {field<&Options::min_cluster_size>("min_cluster_size"),
                                         field<&Options::min_samples>("min_samples"),
                                         field<&Options::count_self>("count_self"),
                                         field<&Options::alpha>("alpha"),
                                         field<&Options::selection>("selection"),
                                         field<&Options::epsilon>("epsilon"),
                                         field<&Options::max_cluster_size>("max_cluster_size"),
                                         field<&Options::allow_single_cluster>("allow_single_cluster"),
                                         field<&Options::metric>("metric"),
                                         field<&Options::p>("p"),
                                         field<&Options::method>("method")};
  return fields;
}

const Fields<DbscanOptions>& dbscan_fields() {
  using Options = DbscanOptions;
  static const Fields<Options> fields = {field<&Options::eps>("eps"),
                                         field<&Options::min_samples>("min_samples"),
                                         field<&Options::weights>("weights"),
                                         field<&Options::metric>("metric"),
                                         field<&Options::p>("p"),
                                         field<&Options::method>("method")};
  return fields;
}

const Fields<OpticsOptions>& optics_fields() {
  using Options = OpticsOptions;
  static const Fields<Options> fields = {field<&Options::min_samples>("min_samples"),
                                         field<&Options::max_eps>("max_eps"), field<&Options::metric>("metric"),
                                         field<&Options::p>("p"), field<&Options::method>("method")};
  return fields;
}

const Fields<OpticsXiOptions>& optics_xi_fields() {
  using Options = OpticsXiOptions;
  static const Fields<Options> fields = {field<&Options::xi>("xi"),
                                         field<&Options::min_cluster_size>("min_cluster_size"),
                                         field<&Options::predecessor_correction>("predecessor_correction")};
  return fields;
}

const Fields<ValidityOptions>& validity_fields() {
  using Options = ValidityOptions;
  static const Fields<Options> fields = {field<&Options::metric>("metric"), field<&Options::p>("p")};
  return fields;
}

const Fields<LleOptions>& lle_fields() {
  using Options = LleOptions;
  static const Fields<Options> fields = {
      field<&Options::k>("k"),           field<&Options::dim>("dim"),         field<&Options::variant>("variant"),
      field<&Options::reg>("reg"),       field<&Options::solver>("solver"),   field<&Options::max_steps>("max_steps"),
      field<&Options::pieces>("pieces"), field<&Options::certify>("certify"), field<&Options::metric>("metric"),
      field<&Options::p>("p"),           field<&Options::method>("method")};
  return fields;
}

const Fields<LlePiece>& lle_piece_fields() {
  static const Fields<LlePiece> fields = {field<&LlePiece::rows>("rows"),
                                          field<&LlePiece::placed>("placed"),
                                          field<&LlePiece::component>("component"),
                                          field<&LlePiece::closed_classes>("closed_classes"),
                                          field<&LlePiece::solver>("solver"),
                                          field<&LlePiece::singular_values>("singular_values"),
                                          field<&LlePiece::residuals>("residuals"),
                                          field<&LlePiece::angles>("angles"),
                                          field<&LlePiece::localization>("localization"),
                                          field<&LlePiece::next_singular_value>("next_singular_value"),
                                          field<&LlePiece::norm>("norm"),
                                          field<&LlePiece::zeros>("zeros"),
                                          field<&LlePiece::counted>("counted"),
                                          field<&LlePiece::count>("count"),
                                          field<&LlePiece::iterations>("iterations"),
                                          field<&LlePiece::fill>("fill"),
                                          field<&LlePiece::flops>("flops")};
  return fields;
}

const Fields<ModelOptions>& model_fields(bool by_radius) {
  using Options = ModelOptions;
  const auto fields_of = [](Field<Options> reach) {
    return Fields<Options>{reach,
                           field<&Options::metric>("metric"),
                           field<&Options::p>("p"),
                           field<&Options::weights>("weights"),
                           field<&Options::scaling>("scaling"),
                           field<&Options::texts>("texts")};
  };
  static const Fields<Options> nearest = fields_of(field<&Options::k>("k"));
  static const Fields<Options> within = fields_of(field<&Options::radius>("radius"));
  return by_radius ? within : nearest;
}

const Fields<CoclusterOptions>& cocluster_fields() {
  static const Fields<CoclusterOptions> fields = {field<&CoclusterOptions::method>("method")};
  return fields;
}

const Fields<SpectralOptions>& spectral_fields() {
  static const Fields<SpectralOptions> fields = {field<&SpectralOptions::clusters>("clusters"),
                                                 field<&SpectralOptions::seed>("seed"),
                                                 field<&SpectralOptions::runs>("runs")};
  return fields;
}

const Fields<OverlapOptions>& overlap_fields() {
  static const Fields<OverlapOptions> fields = {field<&OverlapOptions::widths>("widths")};
  return fields;
}

const Fields<MatchOptions>& match_fields() {
  using Options = MatchOptions;
  static const Fields<Options> fields = {field<&Options::rule>("rule"),
                                         field<&Options::threshold>("threshold"),
                                         field<&Options::min_width>("min_width"),
                                         field<&Options::sliver_width>("sliver_width"),
                                         field<&Options::unchanged_iou>("unchanged_iou"),
                                         field<&Options::widths>("widths"),
                                         field<&Options::max_partners>("max_partners"),
                                         field<&Options::max_area>("max_area"),
                                         field<&Options::agreement>("agreement"),
                                         field<&Options::codes_a>("codes_a"),
                                         field<&Options::codes_b>("codes_b"),
                                         split_field<&SplitOptions::max_members>("max_members"),
                                         split_field<&SplitOptions::max_steps>("max_steps")};
  return fields;
}

const Fields<GenerateOptions>& generate_fields() {
  using Options = GenerateOptions;
  static const Fields<Options> fields = {field<&Options::rows>("rows"), field<&Options::cols>("cols"),
                                         field<&Options::centers>("centers"), field<&Options::noise>("noise"),
                                         field<&Options::seed>("seed")};
  return fields;
}

const Fields<ReadOptions>& read_fields() {
  using Options = ReadOptions;
  static const Fields<Options> fields = {field<&Options::format>("format"),
                                         field<&Options::label>("label"),
                                         field<&Options::header>("header"),
                                         field<&Options::delimiter>("delimiter"),
                                         field<&Options::decimal>("decimal"),
                                         field<&Options::comment>("comment"),
                                         field<&Options::member>("member"),
                                         field<&Options::drop>("drop"),
                                         field<&Options::text>("text"),
                                         field<&Options::find_text>("find_text"),
                                         field<&Options::keep_index>("keep_index"),
                                         field<&Options::bfloat16>("bfloat16"),
                                         field<&Options::missing>("missing"),
                                         field<&Options::columns>("columns")};
  return fields;
}

const Fields<WriteOptions>& write_fields() {
  using Options = WriteOptions;
  static const Fields<Options> fields = {field<&Options::format>("format"), field<&Options::lossy>("lossy"),
                                         field<&Options::drop_labels>("drop_labels"),
                                         field<&Options::delimiter>("delimiter")};
  return fields;
}

nb::dict defaults() {
  nb::dict all;
  all["KnnOptions"] = defaults_of(knn_fields());
  all["NearestOptions"] = defaults_of(nearest_fields());
  all["RadiusOptions"] = defaults_of(radius_fields());
  all["IndexOptions"] = defaults_of(index_fields());
  all["VoteOptions"] = defaults_of(vote_fields());
  all["RegressOptions"] = defaults_of(regress_fields());
  all["CrossValidateOptions"] = defaults_of(cross_validate_fields());
  all["ModelOptions"] = defaults_of(model_fields(false));
  all["LofOptions"] = defaults_of(lof_fields());
  all["KMeansOptions"] = defaults_of(kmeans_fields());
  all["SpanningTreeOptions"] = defaults_of(spanning_tree_fields());
  all["HdbscanOptions"] = defaults_of(hdbscan_fields());
  all["DbscanOptions"] = defaults_of(dbscan_fields());
  all["OpticsOptions"] = defaults_of(optics_fields());
  all["OpticsXiOptions"] = defaults_of(optics_xi_fields());
  all["ValidityOptions"] = defaults_of(validity_fields());
  all["LleOptions"] = defaults_of(lle_fields());
  all["CoclusterOptions"] = defaults_of(cocluster_fields());
  all["SpectralOptions"] = defaults_of(spectral_fields());
  all["OverlapOptions"] = defaults_of(overlap_fields());
  all["MatchOptions"] = defaults_of(match_fields());
  all["GenerateOptions"] = defaults_of(generate_fields());
  all["ReadOptions"] = defaults_of(read_fields());
  all["WriteOptions"] = defaults_of(write_fields());
  return all;
}

}  // namespace vicinal::python
