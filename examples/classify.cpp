// Classification in three lines: the neighbors of each query, then their vote.
#include <iostream>
#include <vicinal/vicinal.hpp>

int main() {
  namespace vc = vicinal;
  const auto ctx = vc::Context::automatic();
  const vc::Generated train = vc::generate(ctx, {.rows = 2000, .cols = 8, .centers = 4, .seed = 1});
  const vc::TableView table{train.points.data(), train.rows, train.cols};
  const vc::TableView queries = table.slice(0, 200);

  const vc::Labels labels = vc::encode_labels(train.labels);
  const auto graph = vc::knn(ctx, table, queries, {.k = 5});
  const auto vote = vc::vote(ctx, graph, labels, {.probabilities = true});

  std::int64_t right = 0;
  for (std::int64_t i = 0; i < graph.rows; ++i) right += vote.codes[i] == labels.codes[i];
  std::cout << right << " of " << graph.rows << " queries got the label of their own cluster\n";
  std::cout << "query 0: class " << labels.name_of(vote.codes[0]) << ", probability "
            << vote.probabilities[vote.codes[0]] << '\n';
  return right > graph.rows / 2 ? 0 : 1;
}
