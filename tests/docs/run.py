"""Runs the code in README.md and docs/*.md, so that no reader meets an example that does not work.

Conventions (every fence must have one of these tags):
  cpp       compiled against the library and run. Without a `main` it becomes the body of one, in which `ctx` (a CPU
            context), `data` (float, n rows of d columns), `queries` (m rows) and `labels` (n integers) stand ready;
            #include and namespace-alias lines go above. It must exit with 0. One that calls Communicator::mpi is run by
            three processes under mpirun, and only compiled where that or the plug-in is missing.
  sh        each block is run by `bash -e` in one folder that holds the files of make_samples(), `vicinal` on the PATH.
            A block that runs ./dev or cmake builds would recurse; of those only the existence of the commands and
            presets is checked. README's Install is typed by tests/release/type_readme.py.
            A block that needs the plug-in for maps, which is not built everywhere, is passed over where it is missing.
            A page of docs/examples has an empty folder of its own: it makes all that it reads. A block that names a
            file under DATA_SETS is passed over where the folder is missing.
  python    run by the Python that runs this script, in the same folder. A block that imports a package of OPTIONAL,
            which an environment may lack, is passed over where that is missing. A block with the patch, the estimators,
            a program of docs/graphs.md or a peer is run by the Python of --sklearn-python, and passed over where that has
            not scikit-learn 1.9. A block with Dask is run by that of --engines-python, and passed over where that has it
            not. The blocks of a page of docs/tutorials are one program, in a folder of its own.
            A block that saves NAME.svg with matplotlib makes docs/figures/NAME-light.svg and NAME-dark.svg, which are
            compared as bench/figures.py compares; --write writes them, and the outputs of the page, instead.
  output    what the block before it prints, character by character.
  python not-run, text, console-output, cmake, json    shown, not run.
"""

import argparse
import functools
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import pictures

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
SHOWN = {"python not-run", "text", "console-output", "cmake", "json"}
NOT_RUN = re.compile(r"^\s*(sudo |git clone|cd |apt-get |cmake |ctest |pip |\./dev|\.ci/run|g\+\+ )")
# What the Debian package dataset-fashion-mnist installs, which `./dev test` asks for.
DATA_SETS = pathlib.Path("/usr/share/datasets/fashion-mnist")
OPTIONAL = frozenset({"anndata", "faiss", "geopandas", "matplotlib", "openTSNE", "pandas", "pyod", "scanpy", "umap", "vicinal"})
OF_SKLEARN = re.compile(r"\bvicinal\.(sklearn|patch)\b|\bpatch(ed)?_sklearn\b"
                        r"|^(?:import|from) (umap|openTSNE|scanpy|faiss|pyod)\b", re.MULTILINE)
OF_ENGINES = re.compile(r"^\s*(?:import|from) dask\b", re.MULTILINE)
IMPORTED = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
# Pages with data of their own: each has an empty folder.
APART = frozenset({"examples", "tutorials"})
# Runs blocks in one namespace: a line of JSON for each, and for each a line with what it printed and what went wrong.
SESSION = """
import contextlib, io, json, sys, traceback
shared = {"__name__": "__main__"}
for line in sys.stdin:
    printed, wrong = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(json.loads(line), "page", "exec"), shared)
        except BaseException:
            wrong = traceback.format_exc()
    print(json.dumps([printed.getvalue(), wrong]), flush=True)
"""
# Open MPI asks for both variables before it runs as root.
MPIRUN = ("mpirun -n 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle 0 --mca btl self,vader "
          "--mca btl_vader_single_copy_mechanism none").split()
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
HOISTED = re.compile(r"^\s*(#include\b.*|namespace \w+ = [\w:]+;.*|using namespace .*)$", re.MULTILINE)
PROLOGUE = """
  const auto ctx = vicinal::Context::cpu();
  const std::int64_t n = 200, m = 20, d = 4;
  const auto made = vicinal::generate(ctx, {.rows = n, .cols = d, .centers = 3, .seed = 1});
  const std::vector<float> values(made.points.begin(), made.points.end());
  const float* const data = values.data();
  const vicinal::TableView queries{data, m, d};
  const std::vector<std::int64_t>& labels = made.labels;
  (void)data, (void)queries, (void)labels;
"""


@functools.cache
def has_packages(python, names):
    probe = f"import importlib.util; assert all(importlib.util.find_spec(name) for name in {sorted(names)})"
    return subprocess.run([python, "-c", probe], capture_output=True).returncode == 0


