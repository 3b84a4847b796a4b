// The file of a saved index: one safetensors file, so that other programs can read the table and its groups too. A
// model that needs an index to answer puts its own arrays into the same file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/nearest.hpp"
#include "io/bytes.hpp"
#include "ops/nearest/tensor_file.hpp"

namespace vicinal::ops {

inline constexpr FileKind kIndexFile = {"index", "an index of vicinal", "vicinal-index", 1 << 16, false};

inline constexpr FileKind kNeighborFile = {"model", "a model of vicinal classify or regress", "vicinal-neighbors",
                                           1 << 24, true};

inline constexpr FileKind kEmbeddingFile = {"model", "a model of vicinal lle", "vicinal-embedding", 1 << 24, true};

inline constexpr FileKind kDensityFile = {"model", "a model of vicinal hdbscan", "vicinal-density", 1 << 24, true};

inline constexpr FileKind kClusterFile = {"model", "a model of vicinal kmeans", "vicinal-clusters", 1 << 24, true};

/// An array beyond those of an index; borrowed.
struct ModelArray {
  std::string name;
  std::string dtype;                ///< "F64" or "I64"
  std::vector<std::int64_t> shape;  ///< one or two numbers above 0
  const void* data = nullptr;
};

/// What a model has beside its index.
struct ModelParts {
  std::map<std::string, std::string> metadata;  ///< UTF-8
  std::vector<ModelArray> arrays;               ///< sorted by name
};

/// Writes an index, whole or not at all. A block source is streamed: O(block) memory. Throws `invalid_argument` for
/// metadata that are not UTF-8 or do not fit the header.
void write_index(const Context& ctx, const std::filesystem::path& path, const kernels::Prepared& index,
                 const FileKind& kind = kIndexFile, const ModelParts& parts = {});

/// Maps a file that `write_index` wrote; the table borrows from the mapping (`storage`), and so do the arrays of
/// `parts`. Throws `bad_data` naming the file for any other. O(file) time, O(n + d) memory.
kernels::Prepared read_index(const Context& ctx, const std::filesystem::path& path, const FileKind& kind = kIndexFile,
                             ModelParts* parts = nullptr);
/// The same of a file's bytes; `path` is for sentences.
kernels::Prepared read_index(const Context& ctx, const io::Bytes& bytes, const std::filesystem::path& path,
                             const FileKind& kind = kIndexFile, ModelParts* parts = nullptr);

/// `read_index`, and what is said of the table is compared with it (index_check.hpp).
std::shared_ptr<const kernels::Prepared> load_index(const Context& ctx, const std::filesystem::path& path,
                                                    const FileKind& kind, ModelParts* parts = nullptr);

}  // namespace vicinal::ops
