#!/bin/sh
# Matching against what agencies say themselves, and its time beside GeoPandas: the JSON files that docs/matching.md
# quotes. Run it from the repository's root on a quiet machine, after a release build.
# VICINAL: the command of a build tree, whose bench/vicinal-bench is taken. DATA: the folder of maps.
# Usage: bench/matching.sh VICINAL DATA OUT MACHINE COMMIT [PYTHON]
# PYTHON: one with the packages of bench/peers/requirements-match.txt; without it GeoPandas is left out.
set -eu
vicinal=$(realpath "$1") data=$2 out=$(realpath "$3") machine=$4 commit=$5 python=${6:+$(realpath -s "$6")}
bench=$(realpath "$(dirname "$vicinal")/../bench/vicinal-bench")
peers=$(realpath "$(dirname "$0")/peers")
cd "$data" # so that results name files, not folders
tracts=nyc_tracts parcels=cambridge_ma/ASSESSING_ParcelsFY world=natural_earth/countries
name() { echo "$out/match-$1-$machine-$(date -u +%F)-$commit.json"; }

official() {
  job=$1
  shift
  "$bench" match "$tracts/nyc_tracts_2010.gpkg" "$tracts/nyc_tracts_2020.gpkg" --id GEOID --repeat 5 \
    --commit "$commit" --truth-old GEOID_TRACT_10 --truth-new GEOID_TRACT_20 -o "$(name "$job")" "$@"
}
relationship=$tracts/tract20_10_nyc.csv
land="--truth $relationship --truth-weight AREALAND_PART --truth-above 0"
# Word splitting is meant.
official nyc-any-land $land
official nyc-any-land-threshold $land --threshold 0.05
official nyc-any-land-width $land --threshold 0.02 --width 25
# Columns of the relationship file: 0 GEOID_TRACT_20, 1 its land, 3 GEOID_TRACT_10, 4 its land, 6 the land of both.
awk -F, 'NR == 1 { print "GEOID_TRACT_10,GEOID_TRACT_20"; next }
         { least = $2 < $5 ? $2 : $5; if ($7 > 0.05 * least) print $4 "," $1 }' "$relationship" > "$out/truth-5-percent.csv"
official nyc-5-percent --truth "$out/truth-5-percent.csv"
rm "$out/truth-5-percent.csv"
"$bench" match "${parcels}2013.topojson" "${parcels}2014.topojson" --crs EPSG:4326 --id ML --same-id --repeat 5 \
  --commit "$commit" -o "$(name parcels)"
"$bench" match "$world-10m.json" "$world-50m.json" --crs EPSG:4326 --layer countries --id id --same-id \
  --repeat 5 --commit "$commit" -o "$(name countries)"
"$bench" match --buildings 1000000 --repeat 3 --commit "$commit" -o "$(name buildings-1m)"

if [ -n "$python" ]; then
  peer() {
    job=$1
    shift
    "$python" "$peers/match.py" "$vicinal" "$@" --repeat 7 --machine "$machine" --commit "$commit" \
      -o "$(name "geopandas-$job")"
  }
  peer nyc "$tracts/nyc_tracts_2010.gpkg" "$tracts/nyc_tracts_2020.gpkg"
  peer blocks "cambridge_ma/DEMOGRAPHICS_Blocks2010.geojson" "cambridge_ma/DEMOGRAPHICS_Blocks2020.geojson"
  peer parcels "${parcels}2013.topojson" "${parcels}2014.topojson" --crs EPSG:4326
fi
