"""Names the tests to ctest whenever it starts (tests/CMakeLists.txt): those of the GoogleTest executables, as these
list them, and the scripts, as they lie in their folders.

Usage: register.py FOLDER, that of tests/ in a build tree. It reads `built` there (lines NAME=VALUE) and writes
`registered.cmake`. A test's labels are its kind (unit, contract, cli, ...) and its area, which is its folder. What else
ctest must know stands in the test's source, in comments of one line:

    # ctest: COST 40                    a property; ctest starts with the tests of the highest COST, about their seconds
    # fake device: *                    in Python: the script runs with the fake device
    // fake device: FILTER              the tests of a source that run with the fake device, too. Without this line: all
                                        of contract/, none of unit/
    // fake device, sanitized: FILTER   those that run with it in a sanitizer's build, where all would take too long
    // fake device, together: FILTER    those that also run on two fake devices as one, as `tests/gpu/run.sh devices`
                                        runs more of them on a machine's
    // fake device, threads: FILTER     those that ThreadSanitizer watches on the fake devices; without this line: none

A FILTER is GoogleTest's: patterns joined by `:`, then `-` and patterns of what is left out. `-*` is none.
"""

import fnmatch
import itertools
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent
PYTEST = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
PROPERTY = re.compile(r"^# ctest: (\w+) (.+)$", re.MULTILINE)
FAKE_DEVICE = re.compile(r"^(?:#|//) fake device(, sanitized|, together|, threads)?: (\S+)", re.MULTILINE)
# What a sanitizer leaves out, by VICINAL_SANITIZE. AddressSanitizer: what repeats a computation with other numbers of
# threads or other values, and what is decided about large tables. ThreadSanitizer: what differs from another test in its
# values alone, and what one thread does: counted polls, damaged files and pure arithmetic.
LEFT_OUT = {
    "address,undefined": r"SameBitsOnEveryThreadCount|WhateverTheThreads|^unit\.Planner"
                         r"|SizesAroundALeaf/(?!gaussian|duplicates|subnormal$|huge)|Lle\.(Automatic|Lanczos|Runs)"
                         r"|Dissection\.Large|LofRefusal\.Ties|TensorCore\.Loses"
                         # By euclidean all tables, of which sqeuclidean differs in roots alone.
                         r"|PrunedIndex\.(SameStatistics|.*/(sqeuclidean"
                         r"|(inner_product|cosine)_(flat|shells|dominating|offset|duplicates)))",
    "thread": r"_(uint8|b?float16|float64)|SizesAroundALeaf/([^gd]|grid)|LleQuality|Dissection\.(Large|Tears|Points)"
              r"|Lle\.(Tells|Direct|Lanczos|Duplicates|Runs|Equals|Automatic)|TensorCore\.(Loses|Sums)|OnALattice"
              r"|IoHostile\.Long|LofRefusal\.Ties|^unit\.(Planner|Polls\.(?!EachTask)|Damaged)"
              r"|PrunedIndex\.(Few.*/(sqe|(euclidean|inner_product|cosine)_(?!low_rank|flat|vanishing))|Same.*/(?!euclidean_low_rank))",
}
# A process of a sanitizer's build takes long to start and to end: so many tests of a source run in one.
TESTS_PER_PROCESS = 20
# A project that uses vicinal, in each way: against an installed shared library, and with the source tree in its own,
# which makes a static library that is then installed.
CONSUMERS = {
    "install": {"FIXTURES_SETUP": "vicinal_shared"},
    "find_package": {"FIXTURES_REQUIRED": "vicinal_shared"},
    "pkg_config": {"FIXTURES_REQUIRED": "vicinal_shared"},
    "add_subdirectory": {"FIXTURES_SETUP": "vicinal_static", "COST": 120},
    "find_package_static": {"FIXTURES_REQUIRED": "vicinal_static"},
    "pkg_config_static": {"FIXTURES_REQUIRED": "vicinal_static"},
}


def is_chosen(name, chosen):
    """As GoogleTest decides by a filter."""
    wanted, _, unwanted = chosen.partition("-")
    return (any(fnmatch.fnmatchcase(name, pattern) for pattern in (wanted or "*").split(":"))
            and not any(fnmatch.fnmatchcase(name, pattern) for pattern in unwanted.split(":")))


