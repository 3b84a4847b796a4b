// The command `vicinal`.
#include "base/program.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  using namespace vicinal::cli;
  return run_program(
      {"vicinal",
       "Exact nearest-neighbor machine learning: search, classification, clustering, outliers, embeddings, maps",
       {"vicinal generate blobs -n 300 --seed 1 -o blobs.npy", "vicinal knn train.npy test.npy -k 5 -o graph.npz",
        "vicinal classify train.csv test.csv --label class -k 5 -o labels.csv"},
       {add_knn, add_radius, add_merge, add_classify, add_regress, add_kmeans, add_lof, add_lle, add_match,
        add_cocluster, add_convert, add_impute, add_info, add_doctor, add_generate, add_completion}},
      argc, argv);
}
