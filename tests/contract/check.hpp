// One search, asked of the library in many ways and of the reference once: ids and distance bits must agree
// (contract clauses 1 to 5). A failure prints the whole case and the first (row, rank) that differs.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "data.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal {

// How a parameter of a test is printed.
inline void PrintTo(Metric metric, std::ostream* out) {
  *out << name_of(metric);
}
inline void PrintTo(DType dtype, std::ostream* out) {
  *out << name_of(dtype);
}

}  // namespace vicinal

namespace vicinal::contract {

inline void PrintTo(Family family, std::ostream* out) {
  *out << name_of(family);
}

enum class Filter : std::uint8_t { none, few, many };

/// A search and the data it is made on.
struct Case {
  Family family = Family::gaussian;
  Shape shape;
  std::uint64_t seed = 1;
  Metric metric = Metric::euclidean;
  double p = 2;
  DType dtype = DType::float32;
  DType query_dtype = DType::float32;
  Layout layout = Layout::contiguous;
  Layout query_layout = Layout::contiguous;
  bool self = false;  ///< queries are not used: the table is searched within itself
  Filter filter = Filter::none;
  bool exclude = false;  ///< one id a query, -1 for some
};
std::string describe(const Case& c);

/// Under a sanitizer, which makes everything ten times slower and looks for faults that do not depend on the values,
/// each metric and dtype meets every kSparse-th family, size, layout and filter, another one each, so that together
/// they still meet all.
/// (sanitizer.cpp)
extern const int kSparse;
/// The same of a test's `turn`-th case.
inline bool is_left_out(std::uint64_t turn) {
  return turn % kSparse != 0;
}
/// `few` under a sanitizer, else `many`: of rows, cases or thread counts. What is left out differs in its values alone
/// from what stays, in which every metric, dtype, method, screen and instruction set is met: preset `release` runs all.
template <class T>
T sanitized(T many, T few) {
  return kSparse > 1 ? few : many;
}

/// ThreadSanitizer looks for races, which one thread alone does not have: under it nothing is asked of fewer than two.
extern const int kFewestThreads;

/// How the library is asked: instruction set, threads, method; or on the CUDA device.
struct Way {
  Isa isa = Isa::baseline;
  int threads = 1;
  Method method = Method::automatic;
  ScreenType screen = ScreenType::automatic;  ///< of `fused`
  bool cuda = false;
};
std::string describe(const Way& way);

/// Four metrics are not inner products in disguise, and of three no box can bound the keys: asking for the fused method
/// or for a tree must be refused there (clause 9).
bool serves(Method method, Metric metric);
/// The papers' methods find k lists of tables in memory, and nothing else.
bool is_of_a_paper(Method method);

/// Instruction sets this machine has; those it lacks are printed once.
const std::vector<Isa>& available_isas();
/// Why nothing is asked of a CUDA device; empty: it is. VICINAL_TEST_DEVICE=cpu leaves the device out,
/// VICINAL_TEST_DEVICE=cuda everything else, and then a device that is missing fails every test.
const std::string& cuda_missing();
/// Contexts are made once a process. Of the CPU, unless VICINAL_TEST_DEVICE=cuda.
const Context& context_of(Isa isa, int threads);
const Context& context_of(const Way& way);
const Context& cuda_context();

/// Every instruction set, {1, 2, 3, 7} threads, every method, and the CUDA device where there is one.
std::vector<Way> all_ways();
/// Each instruction set, thread count and method at least once; `turn` varies what goes with what.
std::vector<Way> some_ways(std::uint64_t turn);
/// Two ways, so that thousands of small cases stay affordable.
std::vector<Way> two_ways(std::uint64_t turn);

/// What is asked beyond the case: list lengths (cut to what is eligible) and whether radius and count are checked too.
struct Asked {
  std::vector<std::int64_t> ks = {1, 5};
  bool all_rows = false;  ///< k = every eligible row as well
  bool radii = true;      ///< radius and count at 0, at reported distances and just below them
  bool far = false;       ///< the same at the distances of rows that are the farthest, or nearly
};

/// Checks one case in every way. If the reference finds a key that overflows, the library must refuse, naming such a
/// pair.
void check(const Case& c, const Asked& asked, const std::vector<Way>& ways);

}  // namespace vicinal::contract