class Registry:
    def __init__(self, folder):
        self.folder = folder
        self.built = dict(line.split("=", 1) for line in (folder / "built").read_text().splitlines())
        self.python_package = folder.parent / "python"
        self.commands = []
        self.fake_device = {}
        if plugin := self.built.get("vicinal_fake_device"):
            self.fake_device = {"VICINAL_CUDA_PLUGIN": plugin, "LD_LIBRARY_PATH": pathlib.Path(plugin).parent}
            if other := self.built.get("vicinal_plugin_other_version"):
                self.fake_device["VICINAL_TEST_OTHER_VERSION"] = other

    def is_asked_for(self, area):
        return self.built["VICINAL_AREA"] in ("", area)

    def add(self, name, labels, command, environment=None, **properties):
        properties["LABELS"] = ";".join(labels)
        if environment:
            properties["ENVIRONMENT"] = ";".join(f"{key}={value}" for key, value in environment.items())
        words = " ".join(f"[==[{word}]==]" for word in command)
        values = " ".join(f"{key} [==[{value}]==]" for key, value in properties.items())
        self.commands.append(f"add_test([==[{name}]==] {words})\n"
                             f"set_tests_properties([==[{name}]==] PROPERTIES {values})\n")

    def add_script(self, name, kind, area, script, arguments, **more):
        if self.is_asked_for(area):
            self.add(name, (kind, area), [self.built["VICINAL_TEST_PYTHON"], "-B", script, *arguments], **more)

    def add_pytest(self, name, kind, area, file, environment, python="VICINAL_TEST_PYTHON"):
        if self.is_asked_for(area):
            self.add(name, (kind, area), [self.built[python], *PYTEST, file], environment,
                     **dict(PROPERTY.findall(file.read_text())))

    def google_tests(self, kind):
        """(source, name) of each test of an executable, in order of the sources."""
        listed = self.folder / f"{kind}.json"
        subprocess.run([self.built[f"vicinal_{kind}_tests"], "--gtest_list_tests", f"--gtest_output=json:{listed}"],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)
        tests = [(pathlib.Path(test["file"]), f"{suite['name']}.{test['name']}")
                 for suite in json.loads(listed.read_text())["testsuites"] for test in suite["testsuite"]]
        return sorted(tests, key=lambda test: test[0])

    def add_google_tests(self, kind):
        executable = self.built.get(f"vicinal_{kind}_tests")
        if not executable:
            return
        if not pathlib.Path(executable).exists():
            self.add(f"vicinal_{kind}_tests_NOT_BUILT", (kind,), [executable])
            return
        environment = {}
        if "vicinal_geo" in self.built:
            environment["VICINAL_GEO_PLUGIN"] = self.built["vicinal_geo"]
        sanitizer = self.built["VICINAL_SANITIZE"]
        left_out = LEFT_OUT.get(sanitizer)
        for source, tests in itertools.groupby(self.google_tests(kind), key=lambda test: test[0]):
            names = [name for _, name in tests]
            if sanitizer:
                kept = [name for name in names if not left_out or not re.search(left_out, f"{kind}.{name}")]
                self.add_together(kind, source, executable, kept, environment)
            else:
                for name in names:
                    self.add(f"{kind}.{name}", (kind, source.parent.name), [executable, f"--gtest_filter={name}"],
                             environment, SKIP_REGULAR_EXPRESSION=r"\[  SKIPPED \]")
            self.add_on_fake_device(kind, source, executable, names)

    def add_together(self, kind, source, executable, names, environment):
        """The tests of one source in few processes. Those that are skipped are named in the log; ./dev prints them."""
        shared = f"{kind}.{source.parent.name}.{source.stem.removesuffix('_test')}"
        chunks = [names[first:first + TESTS_PER_PROCESS] for first in range(0, len(names), TESTS_PER_PROCESS)]
        for part, chunk in enumerate(chunks, 1):
            name = shared if len(chunks) == 1 else f"{shared}.{part}"
            self.add(name, (kind, source.parent.name), [executable, "--gtest_filter=" + ":".join(chunk)], environment,
                     COST=len(chunk))

    def add_on_fake_device(self, kind, source, executable, names):
        """Those of one source. One fake device computes on one core, so ThreadSanitizer watches calls of several."""
        sanitizer = self.built["VICINAL_SANITIZE"]
        if not self.fake_device or not self.is_asked_for("device"):
            return
        filters = dict(FAKE_DEVICE.findall(source.read_text()))
        chosen = filters.get("", "*" if kind == "contract" else "-*")
        if sanitizer == "thread":
            chosen = filters.get(", threads", "-*")
        elif sanitizer:
            chosen = filters.get(", sanitized", chosen)
        asked = [name for name in names if is_chosen(name, chosen)]
        assert bool(asked) == (chosen != "-*"), f"{source}: '{chosen}' chooses no test"
        if asked:
            self.add(f"fake_device.{source.parent.name}.{source.stem.removesuffix('_test')}", (kind, "device"),
                     [executable, "--gtest_filter=" + ":".join(asked)],
                     {"VICINAL_TEST_DEVICE": "cuda", **self.fake_device}, COST=20)
        together = filters.get(", together")
        if together and not sanitizer:
            asked = [name for name in names if is_chosen(name, together)]
            assert asked, f"{source}: '{together}' chooses no test"
            self.add(f"fake_devices.{source.parent.name}.{source.stem.removesuffix('_test')}", (kind, "device"),
                     [executable, "--gtest_filter=" + ":".join(asked)],
                     {"VICINAL_TEST_DEVICE": "cuda", "VICINAL_TEST_DEVICES": "cuda:0,1", **self.fake_device}, COST=10)

    def add_manners(self):
        for file in sorted(HERE.glob("manners/test_*.py")):
            name = f"manners.{file.stem.removeprefix('test_')}".removesuffix(".manners")
            self.add_script(name, "manners", "sources", file, [SOURCE, self.built["vicinal"]])

    def add_consumers(self, compiler):
        for way, properties in CONSUMERS.items():
            self.add_script(f"consumer.{way}", "consumer", "package", HERE / "consumer/run.py",
                            [way, "--source", SOURCE, "--build", self.folder.parent, *compiler], **properties)

    def add_docs(self):
        command = ["--command", self.built["vicinal_cli"]]
        package = ["--package", self.python_package, "--sklearn-python", self.built["VICINAL_SKLEARN_PYTHON"],
                   "--engines-python", self.built["VICINAL_ENGINES_PYTHON"]]
        if "vicinal_python" not in self.built:
            package = []
        # The worked examples apart, so that both run at once.
        for name, part, cost in (("docs", "pages", 170), ("docs.examples", "examples", 90)):
            self.add_script(name, "docs", "docs", HERE / "docs/run.py",
                            ["--part", part, "--source", SOURCE, "--library", self.built["vicinal"], *command,
                             "--bench", self.built["vicinal_bench"], *package, "--compiler",
                             self.built["CMAKE_CXX_COMPILER"]], COST=cost)
        self.add_script("docs.figures", "docs", "docs", SOURCE / "bench/figures.py", ["--check", *command])
        self.add_script("docs.command", "docs", "docs", HERE / "docs/command_page.py", ["--check", *command])
        if "vicinal_python" not in self.built:
            return
        package = ["--package", self.python_package]
        # Which metrics a device has is asked of one, or of the one that computes on the host.
        self.add_script("docs.metrics", "docs", "docs", HERE / "docs/metrics_page.py", ["--check", *package],
                        environment=self.fake_device)
        python = self.built["VICINAL_SITE_PYTHON"]
        if python and self.is_asked_for("docs"):
            self.add("docs.site", ("docs", "docs"),
                     [python, "-B", SOURCE / "docs/site/build.py", "--output", SOURCE / "build/site", *command, *package],
                     COST=60)

    def add_cli(self):
        for file in sorted(HERE.glob("cli/*/test_*.py")):
            area = file.parent.name
            # Those of bench/ are of the other program.
            program = self.built.get("vicinal_bench" if area == "bench" else "vicinal_cli")
            if program:
                self.add_pytest(f"cli.{file.stem}", "cli", area, file,
                                {"VICINAL_COMMAND": program, "VICINAL_MODELS": self.built.get("vicinal_models", "")})

    def add_mpi(self):
        for file in sorted(HERE.glob("mpi/test_*.py")):
            self.add_pytest(f"mpi.{file.stem}", "mpi", "core", file,
                            {"VICINAL_MPI_RANKS": self.built["vicinal_mpi_ranks"],
                             "VICINAL_COMMAND": self.built.get("vicinal_cli", "")})

    def add_python(self):
        environment = {"PYTHONPATH": self.python_package, "VICINAL_COMMAND": self.built["vicinal_cli"]}
        # Those in sklearn_* are of the Python that has scikit-learn 1.9; in another one they say that they were skipped.
        # Those in engines/ are an area, of the Python that has Dask, Ray, mpi4py and Spark; in another one they fail.
        for file in sorted(HERE.glob("python/**/test_*.py")):
            folders = file.relative_to(HERE).parts[:-1]
            marked = FAKE_DEVICE.search(file.read_text())
            assert marked or not file.stem.startswith("test_device"), f"{file}: lacks '# fake device: *'"
            device = self.fake_device if marked else {"VICINAL_DEVICE": "cpu"}
            area = "engines" if folders[-1] == "engines" else "python"
            python = {"python": "TEST", "engines": "ENGINES"}.get(folders[-1], "SKLEARN")
            self.add_pytest(".".join((*folders, file.stem)), "python", area, file, {**environment, **device},
                            f"VICINAL_{python}_PYTHON")


def main():
    registry = Registry(pathlib.Path(sys.argv[1]))
    built = registry.built
    for kind in ("unit", "contract"):
        registry.add_google_tests(kind)
    if not built["VICINAL_SANITIZE"]:
        compiler = ["--compiler", built["CMAKE_CXX_COMPILER"], f"--launcher={built['CMAKE_CXX_COMPILER_LAUNCHER']}"]
        registry.add_manners()
        registry.add_consumers(compiler)
        registry.add_cli()
        if "vicinal_mpi_ranks" in built:
            registry.add_mpi()
        if {"vicinal_cli", "vicinal_bench"} <= built.keys():
            registry.add_docs()
        if {"vicinal_cli", "vicinal_python"} <= built.keys():
            registry.add_python()
    (registry.folder / "registered.cmake").write_text("".join(registry.commands))


if __name__ == "__main__":
    main()
