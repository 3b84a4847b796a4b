// A shared object that is no plug-in, for the tests of the loader.
extern "C" __attribute__((visibility("default"))) int something_else() {
  return 0;
}
