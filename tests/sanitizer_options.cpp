// Options of the sanitizers' runtimes, which ask the executables of the tests for them.

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* __asan_default_options();
EXPORTED const char* __tsan_default_options();

// Of a shared object that is loaded later, such as the fake device, GCC's runtimes guess from the bytes before its
// thread-local variables how many there are. Where these begin 16 bytes into a page, the number is wrong, and the
// process ends. intercept_tls_get_addr=0: no guess.
const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}
// ThreadSanitizer by default ends a child that starts threads after the fork of a threaded process.
const char* __tsan_default_options() {
  return "intercept_tls_get_addr=0:die_after_fork=0";
}
