"""`vicinal convert` and `info`: files of other libraries' making, every format, and what is refused."""

import gzip
import lzma
import struct

import numpy as np
import pytest

FORMATS = ["npy", "npz", "csv", "idx", "fvecs", "bvecs", "ivecs", "libsvm", "h5", "kmeans-text", "kmeans-binary",
           "jsonl"]


@pytest.fixture
def table(tmp_path):
    rows = np.random.default_rng(2).integers(0, 256, (9, 4)).astype(np.uint8)
    np.save(tmp_path / "table.npy", rows)
    return rows


def needs_hdf5(vicinal, path):
    done = vicinal("info", path)
    if done.returncode != 0 and "libhdf5 is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())


def test_there_and_back_through_every_format(ok, ok_json, vicinal, tmp_path, table):
    before = (tmp_path / "table.npy").read_bytes()
    for format in FORMATS:
        done = vicinal("convert", "table.npy", f"x.{format}.gz")
        if "libhdf5 is not installed" in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        told = ok_json("info", f"x.{format}.gz")
        assert told["format"] == format.replace("h5", "hdf5") and told["compression"] == "gzip"
        assert (told["summary"]["rows"], told["summary"]["cols"]) == (9, 4)
        ok("convert", f"x.{format}.gz", "back.npy", "--to-dtype", "uint8")
        assert (tmp_path / "back.npy").read_bytes() == before


def test_numpy_reads_what_is_written(ok, tmp_path):
    rows = np.random.default_rng(3).normal(size=(50, 6))
    np.save(tmp_path / "rows.npy", rows)
    ok("convert", "rows.npy", "rows.csv")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "rows.csv", delimiter=","), rows)
    ok("convert", "rows.npy", "rows.tsv.xz")
    with lzma.open(tmp_path / "rows.tsv.xz") as file:
        np.testing.assert_array_equal(np.loadtxt(file, delimiter="\t"), rows)
    ok("convert", "rows.npy", "rows.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npz")["table"], rows)
    ok("convert", "rows.npy", "half.npy", "--to-dtype", "float16", "--lossy")
    np.testing.assert_array_equal(np.load(tmp_path / "half.npy"), rows.astype(np.float16))
    ok("convert", "rows.npy", "rows.fvecs", "--lossy")
    stored = np.fromfile(tmp_path / "rows.fvecs", "<i4").reshape(50, 7)
    assert (stored[:, 0] == 6).all()
    np.testing.assert_array_equal(stored[:, 1:].copy().view("<f4"), rows.astype(np.float32))


def test_scikit_learn_reads_libsvm(ok, tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    generator = np.random.default_rng(4)
    rows = np.where(generator.random((40, 8)) < 0.3, generator.normal(size=(40, 8)), 0)
    labels = generator.integers(0, 3, 40)
    datasets.dump_svmlight_file(rows, labels, str(tmp_path / "zero.svm"), zero_based=True)
    datasets.dump_svmlight_file(rows, labels, str(tmp_path / "one.svm"), zero_based=False)
    # scikit-learn writes 16 digits, which are not always enough: what both read is compared.
    for name in ("zero.svm", "one.svm"):
        wanted, classes = datasets.load_svmlight_file(str(tmp_path / name), n_features=8)
        ok("convert", name, "rows.npz", "--sparse-columns", 8)
        found = np.load(tmp_path / "rows.npz")
        np.testing.assert_array_equal(found["table"], wanted.toarray())
        np.testing.assert_array_equal(found["labels"], classes)
    ok("convert", "rows.npz", "again.svm", "--member", "table")
    found, _ = datasets.load_svmlight_file(str(tmp_path / "again.svm"), n_features=8)
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())


def test_a_sparse_file_says_that_it_became_dense(ok, vicinal, tmp_path):
    (tmp_path / "sparse.svm").write_text("1 1:1 9:2\n0 2:4\n1 3:5\n")
    done = vicinal("knn", "sparse.svm", "-k", 1, "-o", "out.npz")
    assert done.returncode == 0 and "4 values of a sparse table, made dense: 3 x 9" in done.stderr
    assert "4 values are stored" in ok("info", "sparse.svm") and "2 classes" in ok("info", "sparse.svm")


def test_labels_go_where_there_is_a_place(ok, vicinal, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,kind\n1,2,7\n3,4,8\n5,6,7\n")
    ok("convert", "rows.csv", "rows.svm", "--label", "kind")
    assert (tmp_path / "rows.svm").read_text() == "7 1:1 2:2\n8 1:3 2:4\n7 1:5 2:6\n"
    ok("convert", "rows.csv", "again.csv", "--label", "kind")
    assert (tmp_path / "again.csv").read_text() == "a,b,kind\n1,2,7\n3,4,8\n5,6,7\n"
    done = vicinal("convert", "rows.csv", "rows.npy", "--label", "kind")
    assert done.returncode == 2 and "labels" in done.stderr and not (tmp_path / "rows.npy").exists()
    done = vicinal("convert", "rows.csv", "rows.npy", "--label", "kind", "--drop-labels")
    assert done.returncode == 0 and "names of columns" in done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), [[1, 2], [3, 4], [5, 6]])


