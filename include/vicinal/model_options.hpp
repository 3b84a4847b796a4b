// ModelOptions: what a caller says before a saved model or index is loaded.
#pragma once

namespace vicinal {

struct ModelOptions {
  /// Load a model even where its rows were prepared (`preparation` in the model): queries must then be prepared in the
  /// same way by the caller, because the library compares rows as they are.
  bool allow_prepared = false;
};

}  // namespace vicinal
