// See run_vicinal.hpp: the list of subcommands.
#include "run_vicinal.hpp"

#include "base/program.hpp"
#include "commands.hpp"

namespace vicinal::cli {

int run_vicinal(int argc, char** argv) {
  return run_program(
      {"vicinal",
       "Exact nearest-neighbor machine learning: search, classification, clustering, outliers, embeddings, maps",
       {"vicinal generate blobs -n 300 --seed 1 -o blobs.npy", "vicinal knn train.npy test.npy -k 5 -o graph.npz",
        "vicinal classify train.csv test.csv --label class -k 5 -o labels.csv"},
       {add_knn,     add_radius, add_merge,         add_classify, add_regress,  add_kmeans,    add_dbscan,
        add_hdbscan, add_optics, add_spanning_tree, add_lof,      add_lle,      add_match,     add_cocluster,
        add_convert, add_impute, add_info,          add_doctor,   add_generate, add_completion}},
      argc, argv);
}

}  // namespace vicinal::cli
