"""Mutations: does a test fail when a term of a proof, a tie rule, a memory plan's entry or a poll is taken away?

Usage: run.py [--only TEXT] [--resume] [--workers N] [--output FILE] [--list]

Each mutation of tests/mutate/*.txt is applied to a copy of the sources in build/mutate, built, and the tests named with
it are run: some must fail. A survivor fails the run, unless the list says why its term cannot be told by any test; so
does a mutation that does not build, or one that the list calls equivalent and a test kills. The table is printed at the
end, and written as JSON to bench/results/mutations-DATE-COMMIT.json after a run of the whole list.

On a machine of many cores, --workers 8 tries eight mutations at a time, each in a copy of the built tree. A copy is
mounted at the place of the original, whose path is in its build files; that needs root.

The form of a list, empty lines and lines of # left out:
  name of the mutation
    file; unit, contract, or device (contract tests on the fake device); filter of GoogleTest
    - text of the file, which it holds exactly once (several such lines: as they stand there)
    + what takes its place
    = why it is equivalent, where it is
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutate"
MEMORY = WORK / "results.json"
TIMEOUT = 300  # seconds that tests may take; a mutation may make them endless
OPTIONS = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", "-DVICINAL_UNITY=OFF",
           "-DVICINAL_WERROR=OFF", "-DVICINAL_CUDA=OFF", "-DVICINAL_BUILD_CLI=OFF", "-DVICINAL_BUILD_EXAMPLES=OFF"]


class Mutation:
    def __init__(self, name, where):
        self.name, self.where = name, where
        self.file = self.kind = self.filter = ""
        self.old, self.new, self.reason = [], [], []

    @property
    def text(self):
        return "\n".join(self.old)

    @property
    def replacement(self):
        return "\n".join(self.new)

    @property
    def digest(self):
        parts = [self.file, self.filter, self.text, self.replacement]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def read_list(path):
    mutations = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith("  "):
            mutations.append(Mutation(line.strip(), where))
            continue
        assert mutations, f"{where}: a line before the first name"
        mutation, line = mutations[-1], line[2:]
        if not mutation.file:
            parts = [part.strip() for part in line.split(";")]
            assert len(parts) == 3 and parts[1] in ("unit", "contract", "device"), f"{where}: not 'file; kind; filter'"
            mutation.file, mutation.kind, mutation.filter = parts
            continue
        assert line[:1] in "-+=" and line[1:2] in ("", " "), f"{where}: begins with none of '- ', '+ ', '= '"
        {"-": mutation.old, "+": mutation.new, "=": mutation.reason}[line[0]].append(line[2:])
    return mutations


def read_lists(folder=ROOT / "tests" / "mutate"):
    return [mutation for path in sorted(folder.glob("*.txt")) for mutation in read_list(path)]


def faults_of(mutations, root=ROOT):
    """A sentence for each mutation that is not one of the sources as they are."""
    names = set()
    for mutation in mutations:
        at = f"{mutation.where}: {mutation.name}"
        if mutation.name in names:
            yield f"{at}: a second one of this name"
        names.add(mutation.name)
        if not mutation.old or mutation.text == mutation.replacement:
            yield f"{at}: changes nothing"
            continue
        file = root / mutation.file
        count = file.read_text().count(mutation.text) if file.is_file() else 0
        if count != 1:
            yield f"{at}: its text stands {count} times in {mutation.file}"


def run(command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def copy_sources():
    """Brings the copy up to date; what is the same keeps its time, so that little is built again."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True).stdout
    files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    source = WORK / "source"
    for old in [path for path in source.rglob("*") if path.is_file() and str(path.relative_to(source)) not in files]:
        old.unlink()
    for name in files:
        to = source / name
        data = (ROOT / name).read_bytes()
        if to.is_file() and to.read_bytes() == data:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data)
        shutil.copymode(ROOT / name, to)