def npy(path, descr, shape, payload):
    """Writes a version 1.0 .npy by hand: this script uses the standard library only."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload)


def make_samples(folder):
    """train, test (.npy float32 [200, 4] and [20, 4]; .csv with a text column `class`; .gz of the csv), labels.npy,
    edges.csv (pairs of ids with a share), and old and new.geojson (maps of squares)."""
    draw = random.Random(7)
    for name, rows in (("train", 200), ("test", 20)):
        classes = [draw.choice(("ape", "bee", "cat")) for _ in range(rows)]
        table = [[draw.gauss(3 * "abc".index(c[0]), 1) for _ in range(4)] for c in classes]
        flat = [value for row in table for value in row]
        npy(folder / f"{name}.npy", "<f4", (rows, 4), struct.pack(f"<{len(flat)}f", *flat))
        lines = ["a,b,c,d,class"] + [",".join(f"{v:.6f}" for v in row) + f",{c}" for row, c in zip(table, classes)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        codes = ["ape bee cat".split().index(c) for c in classes]
        npy(folder / f"{name}_labels.npy", "<i8", (rows,), struct.pack(f"<{rows}q", *codes))
    edges = [f"p{draw.randrange(40)},q{draw.randrange(40)},{draw.random():.3f}\n" for _ in range(60)]
    (folder / "edges.csv").write_text("old,new,share\n" + "".join(edges))
    for name, squares in (("old", [(0, 2), (2, 2), (4, 1)]), ("new", [(0, 2), (2, 1), (3, 1), (4.5, 1)])):
        rings = [[[x, 0], [x + side, 0], [x + side, side], [x, side], [x, 0]] for x, side in squares]
        features = [{"type": "Feature", "properties": {"GEOID": f"{i:03d}"},
                     "geometry": {"type": "Polygon", "coordinates": [ring]}} for i, ring in enumerate(rings)]
        (folder / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    subprocess.run(["gzip", "-k", "train.csv"], cwd=folder, check=True)


def program_of(code):
    if re.search(r"\bint main\(", code):
        return code
    hoisted = "\n".join(match.group().strip() for match in HOISTED.finditer(code))
    body = HOISTED.sub("", code)
    own_ctx = re.search(r"\bauto ctx\b", body)
    prologue = PROLOGUE.replace("const auto ctx", "[[maybe_unused]] const auto prepared_ctx").replace(
        "generate(ctx", "generate(prepared_ctx") if own_ctx else PROLOGUE
    return (f"#include <vicinal/vicinal.hpp>\n#include <cstdint>\n#include <iostream>\n#include <vector>\n{hoisted}\n"
            f"int main() {{{prologue}\n  {{\n{body}\n  }}\n}}\n")


class Runner:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.counts = {"cpp": 0, "sh": 0, "python": 0, "checked": 0, "output": 0, "passed over": 0}
        self.printed = ""
        self.session = None
        self.reasons = set()
        self.lacks_data = None  # the page whose data are not there

    @functools.cached_property
    def compile_words(self):
        """The compiler and its options. GCC reads the header precompiled, which takes a fifth of the time."""
        include = self.arguments.source / "include"
        words = [self.arguments.compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
                 "-Wno-unused-but-set-variable", f"-I{include}"]
        # A program that includes another header before gets the header itself.
        header = self.folder.parent / "precompiled/vicinal/vicinal.hpp"
        header.parent.mkdir(parents=True)
        header.write_text("#include_next <vicinal/vicinal.hpp>\n")
        subprocess.run([*words, "-w", "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
        return [words[0], f"-I{header.parent.parent}", *words[1:]]

    def run_cpp(self, code, where):
        source, program = self.folder / "example.cpp", self.folder / "example"
        source.write_text(program_of(code))
        library = self.arguments.library
        self.call([*self.compile_words, "-c", str(source), "-o", f"{program}.o"], where, code)
        self.call([self.arguments.compiler, f"{program}.o", "-o", str(program), str(library),
                   f"-Wl,-rpath,{library.parent}"], where, code)
        self.counts["cpp"] += 1
        if "Communicator::mpi(" not in code:
            self.printed = self.call([str(program)], where, code)
        elif shutil.which("mpirun") and (library.parent / "libvicinal_mpi.so").exists():
            self.printed = self.call([*MPIRUN, str(program)], where, code, env=dict(os.environ, **AS_ROOT))
        else:
            self.pass_over()

    def run_sh(self, code, where):
        lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if any(NOT_RUN.match(line) for line in lines):
            self.check_only(lines, where)
            return
        programs = [program for program in (self.arguments.command, self.arguments.bench) if program]
        folders = [*(str(program.parent) for program in programs), os.environ["PATH"]]
        path = os.pathsep.join(folders)
        words = ["bash", "-e", "-o", "pipefail", "-c", code]
        self.printed = self.call(words, where, code, env=dict(os.environ, PATH=path))
        self.counts["sh"] += 1

    def run_python(self, code, where):
        python = self.sklearn_python() if OF_SKLEARN.search(code) else sys.executable
        if OF_ENGINES.search(code):
            python = self.arguments.engines_python or sys.executable
            python = python if has_packages(python, frozenset({"dask", "distributed"})) else None
        if python is None or not has_packages(python, OPTIONAL.intersection(IMPORTED.findall(code))):
            self.pass_over()
            return
        if self.folder.parent.name == "tutorials":
            self.printed = self.call_session(python, where, code)
        else:
            self.printed = self.call([python, "-W", "ignore", "-c", code], where, code)
        self.counts["python"] += 1

    def call_session(self, python, where, code):
        """Of a tutorial, whose blocks are one program."""
        if self.session is None:
            self.session = subprocess.Popen([python, "-W", "ignore", "-c", SESSION], cwd=self.folder, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        print(json.dumps(code), file=self.session.stdin, flush=True)
        answer = self.session.stdout.readline()
        printed, wrong = json.loads(answer) if answer else ["", "the program ended"]
        if wrong:
            sys.exit(f"{where}: the block failed\n--- the block\n{code}--- its output\n{printed}{wrong}")
        return printed

    def end_session(self):
        if self.session is not None:
            self.session.stdin.close()
            self.session.wait(60)
            self.session = None

    def sklearn_python(self):
        """The Python with the scikit-learn that vicinal's estimators and patch are made for."""
        python = self.arguments.sklearn_python or sys.executable
        probe = 'import sklearn; assert sklearn.__version__.startswith("1.9.")'
        return python if subprocess.run([python, "-c", probe], capture_output=True).returncode == 0 else None

    def pass_over(self):
        self.counts["passed over"] += 1
        self.printed = None

    def check_only(self, lines, where):
        source = self.arguments.source
        text = (source / "dev").read_text() + (source / "CMakePresets.json").read_text()
        for line in lines:
            # Files that a pattern names are made by the lines before.
            for program in re.findall(r"(?:^|\s)(\./[\w./]+|\.ci/\w+)(?=\s|$)", line):
                assert os.access(source / program, os.X_OK), f"{where}: {program} is not a program of this repository"
            for word in re.findall(r"\./dev (\w+)", line) + re.findall(r"--preset (\w+)", line):
                assert re.search(rf"\b{word}\b", text), f"{where}: {word} is neither a ./dev command nor a preset"
        self.counts["checked"] += 1

    def call(self, words, where, code, **options):
        done = subprocess.run(words, cwd=self.folder, text=True, capture_output=True, timeout=300, **options)
        if done.returncode == 5 and "need the plug-in libvicinal_geo.so" in done.stderr:
            self.counts["passed over"] += 1
            return None
        if done.returncode:
            sys.exit(f"{where}: exit code {done.returncode} from {' '.join(words[:2])}\n--- the block\n{code}"
                     f"--- its output\n{done.stdout}{done.stderr}")
        return done.stdout

    def check_output(self, shown, where):
        if self.printed is None:
            return
        if self.printed != shown:
            sys.exit(f"{where}: the block before it prints\n{self.printed}--- and the page shows\n{shown}")
        self.counts["output"] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--command", type=pathlib.Path, required=True)
    parser.add_argument("--bench", type=pathlib.Path, help="vicinal-bench, which some pages of docs/ run")
    parser.add_argument("--package", type=os.path.abspath, help="the folder that holds the Python package, if there is one")
    parser.add_argument("--sklearn-python", help="A Python with scikit-learn 1.9")
    parser.add_argument("--engines-python", help="A Python with Dask")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--part", choices=("pages", "examples"), help="only docs/examples and docs/tutorials, or only the rest")
    parser.add_argument("--page", help="this page alone")
    parser.add_argument("--write", action="store_true", help="write outputs and pictures of Python instead of comparing")
    arguments = parser.parse_args()
    if arguments.package:
        sys.path.insert(0, arguments.package)
        os.environ["PYTHONPATH"] = arguments.package
    pages = [arguments.source / "README.md", arguments.source / "CONTRIBUTING.md",
             *sorted((arguments.source / "docs").glob("**/*.md"))]
    if arguments.page:
        pages = [arguments.source / arguments.page]
    elif arguments.part:
        pages = [page for page in pages if (page.parent.name in APART) == (arguments.part == "examples")]
    with tempfile.TemporaryDirectory() as name:
        os.environ.update(pictures.environment(pathlib.Path(name)))
        samples = pathlib.Path(name) / "samples"
        samples.mkdir()
        make_samples(samples)
        runner = Runner(arguments, samples)
        for page in pages:
            runner.folder = samples
            if page.parent.name in APART:
                runner.folder = samples.with_name(page.parent.name) / page.stem
                runner.folder.mkdir(parents=True)
            run_page(runner, page)
        drawn = pictures.check(name, arguments.source / "docs/figures", arguments.write)
    for page in pages:
        check_links(page, page.read_text())
    print(f"{len(pages)} pages: {runner.counts['cpp']} C++ blocks compiled and run, {runner.counts['sh']} shell blocks and "
          f"{runner.counts['python']} Python blocks run, "
          f"{runner.counts['output']} outputs compared, {drawn} pictures drawn, "
          f"{runner.counts['checked']} blocks of build commands checked, {runner.counts['passed over']} passed over")
    for reason in sorted(runner.reasons):
        print(reason)
    tested = runner.counts["cpp"] and runner.counts["sh"]
    assert tested or arguments.page, "a documentation without examples is not being tested"


