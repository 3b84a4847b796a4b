"""Files of tables as people have them: JSON lines, bzip2, zip, one array of several, and numbers written for people."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pytest

ROWS = np.random.default_rng(3).normal(size=(30, 3)).round(3)
CSV = "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in ROWS)


def json_lines(rows=ROWS, names="abc"):
    return "".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows.tolist())


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def put(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return write


@pytest.fixture
def refused(vicinal, tmp_path):
    """The one sentence on stderr; nothing else is left behind."""

    def run(*arguments, code=3):
        before = sorted(tmp_path.iterdir())
        done = vicinal(*arguments, timeout=60)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert done.returncode == code and len(lines) == 1 and done.stdout == "", done.stderr
        assert sorted(tmp_path.iterdir()) == before
        return lines[0]

    return run


@pytest.fixture
def table_of(ok, tmp_path):
    def read(file, *words):
        ok("convert", file, "read.npy", *words)
        return np.load(tmp_path / "read.npy")

    return read


# ---- formats ---------------------------------------------------------------------------------------------------------

SAME_TABLE = {
    "objects.jsonl": json_lines(),
    "arrays.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS.tolist()),
    "marked.ndjson": "\ufeff\n" + json_lines().replace("\n", "\r\n\n"),
    "anyhow": json_lines().replace("{", " { ").replace(":", " :\t"),
    "x.csv.bz2": bz2.compress(CSV.encode()),
    "streams.bz2": bz2.compress(CSV[:100].encode()) + bz2.compress(CSV[100:].encode()),
    "x.jsonl.bz2": bz2.compress(json_lines().encode()),
    "x.jsonl.gz": gzip.compress(json_lines().encode()),
    "x.jsonl.xz": lzma.compress(json_lines().encode()),
    "x.zip": zipped({"folder/x.csv": CSV, "__MACOSX/folder/._x.csv": "z"}),
    "packed.zip": zipped({"x.jsonl.bz2": bz2.compress(json_lines().encode())}),
}


@pytest.mark.parametrize("name", SAME_TABLE)
def test_the_same_table(table_of, ok_json, put, name):
    put(name, SAME_TABLE[name])
    np.testing.assert_array_equal(table_of(name), ROWS)
    told = ok_json("info", name)
    assert told["arrays"][0]["shape"] == [30, 3] and [c["type"] for c in told["summary"]["columns"]] == ["number"] * 3
    if name != "arrays.jsonl":
        assert told["column_names"] == ["a", "b", "c"]
    packed = {".bz2": "bzip2", ".zip": "zip", ".gz": "gzip", ".xz": "xz"}.get("." + name.split(".")[-1], "none")
    assert told["compression"] == packed


def test_members_by_name(ok, table_of, refused, put, tmp_path):
    put("x.zip", zipped({"a.csv": CSV, "b.jsonl": json_lines(2 * ROWS)}))
    np.testing.assert_array_equal(table_of("x.zip:a.csv"), ROWS)
    np.testing.assert_array_equal(table_of("x.zip:b.jsonl"), 2 * ROWS)
    assert "x.zip:a.csv" in refused("convert", "x.zip", "o.npy", code=2)
    assert "no file 'c.csv'" in refused("convert", "x.zip:c.csv", "o.npy", code=2)
    np.savez(tmp_path / "x.npz", train=ROWS, other=ROWS + 1, kind=np.arange(30) % 2)
    np.testing.assert_array_equal(table_of("x.npz:other"), ROWS + 1)
    ok("classify", "x.npz:train", "x.npz:other", "--labels", "x.npz:kind", "-o", "by-name.csv")
    np.save(tmp_path / "other.npy", ROWS + 1)
    np.save(tmp_path / "train.npy", ROWS)
    np.save(tmp_path / "kind.npy", np.arange(30) % 2)
    ok("classify", "train.npy", "other.npy", "--labels", "kind.npy", "-o", "by-file.csv")
    assert (tmp_path / "by-name.csv").read_text() == (tmp_path / "by-file.csv").read_text()
    assert "x.npz" in refused("knn", "x.npz:nothing", code=2) and "member" in refused(
        "knn", "x.npz:train", "--member", "other", code=2)
    assert "have members" in refused("knn", "train.npy:a", code=2)
    (tmp_path / "a:b.npy").write_bytes((tmp_path / "train.npy").read_bytes())
    np.testing.assert_array_equal(table_of("a:b.npy"), ROWS)


def test_standard_input(command, tmp_path, put):
    import subprocess

    def run(words, source=""):
        return subprocess.run([command, *words], cwd=tmp_path, input=source, text=True, capture_output=True, timeout=60)

    put("x.csv", CSV)
    for words in (["convert", "-", "o.npy"], ["convert", "/dev/stdin", "o.npy"]):
        for source in (CSV, json_lines()):
            done = run(words, source)
            assert done.returncode == 0, done.stderr
            np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), ROWS)
            (tmp_path / "o.npy").unlink()
    # A command that looks at its file twice, and one that reads it twice.
    put("train.csv", CSV.replace("c\n", "kind\n", 1))
    for words, other in ((["classify", "train.csv", "-", "--label", "kind", "-k", "1"], "train.csv"),
                         (["knn", "-", "-", "-k", "1"], "x.csv")):
        source = (tmp_path / other).read_text()
        done = run([*words, "-o", "-"], source)
        assert done.returncode == 0, done.stderr
        named = [other if word == "-" else word for word in words]
        again = run([*named, "-o", "-"])
        assert done.stdout == again.stdout != ""


def test_written(ok, table_of, put, tmp_path):
    put("x.csv", 'name,x,kind\n"a ""b""",1.5,7\né,-2e-9,8\n')
    ok("convert", "x.csv", "numbers.jsonl", "--drop", "name", "--label", "kind")
    assert (tmp_path / "numbers.jsonl").read_text() == '{"x":1.5,"kind":7}\n{"x":-2e-09,"kind":8}\n'
    np.save(tmp_path / "plain.npy", ROWS)
    ok("convert", "plain.npy", "plain.jsonl.bz2")
    lines = bz2.decompress((tmp_path / "plain.jsonl.bz2").read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == ROWS.tolist()
    np.testing.assert_array_equal(table_of("plain.jsonl.bz2"), ROWS)


def test_json_lines_as_a_table_with_texts_and_labels(ok, ok_json, put, tmp_path):
    kinds = ["red", 'g"reen', "blue\nline", "\u00e9\U0001f600"]
    rows = [{"color": kinds[i % 4], "x": i % 5, "ok": i % 2 == 0, "class": "ab"[i % 3 % 2]} for i in range(40)]
    put("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    quoted = ['"' + row["color"].replace('"', '""') + '"' for row in rows]
    put("x.csv", "color,x,ok,class\n" + "".join(
        f"{color},{row['x']},{row['ok']},{row['class']}\n" for color, row in zip(quoted, rows)))
    words = ["--label", "class", "--categories", "onehot", "-k", 3]
    for name in ("x.jsonl", "x.csv"):
        ok("classify", name, name, *words, "-o", name + ".labels.csv")
    assert (tmp_path / "x.jsonl.labels.csv").read_text() == (tmp_path / "x.csv.labels.csv").read_text()
    columns = {c["name"]: c for c in ok_json("info", "x.jsonl")["summary"]["columns"]}
    assert (columns["color"]["type"], columns["color"]["distinct"], columns["ok"]["type"]) == ("text", 4, "truth")


JSON_FAULTS = {
    "ragged array": ("[1,2]\n[3]\n", ["line 2", "1 values", "2"]),
    "long array": ("[1,2]\n[3,4,5]\n", ["line 2", "more than 2"]),
    "new name": ('{"a":1}\n\n{"a":2,"b":3}\n', ["line 3", "'b'", "null"]),
    "name twice": ('{"a":1}\n{"a":2,"a":3}\n', ["line 2", "'a' twice"]),
    "name twice at first": ('{"a":1,"a":3}\n', ["line 1", "'a' twice"]),
    "name twice, spelled differently": ('{"a":1}\n{"a":2,"\\u0061":3}\n', ["line 2", "'a' twice"]),
    "array among objects": ('{"a":1}\n[2]\n', ["line 2", "no object"]),
    "nested": ('{"a":1,"b":2}\n{"a":1,"b":{"c":2}}\n', ["line 2", "'b'", "an object", "flatten"]),
    "deep": ('{"a":1}\n{"a":' + "[" * 100000 + "]" * 100000 + "}\n", ["line 2", "an array"]),
    "deep at first": ("[" * 100000 + "\n", ["one value of JSON"]),
    "null": ('{"a":1}\n{"a":null}\n', ["line 2", "'a'", "missing"]),
    "missing name": ('{"a":1,"b":2}\n{"b":3}\n', ["line 2", "'a'", "missing"]),
    "text": ('{"a":1}\n{"a":"oak"}\n', ["line 2", "'a'", "'oak'", "not a number"]),
    "line numbers behind a line end in a text": (
        '{"t":"a\\nb","a":1}\n{"t":"c","a":2}\n{"t":"d","a":"x"}\n', ["line 3", "'a'", "'x'"]),
    "nan": ('{"a":1}\n{"a":NaN}\n', ["line 2", "'NaN'", "finite"]),
    "infinity": ('{"a":1}\n{"a":-Infinity}\n', ["line 2", "'-Infinity'", "finite"]),
    "huge": ('{"a":1}\n{"a":1e999}\n', ["line 2", "'1e999'", "too large"]),
    "no number": ('{"a":1}\n{"a":01}\n', ["line 2", "'01'", "no value"]),
    "word": ('{"a":1}\n{"a":True}\n', ["line 2", "'True'", "no value"]),
    "cut": ('{"a":1,"b":2}\n{"a":3,"b"', ["line 2", "colon"]),
    "cut text": ('{"a":1}\n{"a', ["line 2", "never closed"]),
    "escape": ('{"a":1}\n{"a":"\\x"}\n', ["line 2", "escape"]),
    "half an escape": ('{"a":1}\n{"a":"\\u12"}\n', ["line 2", "hexadecimal"]),
    "behind": ('{"a":1}\n{"a":2} x\n', ["line 2", "behind"]),
    "no comma": ('{"a":1,"b":2}\n{"a":2 "b":3}\n', ["line 2", "comma"]),
    "document": (json.dumps([{"a": 1}, {"a": 2}], indent=1), ["one value of JSON", "jq -c"]),
    "document in a line": (json.dumps([{"a": 1}, {"a": 2}]), ["one value of JSON", "lines=True"]),
    "pandas' columns": (json.dumps({"a": {"0": 1, "1": 2}}), ["one value of JSON"]),
    "no values": ("{}\n{}\n", ["line 1", "no values"]),
}


@pytest.mark.parametrize("text, words", JSON_FAULTS.values(), ids=JSON_FAULTS.keys())
def test_json_lines_that_are_none(refused, put, text, words):
    put("x.jsonl", text)
    arguments = ["--drop", "t"] if '"t"' in text else []
    sentence = refused("convert", "x.jsonl", "o.npy", *arguments)
    assert "x.jsonl" in sentence
    for word in words:
        assert word in sentence, sentence


def test_options_of_csv_are_refused_for_json_lines(refused, put):
    put("x.jsonl", json_lines())
    for words in (["--delimiter", ";"], ["--decimal", ","], ["--no-header"], ["--member", "a"]):
        assert words[0].strip("-").split("-")[-1] in refused("convert", "x.jsonl", "o.npy", *words, code=2)


def false_size(content):
    """A zip archive whose directory says that its member has 4 GB."""
    at = content.rindex(b"PK\1\2") + 24
    return content[:at] + b"\xff\xff\xff\xf0" + content[at + 4:]


PACKED = bz2.compress(CSV.encode())
HOSTILE = {
    "cut.bz2": (PACKED[:-7], ["truncated"]),
    "half.bz2": (PACKED[: len(PACKED) // 2], ["truncated"]),
    "damaged.bz2": (PACKED[:60] + b"zzzz" + PACKED[64:], ["damaged"]),
    "behind.bz2": (PACKED + b"something", ["9 bytes of something else"]),
    "second-cut.bz2": (PACKED + PACKED[:30], ["truncated"]),
    "nothing.bz2": (bz2.compress(b""), ["empty"]),
    "twice.bz2": (bz2.compress(PACKED), ["packed twice", "bzip2"]),
    "false.zip": (false_size(zipped({"x.csv": CSV})), ["false.zip:x.csv", "fewer bytes"]),
    "cut.zip": (zipped({"x.csv": CSV})[:-10], ["truncated"]),
    "crc.zip": ((lambda z: z.replace(z[14:18], b"zzzz"))(zipped({"x.csv": CSV})), ["checksum"]),
    "folders.zip": (zipped({"a/": ""}), ["no files"]),
    "book.xlsx": (zipped({"xl/workbook.xml": "<workbook/>", "other": "x"}), ["Excel workbook", "CSV"]),
    "model.pt": (zipped({"m/data.pkl": "x", "m/data/0": "x"}), ["PyTorch", "numpy.save"]),
    "x.parquet": (b"PAR1\x15\x04" + bytes(30) + b"PAR1", ["Parquet", "pandas.read_parquet"]),
    "x.feather": (b"ARROW1\0\0" + bytes(30), ["Arrow", "pandas.read_feather"]),
    "x.pkl": (b"\x80\x04\x95" + bytes(30), ["pickle", "numpy.save"]),
    "x.mat": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(90), ["MATLAB", "-v7.3"]),
    "utf-16.csv": (CSV.encode("utf-16"), ["UTF-16", "iconv"]),
    "no-mark.csv": (CSV.encode("utf-16-le"), ["UTF-16", "iconv"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_cannot_be_read(refused, put, name):
    content, words = HOSTILE[name]
    put(name, content)
    sentence = refused("convert", name, "o.npy")
    assert name in sentence
    for word in words:
        assert word in sentence, sentence


def test_a_sparse_matrix_of_scipy(refused, tmp_path):
    np.savez(tmp_path / "x.npz", indices=np.arange(3), indptr=np.arange(4), format=np.array(b"csr"),
             shape=np.array([3, 3]), data=np.ones(3))
    assert "sparse matrix of SciPy" in refused("convert", "x.npz", "o.npy")


# ---- numbers as people write them ------------------------------------------------------------------------------------

WRITTEN = {
    "thousands": ('"1,234.5"', "marks between thousands"),
    "thousands with points": ("1.234.567", "marks between thousands"),
    "thousands with apostrophes": ("1'234", "marks between thousands"),
    "thousands with blanks": ("1 234", "marks between thousands"),
    "thousands with no-break spaces": ("12\u202f345", "marks between thousands"),
    "money": ('"$1,200"', "an amount of money"),
    "money in euros": ("12 \u20ac", "an amount of money"),
    "money by code": ("USD 12.50", "an amount of money"),
    "percent": ("12.5 %", "a percentage"),
    "date": ("2024-01-31", "a date"),
    "date and time": ("2024-01-31T10:15:00+01:00", "a date"),
    "american date": ("1/31/2024", "a date"),
    "german date": ("31.1.2024", "a date"),
    "date with a month": ("31-Jan-2024", "a date"),
    "time": ("10:15:30", "a time"),
    "decimal comma": ('"1,5"', "a decimal comma"),
}


@pytest.mark.parametrize("written, what", WRITTEN.values(), ids=WRITTEN.keys())
def test_numbers_that_are_only_written_differently(refused, put, written, what):
    """Each is named with its place and what to do, and --categories is neither offered nor takes it for a text."""
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(5)) + f"5,{written},1\n"
    put("x.csv", "a,price,class\n" + rows)
    for words in ([], ["--categories", "ordinal"]):
        sentence = refused("classify", "x.csv", "x.csv", "--label", "class", *words)
        for word in ("x.csv", "line 7", "'price'", what):
            assert word in sentence, sentence
        assert "--categories" not in sentence and ": " in sentence.split(what)[1], sentence


def test_words_are_offered_as_categories_and_ids_are_not(refused, ok, put):
    words = ["oak", "ash", "elm"]
    put("x.csv", "tree,a,class\n" + "".join(f"{words[i % 3]},{i % 5},{i % 2}\n" for i in range(80)))
    assert "--categories" in refused("classify", "x.csv", "x.csv", "--label", "class")
    ok("classify", "x.csv", "x.csv", "--label", "class", "--categories", "onehot", "-q")
    put("ids.csv", "name,a,class\n" + "".join(f"n{i:03d},{i % 5},{i % 2}\n" for i in range(80)))
    for command in (["classify", "ids.csv", "ids.csv", "--label", "class"], ["lof", "ids.csv"],
                    ["kmeans", "ids.csv", "-c", 2]):
        sentence = refused(*command, "--categories", "ordinal")
        assert "'name'" in sentence and "80 different texts in 80 rows" in sentence
    ok("classify", "ids.csv", "ids.csv", "--label", "class", "--categories", "ordinal", "--text", "name", "-q")
    assert "--text" in refused("kmeans", "x.csv", "-c", 2, "--text", "tree", code=2)


# ---- dialects --------------------------------------------------------------------------------------------------------

DIALECTS = {
    # pandas: to_csv(), to_csv(index=False) of an array, an index and a header of numbers, na_rep
    "pandas": (",a,b\n0,1.5,True\n1,2.5,False\n2,3.5,True\n", [[1.5, 1], [2.5, 0], [3.5, 1]]),
    "pandas, an array": ("0,1,2\n0.5,7,8\n1.5,5,6\n", [[0.5, 7, 8], [1.5, 5, 6]]),
    "pandas, an array with its index": (",0,1\n0,7,8\n1,5,6\n", [[7, 8], [5, 6]]),
    "pandas, index read and written again": ("Unnamed: 0,a\n0,7\n1,5\n", [[7], [5]]),
    "pandas, empty": (",a,b\n0,1.0,\n1,,2.0\n", "line 2, column 'b' is empty (a missing value)"),
    "pandas, NA": ("a,b\n1,NA\n2,3\n", "line 2, column 'b' is 'NA' (a missing value)"),
    "pandas, NaN": ("a,b\n1,NaN\n2,3\n", "line 2, column 'b' is 'NaN'"),
    "polars": ("a,b,ok\n1,2.0,true\n3,4.5,false\n", [[1, 2, 1], [3, 4.5, 0]]),
    "polars, null": ("a,b\n1,\n3,4.5\n", "line 2, column 'b' is empty (a missing value)"),
    # R: write.csv with row names, with names of rows that are words, write.table, write.csv2
    "R": ('"","a","b"\n"1",1.5,TRUE\n"2",2.5,FALSE\n', [[1.5, 1], [2.5, 0]]),
    "R, names of rows": ('"","mpg"\n"Mazda RX4",21\n"Valiant",18.1\n', "column 0 is 'Mazda RX4', not a number"),
    "R, write.table": ('"a" "b"\n"1" 1.5 7\n"2" 2.5 8\n', [[1.5, 7], [2.5, 8]]),
    "R, write.csv2": ('"";"a";"b"\n"1";1,5;7\n"2";2,5;8\n', [[1.5, 7], [2.5, 8]]),
    "R, NA": ('"a","b"\n1,NA\n2,3\n', "line 2, column 'b' is 'NA' (a missing value)"),
    # LibreOffice and Excel
    "Excel, English": ("\ufeffa,b\r\n1.5,2\r\n3,4\r\n", [[1.5, 2], [3, 4]]),
    "Excel, German": ("\ufeffa;b\r\n1,5;2\r\n3;4,25\r\n", [[1.5, 2], [3, 4.25]]),
    "Excel, sep": ("sep=;\r\na;b\r\n1,5;2\r\n3;4,25\r\n", [[1.5, 2], [3, 4.25]]),
    "Excel, sep and commas": ("sep=,\na,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
    "Excel, thousands": ('a,b\r\n"1,234.50",2\r\n3,4\r\n', "'1,234.50', a number with marks between thousands"),
    "Excel for Mac": ("a,b\r1,2\r3,4\r", "lines that end by CR alone"),
    "Excel, Unicode text": ("a\tb\n1\t2\n".encode("utf-16"), "UTF-16 text"),
    "LibreOffice, all quoted": ('"a","b"\n"1.5","2"\n"3","4"\n', [[1.5, 2], [3, 4]]),
    "LibreOffice, tabs": ("a\tb\n1.5\t2\n3\t4\n", [[1.5, 2], [3, 4]]),
}


@pytest.mark.parametrize("text, wanted", DIALECTS.values(), ids=DIALECTS.keys())
def test_dialects(table_of, refused, put, text, wanted):
    put("x.csv", text)
    if isinstance(wanted, str):
        assert wanted in refused("convert", "x.csv", "o.npy")
    else:
        np.testing.assert_array_equal(table_of("x.csv"), wanted)


# ---- info ------------------------------------------------------------------------------------------------------------


def test_a_summary_of_columns_of_every_type(ok, ok_json, put):
    put("x.csv", "name,n,x,when,ok,empty,price\n"
        "oak,1,0.5,2024-01-31,yes,,1 %\nash,2,NaN,2024-02-01,no,NA,2 %\noak,3,2.5,2024-01-31,yes,,3 %\n")
    told = {column["name"]: column for column in ok_json("info", "x.csv")["summary"]["columns"]}
    wanted = {  # type, distinct, missing, NaN
        "name": ("text", 2, 0, 0), "n": ("whole", 3, 0, 0), "x": ("number", 2, 0, 1), "when": ("date", 2, 0, 0),
        "ok": ("truth", 2, 0, 0), "empty": ("none", 0, 3, 0), "price": ("written number", 3, 0, 0)}
    assert {n: (c["type"], c["distinct"], c["missing"], c["nan"]) for n, c in told.items()} == wanted
    assert (told["name"]["first"], told["name"]["last"]) == ("ash", "oak")
    assert (told["x"]["min"], told["x"]["max"], told["x"]["mean"]) == (0.5, 2.5, 1.5)
    text = ok("info", "x.csv")
    assert "3 rows of 7 columns" in text and "not numbers: 3" in text
    line = next(line for line in text.splitlines() if line.startswith("x "))
    assert line.split() == ["x", "number", "2", "1", "0.5", "2.5", "1.5"]


def test_values_beyond_those_counted(ok_json, put, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(400_000.0).reshape(-1, 1))
    told = ok_json("info", "x.npy")["summary"]["columns"][0]
    assert told["distinct_is_least"] and 200_000 < told["distinct"] < 400_000
    np.save(tmp_path / "x.npy", np.arange(400_000.0).reshape(-1, 1) % 5)
    told = ok_json("info", "x.npy")["summary"]["columns"][0]
    assert not told["distinct_is_least"] and told["distinct"] == 5


def test_models(ok, ok_json, refused, put):
    rows = [f"{'red' if i % 3 else 'blue'},{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(60)]
    put("x.csv", "color,x,y,class\n" + "".join(rows))
    words = ["--categories", "onehot", "--scale", "standard"]
    ok("classify", "x.csv", "--label", "class", "-k", 3, "--save-model", "m", *words)
    model = ok_json("info", "m")["model"]
    assert (model["kind"], model["rows"], model["k"], model["metric"]) == ("classify", 60, 3, "euclidean")
    assert model["classes"] == [["a", "b"]] and model["scale"] == "standard" and model["compared_columns"] == 4
    assert model["columns"][0] == {"name": "color", "type": "text", "texts": 2, "codes": "onehot"}
    text = ok("info", "m")
    assert "model of classify" in text and "color (2 texts, onehot), x, y" in text
    drop = ["--drop", "class", "--drop", "color"]
    ok("regress", "x.csv", "--target", "y", "--save-model", "m", *drop)
    assert (ok_json("info", "m")["model"]["kind"], ok_json("info", "m")["model"]["targets"]) == ("regress", 1)
    ok("kmeans", "x.csv", "-c", 2, "--save-model", "m", *drop)
    model = ok_json("info", "m")["model"]
    assert (model["kind"], model["clusters"], sum(model["sizes"])) == ("kmeans", 2, 60)
    ok("lof", "x.csv", "-k", 4, "--save-model", "m", *drop)
    model = ok_json("info", "m")["model"]
    assert (model["kind"], model["k"], model["rows"], model["score"]) == ("lof", 4, 60, "lof")
    assert "--report" in refused("info", "m", "--report", "r.html", code=2)


# ---- where results go ------------------------------------------------------------------------------------------------

RESULTS = {
    "knn": "knn x.csv -k 2",
    "radius": "radius x.csv -r 1",
    "count": "radius x.csv -r 1 --count",
    "classify": "classify x.csv x.csv --label c -k 3",
    "regress": "regress x.csv x.csv --target c -k 3",
    "kmeans": "kmeans x.csv -c 3",
    "lof": "lof x.csv -k 4",
    "lle": "lle x.csv -k 8",
    "cocluster": "cocluster edges.csv",
    "convert": "convert x.csv",
    "generate": "generate blobs -n 20",
}


@pytest.mark.parametrize("arguments", RESULTS.values(), ids=RESULTS.keys())
def test_results_on_standard_output_and_packed(vicinal, put, tmp_path, arguments):
    put("x.csv", "a,b,c\n" + "".join(f"{a},{b},{i % 3}\n" for i, (a, b, _) in enumerate(ROWS)))
    put("edges.csv", "a,b\n1,2\n2,3\n7,8\n")
    words = arguments.split()
    to = [] if words[0] == "convert" else ["-o"]
    done = vicinal(*words, *to, "o.csv")
    assert done.returncode == 0, done.stderr
    wanted = (tmp_path / "o.csv").read_text()
    assert wanted.count("\n") > 3
    for more in ([], ["--json"]):
        done = vicinal(*words, *to, "-", *more, timeout=60)
        assert done.returncode == 0 and done.stdout == wanted, done.stderr
        if more:
            json.loads(done.stderr)
    for name, unpack in (("o.csv.gz", gzip), ("o.csv.bz2", bz2), ("o.csv.xz", lzma)):
        done = vicinal(*words, *to, name, timeout=60)
        assert done.returncode == 0, done.stderr
        assert unpack.decompress((tmp_path / name).read_bytes()).decode() == wanted