class Build:
    def __init__(self, jobs):
        self.jobs = jobs
        self.listed = {}  # (kind, filter): how many tests it selects
        self.source, self.tree = WORK / "source", WORK / "tree"
        copy_sources()
        options = OPTIONS[:]
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_SLOPPINESS=pch_defines,time_macros;ccache")
        options.append(f"-DVICINAL_TEST_PYTHON={sys.executable}")
        done = run(["cmake", "-S", self.source, "-B", self.tree, "-G", "Ninja", *options])
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nrun.py: configuring {self.tree} failed")

        # Of src/gdal, which tests load; they skip what needs it where it is not built.
        targets = run(["ninja", "-C", self.tree, "-t", "query", "vicinal_geo"])
        self.plugins = ["vicinal_geo"] if targets.returncode == 0 else []

    def make(self, kind):
        targets = ["vicinal_contract_tests", "vicinal_fake_device"] if kind == "device" else [f"vicinal_{kind}_tests"]
        return run(["cmake", "--build", self.tree, "--parallel", str(self.jobs), "--target", *targets, *self.plugins])

    def test(self, kind, tests, *more):
        """(output, whether all passed); too late is failed."""
        program = f"vicinal_{'contract' if kind == 'device' else kind}_tests"
        command = [self.tree / "tests" / program, f"--gtest_filter={tests}", "--gtest_fail_fast", *more]
        try:
            plugin = {"VICINAL_GEO_PLUGIN": str(self.tree / "src" / "libvicinal_geo.so")} if self.plugins else {}
            if kind == "device":
                fake = self.tree / "tests" / "fake_device"
                plugin |= {"VICINAL_TEST_DEVICE": "cuda", "LD_LIBRARY_PATH": str(fake),
                           "VICINAL_CUDA_PLUGIN": str(fake / "libvicinal_fake_device.so")}
            done = run(command, timeout=TIMEOUT, cwd=self.tree / "tests", errors="replace", env=os.environ | plugin)
        except subprocess.TimeoutExpired:
            return f"no end within {TIMEOUT} s", False
        output = done.stdout if done.returncode >= 0 else f"{done.stdout}\nsignal {-done.returncode}"
        return output, done.returncode == 0

    def check(self, kind, tests):
        """That the sources as they are pass, and that there is something to pass."""
        if (kind, tests) in self.listed:
            return
        self.make(kind)  # what was built last is a mutation
        output, passed = self.test(kind, tests)
        count = re.search(r"(\d+) tests? from", output)
        if not passed or not count or count[1] == "0":
            sys.exit(f"{output[-3000:]}\nrun.py: without a mutation, {kind} tests {tests} do not pass")
        self.listed[kind, tests] = int(count[1])


class Workers:
    """Processes that try mutations, each with a copy of the built tree."""

    def __init__(self, count, options):
        self.options = options
        self.folders = [WORK.with_name(f"{WORK.name}-{number}") for number in range(count)]
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
            run(["cp", "-a", WORK, folder], check=True)  # with times, or all would be built again

    def start(self, number, folder):
        own = [sys.executable, __file__, "--resume", f"--shard={number}/{len(self.folders)}"]
        own += [f"--only={self.options.only}", "--jobs=1"]
        mounted = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", mounted, "sh", folder, WORK, *own], cwd=ROOT)

    def run(self):
        """Everything that is known after the end of all."""
        processes = [self.start(number, folder) for number, folder in enumerate(self.folders)]
        for process in processes:
            process.wait()
        known = {}
        for folder in self.folders:
            memory = folder / MEMORY.name
            known |= json.loads(memory.read_text()) if memory.is_file() else {}
            shutil.rmtree(folder)
        return known


def killer(output):
    failed = re.search(r"\[  FAILED  \] ([^\s,]+)", output)
    if failed:
        return failed[1]
    running = re.findall(r"\[ RUN      \] (\S+)", output)
    return f"{running[-1] if running else ''} {output.strip().splitlines()[-1] if output.strip() else ''}".strip()