def test_csv_of_all_kinds(ok, tmp_path):
    wide = np.random.default_rng(5).integers(0, 9, (3, 5000))
    (tmp_path / "wide.csv").write_text("\n".join("^".join(map(str, row)) for row in wide) + "\n")
    ok("convert", "wide.csv", "wide.npy", "--delimiter", "^")
    np.testing.assert_array_equal(np.load(tmp_path / "wide.npy"), wide)
    (tmp_path / "odd.csv").write_text('% made up\n"a ""b""";c\n% within\n1;"2"\n\n3;4e-1\n% the end')
    ok("convert", "odd.csv", "odd.npy", "--comment", "%")
    np.testing.assert_array_equal(np.load(tmp_path / "odd.npy"), [[1, 2], [3, 0.4]])


def test_images_keep_their_shape(ok, ok_json, tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "x.idx").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 3, 4) + images.tobytes())
    ok("convert", "x.idx", "x.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), images)
    ok("convert", "x.npy", "y.idx.gz")
    assert gzip.decompress((tmp_path / "y.idx.gz").read_bytes()) == (tmp_path / "x.idx").read_bytes()


def test_hdf5_of_another_library(ok_json, vicinal, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not among the tests' packages")
    rows = np.random.default_rng(6).normal(size=(300, 5))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("deep/packed", data=rows.astype(">f4"), chunks=(7, 5), compression="gzip", shuffle=True)
        file["whole"] = np.arange(6, dtype=np.int16).reshape(3, 2)
        file["text"] = [b"a", b"b"]
        file["again"] = file["/"]
    needs_hdf5(vicinal, "x.h5")
    names = [array["name"] for array in ok_json("info", "x.h5")["arrays"]]
    assert names == ["text", "whole", "deep/packed"]
    vicinal("convert", "x.h5", "x.npy", "--member", "deep/packed")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), rows.astype(np.float32))
    done = vicinal("convert", "x.h5", "y.npy", "--member", "text")
    assert done.returncode == 3 and "holds text" in done.stderr


def test_hdf5_is_missed_in_words(vicinal, tmp_path):
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    done = vicinal("info", "x.h5", env={"VICINAL_HDF5": "/nowhere/libhdf5.so"})
    assert done.returncode == 2 and "VICINAL_HDF5" in done.stderr and "/nowhere/libhdf5.so" in done.stderr


def test_explain_and_json(ok, ok_json, tmp_path, table):
    assert "block by block" in ok("convert", "table.npy", "x.csv", "--explain")
    assert not (tmp_path / "x.csv").exists()
    told = ok_json("convert", "table.npy", "x.csv")
    assert (told["rows"], told["cols"], told["input_format"], told["output_format"]) == (9, 4, "npy", "csv")


def test_the_data_sets_that_come_in_these_formats(ok, ok_json, tmp_path, data_folder):
    told = ok_json("info", data_folder / "sift/siftsmall_base.fvecs.xz")
    assert (told["format"], told["arrays"][0]["shape"]) == ("fvecs", [10000, 128])
    ok("convert", data_folder / "sift/siftsmall_base.fvecs.xz", "base.bvecs")  # SIFT's features are whole
    ok("convert", data_folder / "sift/siftsmall_query.fvecs", "query.npy")
    ok("knn", "base.bvecs", "query.npy", "-k", 100, "-o", "found.npz")
    ok("convert", data_folder / "sift/siftsmall_groundtruth.ivecs", "truth.npy")
    found = np.load(tmp_path / "found.npz")
    truth = np.load(tmp_path / "truth.npy").astype(int)
    # Where the truth's ids differ from ours the rows are as near.
    base = np.fromfile(tmp_path / "base.bvecs", np.uint8).reshape(-1, 132)[:, 4:].astype(float)
    query = np.load(tmp_path / "query.npy").astype(float)
    theirs = np.sqrt(((base[truth] - query[:, None]) ** 2).sum(2))
    np.testing.assert_array_equal(theirs, found["distances"])
    told = ok_json("info", data_folder / "image_data/color17695.bin.xz")
    assert (told["format"], told["arrays"][0]["shape"]) == ("kmeans-binary", [17695, 9])
    told = ok_json("info", data_folder / "image_data/edge100.txt")
    assert (told["format"], told["arrays"][0]["shape"]) == ("kmeans-text", [100, 18])
