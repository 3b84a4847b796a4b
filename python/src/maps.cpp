// overlaps and match, of polygons as flat arrays.
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// (points, rings, parts, features) of vicinal.Polygons, borrowed for the call.
PolygonsView polygons_of(Call& call, const std::string& name, nb::handle value) {
  const nb::tuple arrays = nb::cast<nb::tuple>(value);
  const auto named = [&](const char* part) { return name + "." + part; };
  return {call.numbers(named("points").c_str(), arrays[0]), call.integers(named("rings").c_str(), arrays[1]),
          call.integers(named("parts").c_str(), arrays[2]), call.integers(named("features").c_str(), arrays[3])};
}

/// The words of an enumeration's values, one for each of them.
template <class Struct, class Enum>
nb::list words_of(const std::vector<Struct>& structs, Enum Struct::*member) {
  nb::list words;
  for (const Struct& one : structs) {
    const std::string_view text = name_of(one.*member);
    words.append(nb::str(text.data(), text.size()));
  }
  return words;
}

nb::object overlaps_call(nb::handle a, nb::handle b, nb::dict keywords) {
  Call call("overlaps", std::move(keywords));
  const auto options = call.options(overlap_fields());
  call.refuse_others();
  const PolygonsView left = polygons_of(call, "a", a);
  const PolygonsView right = polygons_of(call, "b", b);
  auto result = std::make_shared<Overlaps>();
  call.run([&](const Context& ctx) { *result = overlaps(ctx, left, right, options); });
  return Answer(call, std::shared_ptr<const Overlaps>(result))
      .column("a", result->pairs, &Overlap::a)
      .column("b", result->pairs, &Overlap::b)
      .value("relation", words_of(result->pairs, &Overlap::relation))
      .column("area", result->pairs, &Overlap::area)
      .column("width", result->pairs, &Overlap::width)
      .array("areas_a", result->areas_a)
      .array("areas_b", result->areas_b)
      .value("candidates", result->candidates)
      .done();
}

/// The members of structs of structs, which no stride reaches by a pointer to a member of the outer one.
template <class T>
nb::object pair_column(const Match& match, T Overlap::*member) {
  std::vector<T> values;
  values.reserve(match.pairs.size());
  for (const MatchPair& pair : match.pairs) values.push_back(pair.overlap.*member);
  const auto size = static_cast<std::int64_t>(values.size());
  return array_of(std::move(values), {size});
}

nb::object features_of(const Call& call, const std::shared_ptr<const Match>& match,
                       std::vector<MatchFeature> Match::*side) {
  const auto& features = (*match).*side;
  return Answer(call, match)
      .column("area", features, &MatchFeature::area)
      .column("group", features, &MatchFeature::group)
      .column("best", features, &MatchFeature::best)
      .column("hub", features, &MatchFeature::hub)
      .done();
}

nb::object match_call(nb::handle a, nb::handle b, nb::dict keywords) {
  Call call("match", std::move(keywords));
  const auto options = call.options(match_fields());
  call.refuse_others();
  const PolygonsView left = polygons_of(call, "a", a);
  const PolygonsView right = polygons_of(call, "b", b);
  auto matched = std::make_shared<Match>();
  call.run([&](const Context& ctx) { *matched = match(ctx, left, right, options); });
  const std::shared_ptr<const Match> result = matched;
  const auto pairs = Answer(call, result)
                         .value("a", pair_column(*result, &Overlap::a))
                         .value("b", pair_column(*result, &Overlap::b))
                         .value("area", pair_column(*result, &Overlap::area))
                         .value("width", pair_column(*result, &Overlap::width))
                         .column("share_a", result->pairs, &MatchPair::share_a)
                         .column("share_b", result->pairs, &MatchPair::share_b)
                         .column("iou", result->pairs, &MatchPair::iou)
                         .column("kept", result->pairs, &MatchPair::kept)
                         .column("doubtful", result->pairs, &MatchPair::doubtful)
                         .column("group", result->pairs, &MatchPair::group)
                         .column("cut", result->pairs, &MatchPair::cut)
                         .column("sliver", result->pairs, &MatchPair::sliver)
                         .done();
  const auto groups = Answer(call, result)
                          .column("count_a", result->groups, &MatchGroup::count_a)
                          .column("count_b", result->groups, &MatchGroup::count_b)
                          .value("type", words_of(result->groups, &MatchGroup::type))
                          .value("change", words_of(result->groups, &MatchGroup::change))
                          .column("area_a", result->groups, &MatchGroup::area_a)
                          .column("area_b", result->groups, &MatchGroup::area_b)
                          .column("shared", result->groups, &MatchGroup::shared)
                          .column("iou", result->groups, &MatchGroup::iou)
                          .column("coherence", result->groups, &MatchGroup::coherence)
                          .column("overlaps_itself", result->groups, &MatchGroup::overlaps_itself)
                          .done();
  return Answer(call, result)
      .value("pairs", pairs)
      .value("a", features_of(call, result, &Match::a))
      .value("b", features_of(call, result, &Match::b))
      .value("groups", groups)
      .value("candidates", result->candidates)
      .value("split_groups", result->split_groups)
      .value("threshold", result->options.threshold)
      .done();
}

}  // namespace

void bind_maps(nb::module_& module) {
  module.def("overlaps", &overlaps_call, any("a"), any("b"), nb::arg("keywords"));
  module.def("match", &match_call, any("a"), any("b"), nb::arg("keywords"));
}

}  // namespace vicinal::python
