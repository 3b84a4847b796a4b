// The subcommands of `vicinal`; run_vicinal.cpp lists them all.
#pragma once

#include "base/command.hpp"

namespace vicinal::cli {

Command add_knn(const Parser& root);
Command add_radius(const Parser& root);
Command add_merge(const Parser& root);
Command add_classify(const Parser& root);
Command add_regress(const Parser& root);
Command add_kmeans(const Parser& root);
Command add_dbscan(const Parser& root);
Command add_hdbscan(const Parser& root);
Command add_optics(const Parser& root);
Command add_spanning_tree(const Parser& root);
Command add_lof(const Parser& root);
Command add_lle(const Parser& root);
Command add_match(const Parser& root);
Command add_cocluster(const Parser& root);
Command add_convert(const Parser& root);
Command add_impute(const Parser& root);
Command add_info(const Parser& root);
Command add_doctor(const Parser& root);
Command add_generate(const Parser& root);
Command add_completion(const Parser& root);

}  // namespace vicinal::cli
