"""How the tests start ranks."""

import os
import shutil

MPIRUN = shutil.which("mpirun")
# Ranks of the library sleep while they wait, and need no yielding of Open MPI's, which takes long beside other work.
# Containers may refuse the reading of another process's memory, by which Open MPI copies.
OPTIONS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0", "--mca", "btl", "self,vader",
           "--mca", "btl_vader_single_copy_mechanism", "none"]
# Open MPI asks for both before it runs as root.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
