// The command `vicinal`.
#include "run_vicinal.hpp"

int main(int argc, char** argv) {
  return vicinal::cli::run_vicinal(argc, argv);
}
