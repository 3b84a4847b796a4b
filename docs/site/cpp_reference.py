"""The reference of C++: a page for each public header, from its declarations and their comments.

The headers are formatted by clang-format and have one form (CONTRIBUTING.md): `///` before a declaration, or `///<`
behind it, in the namespace `vicinal`. Declarations that follow each other without a comment between are overloads of one
comment. What is private or of another namespace is left out. A declaration that Sphinx cannot read fails the build.
"""

import re

PLACE = re.compile(r"docs/([\w-]+)\.md")


class Item:
    """A declaration with its comment; `members` of a class, struct or enum."""

    def __init__(self, kind, declarations, comment, members=()):
        self.kind = kind
        self.declarations = declarations
        self.comment = comment
        self.members = list(members)


def depth(text):
    """How many brackets of `text` are open, without those in comments, texts and characters."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', '""', text)
    return sum(bare.count(sign) for sign in "({[") - sum(bare.count(sign) for sign in ")}]")


def statements(lines):
    """(comment lines, code, whether a blank line or a comment stands before it) of each statement."""
    comment, code, apart = [], [], True
    found = []
    for line in lines:
        text = line.strip()
        if code and depth(" ".join(code)) > 0 and text.startswith("//"):
            continue  # of a member, or within a body
        if text.startswith("///<") and not code and found:
            found[-1][0].append(text[4:].strip())
        elif text.startswith("///"):
            comment.append(text[3:].removeprefix(" "))
        elif text.startswith("//") or not text:
            apart = apart or not code
        elif not code and re.fullmatch(r"(public|private|protected):", text):
            found.append(([], text, True))
        else:
            line_code, _, trailing = text.partition("///<")
            line_code = re.sub(r"\s+// .*$", "", line_code)
            code.append(line_code.rstrip())
            whole = " ".join(code)
            if trailing and depth(whole) == 0:
                comment.append(trailing.strip())
            if depth(whole) == 0 and re.search(r"[;}]$", whole) and not re.match(r"namespace\b", whole):
                found.append((comment, "\n".join(code), apart or bool(comment)))
                comment, code, apart = [], [], False
    return found


def clean(declaration):
    """As Sphinx reads it: without bodies, initializers of constructors and marks for the compiler."""
    text = re.sub(r"\s+", " ", declaration).strip()
    text = re.sub(r"\bVICINAL_API |\[\[nodiscard\]\] |\binline ", "", text)
    if is_function(text) and not re.match(r"constexpr\b(?!.*\)\s*noexcept)", text):
        at, level = text.index("("), 0
        for end in range(at, len(text)):
            level += (text[end] == "(") - (text[end] == ")")
            if level == 0 and text[end + 1 : end + 2] != "(":
                break
        tail = re.match(r"( const)?( noexcept)?", text[end + 1 :]).group()
        text = text[: end + 1] + tail
    return text.rstrip(";").strip()


def enumerators(body):
    """Items of `name,  ///< comment` lines, or of names on one line."""
    found = []
    for line in body:
        text = line.strip()
        if text.startswith("///<") and found:
            found[-1].comment.append(text[4:].strip())
        elif text and not text.startswith("//"):
            code, _, comment = text.partition("///<")
            for name in re.findall(r"(\w+)(?: = \w+)?\s*(?:,|$)", re.sub(r"\s+//.*", "", code).strip()):
                found.append(Item("enumerator", [name], []))
            if comment:
                found[-1].comment.append(comment.strip())
    return found


def items(lines, hidden=False):
    """Items of the lines of a namespace or of a class; `hidden`: a class begins with private members."""
    found, position = [], 0
    for comment, code, apart in statements(lines):
        if code in ("public:", "private:", "protected:"):
            hidden = code != "public:"
            continue
        head = code.split("{")[0]
        if hidden or re.match(r"friend\b|struct \w+;|class \w+;|~", code):
            continue
        scope = re.match(r"(enum class|enum|class|struct) (?:VICINAL_API )?(\w+)((?:<.*>)?(?: : [\w: ]+)?)", head)
        if scope and "{" in code:
            body = code[code.index("{") + 1 : code.rindex("}")].split("\n")
            # Statements keep code only; comments of members are in the source.
            body = source_of(lines, code) or body
            kind = {"enum class": "enum-class", "enum": "enum"}.get(scope.group(1), scope.group(1))
            members = enumerators(body) if kind.startswith("enum") else items(body, kind == "class")
            found.append(Item(kind, [scope.group(2) + scope.group(3).rstrip()], comment, members))
            continue
        if re.search(r"= delete;|operator=", code):
            continue
        kind = "type" if code.startswith("using ") else "function" if is_function(code) else "member"
        declaration = " ".join(code.removeprefix("using ").rstrip(";").split()) if kind == "type" else clean(code)
        if " = {." in declaration:  # Sphinx reads no names in an initializer
            declaration, _, value = declaration.partition(" = ")
            comment = [*comment, f"Default: `{value}`."]
        # An overload, which the same comment describes.
        if not apart and found and found[-1].kind == kind == "function" and not comment:
            if name_of(found[-1].declarations[0]) == name_of(declaration):
                found[-1].declarations.append(declaration)
                continue
        found.append(Item(kind, [declaration], comment))
    return found


def name_of(declaration):
    return re.search(r"([\w~]+|operator\S+)\s*\(", declaration).group(1)


def is_function(code):
    """`T f(...)` and not `std::function<void(int)> f;` or a value in brackets."""
    bare = code.split("=")[0] if " = " in code.split("(")[0] else code
    while "<" in bare:
        shorter = re.sub(r"<[^<>]*>", "", bare)
        if shorter == bare:
            break
        bare = shorter
    return bool(re.search(r"[\w~\]=]\s*\(", bare.split("{")[0]))


def source_of(lines, code):
    """The lines between the braces of a statement, with their comments."""
    first = code.split("\n")[0]
    for start, line in enumerate(lines):
        if line.strip().startswith(first):
            body, text = [], ""
            for index in range(start, len(lines)):
                bare = re.sub(r"\s*//.*", "", lines[index])
                text += bare + "\n"
                body.append(lines[index])
                if "{" in text and depth(text) == 0:
                    if index == start:
                        return None
                    opened = next(i for i, one in enumerate(body) if "{" in re.sub(r"//.*", "", one))
                    return body[opened + 1 : -1]
    return None


def escaped(text):
    """Prose of a comment as reStructuredText; `code` stays code, and pages become links."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        part = re.sub(r"([*|\\])", r"\\\1", parts[index])
        part = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", part)
        part = re.sub(r"(?<=FILE):(?=\w)", r"\\:", part)  # no address
        parts[index] = PLACE.sub(r":doc:`\1 </\1>`", part)
    for index in range(1, len(parts), 2):
        parts[index] = f"``{parts[index]}``"
    return "".join(parts)


