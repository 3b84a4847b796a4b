"""The reference of Python: Sphinx reads the docstrings; the keywords of each function become a table, from the types and
comments in python/vicinal/_options.py and from C++'s defaults."""

import ast
import functools
import inspect
import pathlib
import re

import vicinal
import vicinal.distributed
from vicinal import _core

PARTS = [
    ("_neighbors", "Neighbors", "neighbors"),
    ("_supervised", "Classification and regression", "classify-and-regress"),
    ("_outliers", "Outliers", "outliers"),
    ("_clusters", "k-means", "clustering"),
    ("_density", "Density clustering", "density"),
    ("_embedding", "Embedding", "embedding"),
    ("_coclusters", "Co-clusters", "coclusters"),
    ("_maps", "Maps", "matching"),
    ("_files", "Files and this machine", "files"),
    ("_tables", "Tables that are not in memory", "python"),
    ("_results", "What results have in common", "python"),
    ("_patch", "The patch of scikit-learn", "scikit-learn"),
    ("_errors", "Errors", "python"),
]
OPTIONS = pathlib.Path(vicinal.__file__).parent / "_options.py"


@functools.cache
def options():
    """By class of _options.py its keywords, its own first: {name: (type, comment)}."""
    text = OPTIONS.read_text()
    lines = text.splitlines()
    words = {node.targets[0].id: ast.unparse(node.value) for node in ast.parse(text).body
             if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
    found = {"TypedDict": {}}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef):
            continue
        keywords = {}
        for field in node.body:
            if isinstance(field, ast.AnnAssign):
                comment = lines[field.end_lineno - 1].partition("#: ")[2]
                kind = ast.unparse(field.annotation)
                for name, value in words.items():
                    kind = re.sub(rf"\b{name}\b", value, kind)
                keywords[field.target.id] = (kind, comment)
        for base in node.bases:
            keywords.update((name, about) for name, about in found[base.id].items() if name not in keywords)
        found[node.name] = keywords
    return found


def shown_type(kind):
    """Literal['a', 'b'] as "a", "b", and the rest in short."""
    def choices(match):
        return ", ".join(f'"{word}"' for word in re.findall(r"'([^']+)'", match.group(1)))

    kind = re.sub(r"Literal\[([^\]]+)\]", choices, kind)
    kind = re.sub(r"NDArray\[np\.(\w+?)_?\]", r"array of \1", kind)
    kind = kind.replace(" | ", " or ").replace("ArrayLike", "array").replace("Callable[[array of float64], Any]", "function")
    kind = re.sub(r"Callable\[\[str, float\], object\]", "function", kind)
    return kind.replace("Any", "")


def table(class_name, defaults):
    """Lines of a table of the keywords of a class of _options.py; those that every function has are left out."""
    common = options()["Common"]
    rows = [(name, *about) for name, about in options()[class_name].items() if name not in common]
    if not rows:
        return []
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - keyword", "     - default", "     - values"]
    for name, kind, comment in rows:
        value = defaults.get(name, "")
        about = shown_type(kind)
        if comment:
            about = f"{about}{'; ' if about else ''}{comment}"
        about = re.sub(r'"([^"]*)"', r'``"\1"``', about).replace("*", r"\*")
        lines += [f"   * - ``{name}``", f"     - {f'``{value}``' if value != '' else ''}", f"     - {about}"]
    return ["", *lines, "", "And :ref:`keywords of every function <common-keywords>`.", ""]


def process_docstring(app, what, name, obj, settings, lines):
    """Replaces the last paragraph of a docstring, its keywords, by a table."""
    try:
        annotations = inspect.unwrap(obj).__annotations__ if callable(obj) else {}
    except AttributeError:
        annotations = {}
    match = re.fullmatch(r"Unpack\[(\w+)\]", str(annotations.get("options", "")))
    text = "\n".join(lines)
    text, _, keywords = text.partition("Keywords and defaults: ")
    # `name_` outside of code is a link to reStructuredText.
    parts = text.rstrip().split("`")
    parts[::2] = [re.sub(r"(?<=\w)_(?=\W|$)", r"\_", part) for part in parts[::2]]
    lines[:] = "`".join(parts).splitlines()
    if not match or not keywords:
        lines.append("")
        return
    defaults = dict(re.findall(r"(\w+)=('[^']*'|[^,;]+)", keywords.replace("\n", " ")))
    lines += table(match.group(1), defaults)


def process_signature(app, what, name, obj, settings, signature, returned):
    """Without the types of what every table and option may be."""
    if signature is None:
        return None
    # Sphinx writes `~typing.Any` for what it shows as `Any`.
    signature = re.sub(r": ~?(?:\w+\.)*Unpack\[[^\]]*\]|: ~?(?:typing\.)?Any\b", "", signature)
    return re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature), returned


def names_of(module):
    """What a module has for users: of its `__all__`, or else those of the package's that it defines."""
    place = getattr(vicinal, module)
    public = getattr(place, "__all__", None) or [
        name for name in vicinal.__all__ if getattr(getattr(vicinal, name), "__module__", "") == place.__name__]
    # Functions first, each kind in the order of the source.
    order = list(vars(place))
    chosen = [name for name in public if not name.startswith("__") and name != "Record"]
    return sorted(chosen, key=lambda name: (inspect.isclass(getattr(place, name)), order.index(name)))


def write(package, folder):
    common = options()["Common"]
    lines = ["Python", "======", "", "Everything is in the package ``vicinal``. :doc:`/python` introduces it. Shapes are in "
             "brackets, such as [n, d]. A keyword that is not given has the default of C++.", "", ".. _common-keywords:", "",
             "Keywords of every function that computes", "-" * 41, "", ".. list-table::", "   :header-rows: 1", "",
             "   * - keyword", "     - values"]
    for name, (kind, comment) in common.items():
        about = f"{shown_type(kind)}; {comment}".replace("*", r"\*")
        lines += [f"   * - ``{name}``", "     - " + re.sub(r'"([^"]*)"', r'``"\1"``', about)]
    lines.append("")
    for module, title, page in PARTS:
        lines += [title, "-" * len(title), "", f"Guide: :doc:`/{page}`.", ""]
        for name in names_of(module):
            public = getattr(vicinal, name, None)
            value = public or getattr(getattr(vicinal, module), name)
            place = f"vicinal.{name}" if public else f"vicinal.{module}.{name}"
            if inspect.isclass(value):
                lines += [f".. autoclass:: {place}", "   :members:", "   :inherited-members: Result, Record, dict, tuple, "
                          "Exception, ValueError, OSError, MemoryError, RuntimeError", ""]
            else:
                lines += [f".. autofunction:: {place}", ""]
    lines += ["vicinal.distributed", "-" * 19, "", "Guide: :doc:`/distributed`, also of ``vicinal.dask`` and "
              "``vicinal.spark``, whose functions have the same names.", ""]
    for name in vicinal.distributed.__all__:
        if name == "Division":
            continue  # a dictionary of keywords, which the guide lists
        if inspect.isclass(getattr(vicinal.distributed, name)):
            lines += [f".. autoclass:: vicinal.distributed.{name}", "   :members:", ""]
        else:
            lines += [f".. autofunction:: vicinal.distributed.{name}", ""]
    lines += ["vicinal.sklearn", "-" * 15, "", "Twelve estimators with the parameters, attributes and methods of "
              "scikit-learn's classes of the same names, and ``device``, ``threads`` and ``memory_limit``: "
              ":doc:`/scikit-learn-estimators`.", ""]
    (folder / "python.rst").write_text("\n".join(lines))
