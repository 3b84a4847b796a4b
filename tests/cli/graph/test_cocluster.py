"""`vicinal cocluster`: groups of ids from a file of edges, the file of groups, and what is refused."""

import csv
import random

import pytest

USAGE, BAD_DATA, OVER_MEMORY = 2, 3, 4
METHODS = ["components", "closure", "product_serial", "product_global", "product_tiled"]

# The paper's example: A1-{B2, B3}, A2-B3, A3-B3. B1 is there by an edge that --above 0 leaves out.
EXAMPLE = "old,new,area\nA1,B2,1\nA1,B3,0.5\nA2,B3,2\nA3,B3,3\nA3,B1,0\n"


def groups_of(path):
    """{(side, id): (group, relation)} of a file that -o wrote, and its rows."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["side"], row["id"]): (int(row["group"]), row["relation"]) for row in rows}, rows


def groups_by_walking(edges):
    """The members of each group, by walks from every id."""
    near = {}
    for a, b in edges:
        near.setdefault(("a", a), []).append(("b", b))
        near.setdefault(("b", b), []).append(("a", a))
    seen, groups = set(), []
    for start in near:
        if start in seen:
            continue
        group, left = set(), [start]
        while left:
            member = left.pop()
            if member not in group:
                group.add(member)
                left += near[member]
        seen |= group
        groups.append(frozenset(group))
    return set(groups)


@pytest.fixture
def example(tmp_path):
    (tmp_path / "edges.csv").write_text(EXAMPLE)


@pytest.mark.parametrize("method", METHODS)
def test_the_papers_example(ok, ok_json, example, tmp_path, method):
    found = ok_json("cocluster", "edges.csv", "--above", 0, "--method", method, "-o", "groups.csv")
    assert found["groups"] == 2 and found["edges"] == 4 and found["plan"]["method"] == method
    assert found["relations"] == {"1:1": 0, "1:n": 0, "n:1": 0, "n:m": 1, "1:0": 0, "0:1": 1}
    assert found["largest"] == {"count_a": 3, "count_b": 2}
    assert found["nonzeros"] == ([] if method == "components" else [22, 26, 26])
    groups, rows = groups_of(tmp_path / "groups.csv")
    assert groups == {
        ("a", "A1"): (0, "n:m"), ("a", "A2"): (0, "n:m"), ("a", "A3"): (0, "n:m"),
        ("b", "B1"): (1, "0:1"), ("b", "B2"): (0, "n:m"), ("b", "B3"): (0, "n:m"),
    }  # fmt: skip
    assert [(row["count_a"], row["count_b"]) for row in rows] == [("3", "2")] * 3 + [("0", "1")] + [("3", "2")] * 2
    everything = ok("cocluster", "edges.csv", "--method", method)
    assert "n:m" in everything and "0:1" not in everything


def test_ids_of_any_kind_survive(ok_json, tmp_path):
    ids = ["007", "7", "7.0", "-1", "a,b", 'say "x"', "ä", "9007199254740993", "1e3"]
    with open(tmp_path / "edges.csv", "w", newline="") as file:
        csv.writer(file).writerows([["from", "to"]] + [[one, one] for one in ids])
    ok_json("cocluster", "edges.csv", "--header", "-o", "groups.csv")
    groups, _ = groups_of(tmp_path / "groups.csv")
    assert set(groups) == {(side, one) for side in "ab" for one in ids}
    assert len(set(groups.values())) == len(ids)
    assert all(groups["a", one] == groups["b", one] for one in ids)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_random_edges(ok_json, tmp_path, delimiter):
    draw = random.Random(3)
    edges = [(f"p{draw.randrange(300)}", f"q{draw.randrange(300)}") for _ in range(350)]
    (tmp_path / "edges.csv").write_text("".join(f"{a}{delimiter}{b}\n" for a, b in edges))
    found = ok_json("cocluster", "edges.csv", "--no-header", "-o", "groups.csv")
    groups, _ = groups_of(tmp_path / "groups.csv")
    by_group = {}
    for member, (group, _) in groups.items():
        by_group.setdefault(group, set()).add(member)
    expected = groups_by_walking(edges)
    assert {frozenset(members) for members in by_group.values()} == expected
    assert found["groups"] == len(expected) and found["edges"] == 350


def test_columns_by_name_and_position(ok_json, tmp_path):
    (tmp_path / "edges.csv").write_text("area,new,note,old\n1,x,k,u\n0.5,y,l,v\n0.1,x,m,v\n")
    by_name = ok_json("cocluster", "edges.csv", "--a", "old", "--b", "new", "--weight", "area", "--above", 0.2)
    by_position = ok_json("cocluster", "edges.csv", "--a", 3, "--b", 1, "--weight", 0, "--above", 0.2)
    assert by_name["groups"] == by_position["groups"] == 2
    # Without weights the third edge joins all.
    assert ok_json("cocluster", "edges.csv", "--a", "old", "--b", "new")["groups"] == 1


def test_splitting(ok, ok_json, tmp_path):
    # Two squares of much weight and a sliver between them, which is what is cut.
    edges = [(f"{side}{i}", f"{side}{j}", 5) for side in "pq" for i in range(3) for j in range(3)]
    lines = [f"{a},{b},{weight}\n" for a, b, weight in [*edges, ("p0", "q2", 0.01)]]
    (tmp_path / "edges.csv").write_text("a,b,weight\n" + "".join(lines))
    assert ok_json("cocluster", "edges.csv")["groups"] == 1
    for limit in (("--split-members", 6), ("--split-steps", 3)):
        found = ok_json("cocluster", "edges.csv", *limit, "-o", "groups.csv", "--cut-edges", "cut.csv")
        assert found["groups"] == 2 and found["split"] == {"groups": 1, "cut_edges": 1}
        assert (tmp_path / "cut.csv").read_text() == "a,b,weight\np0,q2,0.01\n"
        groups, _ = groups_of(tmp_path / "groups.csv")
        assert {member[1][0] + str(group) for member, (group, _) in groups.items()} == {"p0", "q1"}
    assert "2" in ok("cocluster", "edges.csv", "--split-members", 6)


def test_spectral_clusters(ok, ok_json, tmp_path):
    # Two squares and a sliver between them: one component, two clusters.
    edges = [(f"{side}{i}", f"{side}{j}", 5) for side in "pq" for i in range(3) for j in range(3)]
    lines = [f"{a},{b},{weight}\n" for a, b, weight in [*edges, ("p0", "q2", 0.01)]]
    (tmp_path / "edges.csv").write_text("a,b,weight\n" + "".join(lines))
    found = ok_json("cocluster", "edges.csv", "--method", "spectral", "-c", 2, "-o", "groups.csv")
    assert found["groups"] == 2 and found["plan"]["method"] == "spectral" and found["plan"]["device"] == "cpu"
    assert found["spectral"]["singular_values"][0] == 1 and found["spectral"]["residual"] < 1e-9
    groups, rows = groups_of(tmp_path / "groups.csv")
    assert {(member[0], member[1][0], group, relation) for member, (group, relation) in groups.items()} == {
        ("a", "p", 0, "n:m"), ("b", "p", 0, "n:m"), ("a", "q", 1, "n:m"), ("b", "q", 1, "n:m")
    }  # fmt: skip
    assert {(row["count_a"], row["count_b"]) for row in rows} == {("3", "3")}
    assert "n:m" in ok("cocluster", "edges.csv", "--method", "spectral", "-c", 2, "--seed", 5, "--runs", 1)


def test_explain_and_json(ok, ok_json, example, tmp_path):
    text = ok("cocluster", "edges.csv", "--explain", "-o", "groups.csv")
    assert "components" in text and "memory" in text
    assert ok_json("cocluster", "edges.csv", "--explain")["plan"]["memory_bytes"] > 0
    assert not (tmp_path / "groups.csv").exists()


@pytest.mark.parametrize(
    "text, words",
    [
        ("a,b,w\nx,y,-1\n", ["edges.csv", "row 0", "column 2", "-1"]),
        ("a,b,w\nx,y,1\nx,z,nan\n", ["edges.csv", "line 3"]),
        ("a,b,w\nx,y,1\nx,z,inf\n", ["edges.csv", "line 3"]),
        ("a,b,w\nx,y,1\nx,z\n", ["edges.csv", "line 3"]),
        ("a,b,w\nx,y,1\nx,z,much\n", ["edges.csv", "line 3"]),
        ("", ["edges.csv"]),
    ],
)
def test_bad_files(vicinal, tmp_path, text, words):
    (tmp_path / "edges.csv").write_text(text)
    (tmp_path / "groups.csv").write_text("kept")
    done = vicinal("cocluster", "edges.csv", "-o", "groups.csv")
    assert done.returncode == BAD_DATA, done.stderr
    for word in words:
        assert word in done.stderr
    assert done.stdout == "" and (tmp_path / "groups.csv").read_text() == "kept"


@pytest.mark.parametrize(
    "arguments, code, word",
    [
        (("none.csv",), BAD_DATA, "none.csv"),
        (("edges.csv", "--a", "nobody"), USAGE, "nobody"),
        (("edges.csv", "--a", "3"), USAGE, "column '3'"),
        (("edges.csv", "--b", "0"), USAGE, "both column 0"),
        (("edges.csv", "--weight", "old"), USAGE, "holds ids"),
        (("pairs.csv", "--above", "1"), USAGE, "no column of weights"),
        (("edges.csv", "--method", "magic"), USAGE, "magic"),
        (("edges.csv", "-o", "groups.txt"), USAGE, ".csv"),
        (("edges.csv", "--split-members", "0"), USAGE, "--split-members"),
        (("edges.csv", "--cut-edges", "cut.csv"), USAGE, "--split-members"),
        (("edges.csv", "--method", "spectral"), USAGE, "(-c)"),
        (("edges.csv", "-c", "2"), USAGE, "-c"),
        (("edges.csv", "--method", "spectral", "-c", "9"), USAGE, "clusters"),
        (("edges.csv", "--method", "spectral", "-c", "2", "--split-members", "2"), USAGE, "--split-members"),
        (("edges.csv", "--method", "spectral", "-c", "2", "--explain"), USAGE, "--explain"),
        (("edges.csv", "--memory-limit", "200"), OVER_MEMORY, "memory"),
    ],
)
def test_what_is_refused(vicinal, example, tmp_path, arguments, code, word):
    (tmp_path / "pairs.csv").write_text("x,y\nu,v\n")
    done = vicinal("cocluster", *arguments)
    assert done.returncode == code, done.stderr
    assert word in done.stderr


def test_dense_methods_say_what_they_need(vicinal, tmp_path):
    (tmp_path / "edges.csv").write_text("".join(f"a{i},b{i}\n" for i in range(4000)))
    limit = ("cocluster", "edges.csv", "--memory-limit", "8M", "--device", "cpu")
    assert vicinal(*limit).returncode == 0
    done = vicinal(*limit, "--method", "product_tiled")
    assert done.returncode == OVER_MEMORY and "product_tiled needs 513 MB" in done.stderr


def test_the_national_tracts(ok_json, data_folder):
    file = data_folder / "spatial/us_tract_relationship/tract20_10_national.csv.gz"
    found = ok_json(
        "cocluster", file, "--a", "GEOID_TRACT_10", "--b", "GEOID_TRACT_20", "--weight", "AREALAND_PART", "--above", 0
    )
    alone = found["relations"]["1:0"] + found["relations"]["0:1"]
    assert found["edges"] == 122451
    assert found["groups"] - alone == 46193
    assert found["members_a"] - found["relations"]["1:0"] == 73782
    assert found["members_b"] - found["relations"]["0:1"] == 85160
    assert found["largest"]["count_a"] + found["largest"]["count_b"] == 1493