def run_page(runner, page):
    """Runs the blocks of a page in their order; with --write, it then has the outputs that they print."""
    text = page.read_text()
    written, at = [], 0
    for fence in FENCE.finditer(text):
        where = f"{page.name}:{text.count(chr(10), 0, fence.start()) + 1}"
        tag, code = fence.group(1).strip(), fence.group(2)
        if tag not in {"output", *SHOWN} and (reason := missing_data(code)):
            runner.reasons.add(f"{page.name}: {reason}")
            runner.lacks_data = page
        if tag not in {"output", *SHOWN} and runner.lacks_data == page:
            runner.pass_over()
        elif tag == "cpp":
            runner.run_cpp(code, where)
        elif tag == "sh":
            runner.run_sh(code, where)
        elif tag == "python":
            runner.run_python(code, where)
        elif tag == "output" and runner.arguments.write and runner.printed is not None:
            written += [text[at:fence.start(2)], runner.printed]
            at = fence.end(2)
        elif tag == "output":
            runner.check_output(code, where)
        elif tag not in SHOWN:
            sys.exit(f"{where}: the fence is tagged '{tag}'; see the conventions in tests/docs/run.py")
    runner.end_session()
    if written:
        page.write_text("".join([*written, text[at:]]))


def missing_data(code):
    """Why a block has no data here, or an empty text."""
    if str(DATA_SETS) in code and not DATA_SETS.exists():
        return f"there is no {DATA_SETS}: install dataset-fashion-mnist"
    if "VICINAL_DATA" in code and "VICINAL_DATA" not in os.environ:
        return "VICINAL_DATA is not set to a folder of real data"
    return ""


def anchors_of(text):
    """Of the headings, as the forges make them: lower case, blanks to hyphens, other signs left out."""
    headings = re.findall(r"^#+ (.*)$", re.sub(FENCE, "", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(page, text):
    """Relative links lead to files, and to headings."""
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", re.sub(FENCE, "", text)):
        if "://" in target:
            continue
        other = page.parent / target if target else page
        if not other.exists():
            sys.exit(f"{page.name}: the link to {target} leads nowhere")
        if anchor and other.suffix == ".md" and anchor not in anchors_of(other.read_text()):
            sys.exit(f"{page.name}: {target or 'the page'} has no heading #{anchor}")
    for target in re.findall(r'(?:src|srcset)="([^"]+)"', text):
        if "://" not in target and not (page.parent / target).exists():
            sys.exit(f"{page.name}: the picture {target} is not there")


if __name__ == "__main__":
    main()
