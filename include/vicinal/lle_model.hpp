// LleModel: all that it takes to place other rows in an embedding made before, in one file.
#pragma once

#include <filesystem>
#include <string>

#include "vicinal/context.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/model_options.hpp"

namespace vicinal {

struct VICINAL_API LleModel {
  Index index;  ///< of the table that was embedded
  Lle fitted;   ///< embedding, pieces with their rows and singular values, their sum and the options that `transform`
                ///< asks for are saved
  std::string notes = {};  ///< what else the caller wants to find again: UTF-8, up to some MB
  /// What was done to the columns before the rows came here (say, "--scale standard"), in a few words, UTF-8; empty:
  /// nothing. The library does not do it to queries, so that `load` refuses such a model unless it is allowed to.
  std::string preparation = {};

  /// Writes the file (safetensors layout; its table is the one embedded), to a temporary first, then renamed. Throws
  /// `invalid_argument` for an embedding of another table or one that is not finite, `io` when the file cannot be
  /// written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Maps a saved model. Throws `bad_data` for anything that `save` did not write, `invalid_argument` for one with a
  /// `preparation`, unless the options allow it.
  static LleModel load(const Context& ctx, const std::filesystem::path& path, const ModelOptions& options = {});
};

}  // namespace vicinal
