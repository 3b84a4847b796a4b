"""Installs the packages that `./dev release` has made in a bare Debian 12 (debootstrap, chroot) and does there what a
user would: the demo's job, a matching of two maps, a C++ program, a call for a device that is not there. Then it
removes them, and nothing may be left.

Needs root, debootstrap and the network; takes minutes, most of them for downloads. VICINAL_DEBIAN_MIRROR names another
mirror.
"""

import os
import re
import shutil
import subprocess

from type_readme import SOURCE, run

PACKAGES = SOURCE / "build/release/packages"
ROOT = SOURCE / "build/release/bare"
DATA = "/usr/share/datasets/fashion-mnist"
MAP = """{"type": "FeatureCollection", "features": [%s]}"""
SQUARE = """{"type": "Feature", "properties": {"id": "%s"}, "geometry": {"type": "Polygon", "coordinates":
[[[%g, 50], [%g, 50], [%g, 50.001], [%g, 50.001], [%g, 50]]]}}"""


def inside(command, status=0):
    """Runs a line of bash in the bare Debian, in namespaces of its own, which take their mounts with them; returns what
    it wrote on both streams."""
    print("bare$", command, flush=True)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                   "DEBIAN_FRONTEND": "noninteractive"}
    environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    alone = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={ROOT}/proc", "chroot", ROOT]
    done = subprocess.run([*alone, "bash", "-e", "-o", "pipefail", "-c", f"cd /root\n{command}"], env=environment,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == status, f"exit code {done.returncode}, expected {status}:\n{done.stdout}"
    return done.stdout


def install(*names):
    inside("apt-get install -q -y --no-install-recommends " + " ".join(names))


def package(name):
    [path] = PACKAGES.glob(f"{name}_*.deb")
    return f"/root/packages/{path.name}"


def squares(*named):
    return MAP % ", ".join(SQUARE % (name, x, x + 0.001, x + 0.001, x, x) for name, x in named)


def make_bare():
    shutil.rmtree(ROOT, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "bookworm", ROOT,
        os.environ.get("VICINAL_DEBIAN_MIRROR", "http://deb.debian.org/debian"), stdout=subprocess.DEVNULL)


def bring(home):
    shutil.copytree(PACKAGES, home / "packages", ignore=shutil.ignore_patterns("_CPack_Packages"))
    shutil.copytree(SOURCE / "tests/consumer", home / "consumer")
    (home / "old.geojson").write_text(squares(("a", 8), ("b", 8.01), ("c", 8.02)))
    (home / "new.geojson").write_text(squares(("A", 8.0001), ("B", 8.01)))


def try_command():
    install(package("vicinal"), package("libvicinal0"))
    print(inside("vicinal --version && vicinal doctor"))
    install("dataset-fashion-mnist")
    summary = inside(f"vicinal classify {DATA}/train-images-idx3-ubyte.gz {DATA}/t10k-images-idx3-ubyte.gz -k 5 --json "
                     f"--labels {DATA}/train-labels-idx1-ubyte.gz --test-labels {DATA}/t10k-labels-idx1-ubyte.gz -q "
                     "-o labels.csv --report report.html")
    print(summary)
    assert re.search(r'"accuracy": *0\.8554\b', summary), "the accuracy is not 0.8554"


def try_maps(home):
    match = "vicinal match old.geojson new.geojson --id id -o pairs.csv"
    assert "vicinal-geo" in inside(match, status=5)
    install(package("vicinal-geo"))
    print(inside(match + " && cat pairs.csv"))
    pairs = (home / "pairs.csv").read_text()
    assert re.search(r"^a,A,", pairs, re.MULTILINE) and re.search(r"^b,B,", pairs, re.MULTILINE), pairs


def try_device():
    generated = "vicinal generate blobs -n 300 --seed 1 -o points.npy && vicinal knn points.npy -k 3 --device cuda"
    print(inside(generated, status=5))
    if list(PACKAGES.glob("vicinal-cuda*.deb")):
        install(package("vicinal-cuda13"))
        missing = inside("ldd /usr/lib/x86_64-linux-gnu/libvicinal_cuda.so | grep 'not found' || true")
        assert not missing, missing
        # There may be a device, but the bare Debian has no driver.
        refused = inside(generated, status=5)
        print(refused)
        assert "driver" in refused, refused


def try_library():
    install(package("libvicinal-dev"), "g++", "cmake", "make", "pkg-config")
    print(inside("cmake -S consumer -B found >/dev/null && cmake --build found >/dev/null && found/consumer"))
    print(inside("g++ -std=c++20 consumer/main.cpp -o consumer/by-pkg-config $(pkg-config --cflags --libs vicinal) && "
                 "consumer/by-pkg-config"))


def remove():
    inside("dpkg --purge " + " ".join(path.name.split("_")[0] for path in PACKAGES.glob("*.deb")))
    left = [str(path.relative_to(ROOT)) for path in (ROOT / "usr").rglob("*vicinal*")]
    assert not left, f"left behind: {left}"


def main():
    home = ROOT / "root"
    make_bare()
    bring(home)
    try_command()
    try_maps(home)
    try_device()
    try_library()
    remove()
    shutil.rmtree(ROOT)
    print("the packages install, work and go in a bare Debian 12")


if __name__ == "__main__":
    main()
