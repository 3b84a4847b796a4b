// What a contract test knows of the sanitizer that watches the library (check.hpp).
#include "check.hpp"

namespace vicinal::contract {

#if defined(VICINAL_TEST_UNDER_ADDRESS_SANITIZER) || defined(VICINAL_TEST_UNDER_THREAD_SANITIZER)
const int kSparse = 7;
#else
const int kSparse = 1;
#endif

#if defined(VICINAL_TEST_UNDER_THREAD_SANITIZER)
const int kFewestThreads = 2;
#else
const int kFewestThreads = 1;
#endif

}  // namespace vicinal::contract
