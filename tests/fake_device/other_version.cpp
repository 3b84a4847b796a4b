// A plug-in of another interface version, for the tests of the loader.
#include "plugin/abi/plugin.hpp"

extern "C" __attribute__((visibility("default"))) const vicinal::plugin::Functions* vicinal_cuda_plugin() {
  static const vicinal::plugin::Functions kFunctions = [] {
    vicinal::plugin::Functions functions;
    functions.version = vicinal::plugin::kPluginVersion + 1;
    return functions;
  }();
  return &kFunctions;
}