def try_one(build, mutation):
    file = build.source / mutation.file
    original = file.read_text()
    assert original.count(mutation.text) == 1, f"{mutation.where}: {mutation.name}: the sources have changed meanwhile"
    started = time.monotonic()
    try:
        file.write_text(original.replace(mutation.text, mutation.replacement))
        made = build.make(mutation.kind)
        if made.returncode != 0:
            error = re.search(r"error: .*", made.stdout)
            outcome, by = "does not build", error[0] if error else made.stdout[-200:]
        else:
            output, passed = build.test(mutation.kind, mutation.filter)
            outcome, by = ("survived", "") if passed else ("killed", killer(output))
    finally:
        file.write_text(original)  # newer than what was built of the mutation
    return {"name": mutation.name, "file": mutation.file, "outcome": outcome, "by": by, "tests": mutation.filter,
            "reason": " ".join(mutation.reason), "seconds": round(time.monotonic() - started, 1),
            "digest": mutation.digest}


def is_fault(result):
    return result["outcome"] != ("survived" if result["reason"] else "killed")


def shown(result):
    outcome = result["outcome"] if result["outcome"] != "killed" else f"killed by {result['by']}"
    if result["outcome"] == "survived":
        outcome = f"equivalent: {result['reason']}" if result["reason"] else "SURVIVED"
    elif is_fault(result):
        outcome = f"FAULT: {outcome} {result['by'] if result['outcome'] != 'killed' else '(called equivalent)'}"
    return f"{result['name']:58} {result['file']:34} {result['seconds']:6.1f} s  {outcome}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutations whose name, file or list (screens.txt) holds this text")
    parser.add_argument("--resume", action="store_true", help="leave out what the last run, of the same lists, tried")
    parser.add_argument("--workers", type=int, default=1, help="mutations at a time, each with one compiler [1]")
    parser.add_argument("--shard", metavar="I/N", default="0/1", help="of the mutations, every N-th from the I-th")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time [the cores]")
    parser.add_argument("--output", type=pathlib.Path, help="where the JSON goes")
    parser.add_argument("--list", action="store_true", help="print the mutations and whether each applies, run none")
    options = parser.parse_args()

    everything = read_lists()
    faults = list(faults_of(everything))
    mutations = [m for m in everything if any(options.only in text for text in (m.name, m.file, m.where))]
    if options.list or faults:
        print("\n".join(f"{m.name:58} {m.file}" for m in mutations) if not faults else "\n".join(faults))
        return 1 if faults else 0
    shard, shards = map(int, options.shard.split("/"))
    mutations = mutations[shard::shards]
    WORK.mkdir(parents=True, exist_ok=True)
    known = json.loads(MEMORY.read_text()) if options.resume and MEMORY.is_file() else {}
    build = Build(options.jobs)
    for kind in sorted({m.kind for m in mutations}):
        made = build.make(kind)
        if made.returncode != 0:
            sys.exit(f"{made.stdout[-3000:]}\nrun.py: the sources do not build")
    if options.workers > 1:
        MEMORY.write_text(json.dumps(known, indent=1))
        known |= Workers(options.workers, options).run()
        MEMORY.write_text(json.dumps(known, indent=1))
    results = []
    for number, mutation in enumerate(mutations, 1):
        result = known.get(mutation.name)
        if not result or result["digest"] != mutation.digest:
            build.check(mutation.kind, mutation.filter)
            result = try_one(build, mutation)
            known[mutation.name] = result
            MEMORY.write_text(json.dumps(known, indent=1))
        result["reason"] = " ".join(mutation.reason)
        results.append(result)
        print(f"[{number}/{len(mutations)}] {shown(result)}", flush=True)

    bad = [result for result in results if is_fault(result)]
    counts = {outcome: sum(result["outcome"] == outcome for result in results)
              for outcome in ("killed", "survived", "does not build")}
    print(f"\n{len(results)} mutations: {counts['killed']} killed, {counts['survived']} survived, {len(bad)} faults")
    print("\n".join(shown(result) for result in bad))
    commit = run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT).stdout.strip()
    date = datetime.date.today().isoformat()
    output = options.output
    if output is None and len(mutations) == len(everything):  # of no shard
        output = ROOT / "bench" / "results" / f"mutations-{date}-{commit}.json"
    if output:
        rows = [{key: value for key, value in result.items() if key != "digest"} for result in results]
        head = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "date": date, "commit": commit}
        output.write_text(json.dumps({**head, **counts, "mutations": rows}, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
