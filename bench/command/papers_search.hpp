// The papers' tables of nearest neighbors:
//   gs          Liu, Zheng and Liu 2019: time against k at m = 1200, n = 16384, d = 32 (where do their two selections
//               cross?); n = 2^10 to 2^15 and d to 256 at k = 25, beside Garcia's brute force.
//   lof         Tian, Hua and Lu 2015: 20,000 rows and 5,000 queries of KDD Cup 99, Poker and Covertype, k = 20 to 100,
//               with the rates of distances (3 m n d operations) and of selection (m n keys); then the whole job, from
//               the rows to the scores of the queries. Real rows come from --data-dir (bench/data/papers.py writes
//               them), else synthetic ones of the same shape are generated.
//   lle-search  Li, Yan and Zhang 2021: 9 neighbors within a table, 2048 rows of ever more columns, ever more rows
//   of 16.
#pragma once

#include "command/papers.hpp"

namespace vicinal::cli {

PapersPart measure_papers_gs(const PapersOptions& options);
PapersPart measure_papers_lof(const PapersOptions& options);
PapersPart measure_papers_lle_search(const PapersOptions& options);

}  // namespace vicinal::cli