def prose(lines, indent):
    """Paragraphs of a comment, indented."""
    paragraphs = "\n".join(lines).strip("\n").split("\n\n") if lines else []
    return [f"{indent}{escaped(' '.join(paragraph.split()))}\n" for paragraph in paragraphs]


def directive(item, indent=""):
    inner = indent + "   "
    head = f"{indent}.. cpp:{item.kind}:: "
    lines = [head + ("\n" + " " * len(head)).join(item.declarations), ""]
    lines += prose(item.comment, inner)
    for member in item.members:
        lines += directive(member, inner)
    return [*lines, ""] if lines[-1] else lines


def page(path):
    text = path.read_text()
    about = re.match(r"(?:// .*\n)+", text).group()
    title = f"{path.name}"
    lines = [title, "=" * len(title), ""]
    lines += prose([line[3:] for line in about.splitlines()], "")
    lines += [f"``#include <vicinal/{path.name}>``, or ``<vicinal/vicinal.hpp>`` for all headers.", ""]
    match = re.search(r"^namespace vicinal \{\n(.*)^\}  // namespace vicinal", text, re.MULTILINE | re.DOTALL)
    inside = re.sub(r"^namespace \w+ \{\n(?:.*\n)*?\}(?:  // namespace \w+)?\n", "", match.group(1) if match else "",
                    flags=re.MULTILINE)
    found = items(inside.split("\n"))
    macros = re.findall(r"^#define (VICINAL_VERSION\w*)", text, re.MULTILINE)
    if macros:
        found = [Item("macro", [name], []) for name in macros]
        lines += [line for item in found for line in (f".. c:macro:: {item.declarations[0]}", "")]
        return "\n".join(lines), found
    lines += [".. cpp:namespace:: vicinal", ""]
    for item in found:
        lines += directive(item)
    return "\n".join(lines) + "\n", found


def write(headers, folder):
    """Writes reference/cpp.rst and a page for each header; returns by the header's name its page in the site."""
    (folder / "cpp").mkdir()
    places, rows = {}, []
    for path in sorted(headers.glob("*.hpp")):
        if path.name == "vicinal.hpp":
            continue
        text, found = page(path)
        (folder / "cpp" / f"{path.stem}.rst").write_text(text)
        places[path.name] = f"reference/cpp/{path.stem}.rst"
        names = [name_of(item.declarations[0]) if item.kind == "function" else
                 re.match(r"(?:.*?\b)?(\w+)(?:\s*(?:=|:|<|$))", item.declarations[0]).group(1) for item in found]
        header = path.read_text()
        exported = re.findall(r"^(?:class|struct) VICINAL_API (\w+)", header, re.MULTILINE)
        exported += re.findall(r"^VICINAL_API [^;{(]*?(\w+)\(", header, re.MULTILINE)
        if missing := set(exported) - set(names):
            raise SystemExit(f"{path}: the reference lacks {', '.join(sorted(missing))}")
        rows.append((path.stem, list(dict.fromkeys(names))))
    lines = ["C++", "===", "", "Everything is in the namespace ``vicinal``. Shapes are in brackets, such as [n, d]; "
             "errors are ``vicinal::Error`` with the code that is named.", "", ".. list-table::", "   :header-rows: 1", "",
             "   * - header", "     - declares"]
    for stem, names in rows:
        lines += [f"   * - :doc:`{stem}.hpp <cpp/{stem}>`", f"     - {', '.join(f'``{name}``' for name in names)}"]
    lines += ["", ".. toctree::", "   :hidden:", ""] + [f"   cpp/{stem}" for stem, _ in rows]
    (folder / "cpp.rst").write_text("\n".join(lines) + "\n")
    return places
