// Tables whose rows are divided among the ranks of a Communicator: each rank calls the same function with its own rows
// and gets what the function of the whole table gives, with the same bits (docs/contract.md, clauses 4 and 12;
// docs/scale.md).
//
// Every rank has at least one row, and a context of its own: ranks of one host should share its cores and memory by
// CpuOptions. All of them pass the same options; weights are those of the rank's rows.
//
// Ranks fail together. If one of them finds something wrong (NaN, too little memory, a cancel), all throw its error,
// with the same sentence: "rank 2: table: row 1017, column 3 is not a finite number". Rows in sentences are those of the
// whole table. After an error of the options or the data the communicator can be used again. A cancel of one rank ends
// all of them as soon as the phase is over in which they are; a cancel of all ends them within 100 ms.
#pragma once

#include <cstdint>

#include "vicinal/communicator.hpp"
#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// `kmeans` of the whole table. `shard` [rows, d] has the rows from `first_row` on, after those of the lower ranks.
/// Labels [rows] are those of the shard; centres, sizes, inertia, history and iterations are those of the whole table
/// and the same on every rank, as are the counters of `stats`. The plan is the rank's own. Contexts are of the CPU.
///
/// Each rank sends 8 (k (1 + w + d l) + k + 1) bytes an iteration and 8 for each vote: l = 2 or 3 integers for most
/// data hold a sum, and w, 0 without weights, a weight. Seeding by k-means++ takes k rounds of few bytes; k-means|| takes
/// about 6. Memory as `kmeans` of the shard, and O(k d l). Time of an iteration as `kmeans` of the largest shard.
///
/// Throws as `kmeans`, and `invalid_argument` for options that differ between ranks, a `first_row` that is not the
/// number of rows before, and mini-batches; `device_unavailable` for a context of a device; `io` as Communicator.
VICINAL_API KMeans kmeans(const Context& ctx, Communicator& communicator, const TableView& shard,
                          std::int64_t first_row, const KMeansOptions& options);

}  // namespace vicinal
