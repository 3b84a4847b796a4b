"""Builds the site of the documentation: static HTML with a search of its own, which loads nothing from a network.

Usage: build.py --output FOLDER --command VICINAL --package FOLDER

README.md, docs/**/*.md and a few other pages of the repository are the sources (pages.py). The references of C++ and of
Python are made of the comments in include/vicinal (cpp_reference.py) and of the docstrings (python_reference.py), that of
the command of its help (command_reference.py). Sphinx renders them; each of its warnings fails the build. Then every
link, anchor and address in the HTML is checked (check.py). --package names the folder that holds the Python package.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import check
import command_reference
import cpp_reference
import pages

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parents[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--command", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.package.resolve()))
    import python_reference

    html = arguments.output.resolve()
    source = html.with_name(html.name + ".source")
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    reference = source / "reference"
    reference.mkdir(parents=True)
    headers = cpp_reference.write(ROOT / "include/vicinal", reference)
    python_reference.write(ROOT / "python/vicinal", reference)
    command_reference.write(arguments.command.resolve(), reference)
    pages.write(ROOT, source, headers)
    shutil.copy(SITE / "conf.py", source)
    shutil.copytree(SITE / "static", source / "_static")
    paths = os.pathsep.join(str(path) for path in (arguments.package.resolve(), SITE))
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-j", "auto", "-b", "html",
             "-d", str(source / ".doctrees"), str(source), str(html)]
    done = subprocess.run(words, env=dict(os.environ, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1"))
    if done.returncode:
        sys.exit("The site has warnings")
    shutil.rmtree(html / ".doctrees", ignore_errors=True)
    print(check.check(html), f"in {html}/index.html")


if __name__ == "__main__":
    main()
