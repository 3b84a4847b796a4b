"""How the tests start ranks."""

import atexit
import os
import shutil
import tempfile

MPIRUN = shutil.which("mpirun")
# Ranks of the library sleep while they wait, and need no yielding of Open MPI's, which takes long beside other work.
# Containers may refuse the reading of another process's memory, by which Open MPI copies.
OPTIONS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0", "--mca", "btl", "self,vader",
           "--mca", "btl_vader_single_copy_mechanism", "none"]
# A folder of its own, which no other mpirun removes meanwhile.
FOLDER = tempfile.mkdtemp(prefix="mpi-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# Open MPI asks for both before it runs as root.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_orte_tmpdir_base=FOLDER)
# Where a rank has ended with an error, mpirun would wait a second between SIGTERM and SIGKILL to the others, which have
# said what they have to say.
AT_ONCE = dict(ENVIRONMENT, OMPI_MCA_odls_base_sigkill_timeout="0")
