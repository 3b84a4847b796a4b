"""Plug-ins that packages bring: where vicinal looks and in which order, what it refuses, and that it imports no
package. On a CUDA device, or the fake one, as test_device.py."""
# fake device: *

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import vicinal as vc

SEEN = vc.doctor(device="cpu")
pytestmark = pytest.mark.skipif(SEEN.cuda_missing != "", reason=SEEN.cuda_missing)


@pytest.fixture
def site(tmp_path):
    """A folder of packages, and a function that installs one in it."""

    def install(name="cuda-plugin", version=vc.__version__, plugin=SEEN.cuda_plugin):
        module = name.replace("-", "_")
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text("raise AssertionError('a package of a plug-in was imported')\n")
        if plugin:
            shutil.copyfile(plugin, tmp_path / module / "libvicinal_cuda.so")
        information = tmp_path / f"{module}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (information / "entry_points.txt").write_text(f"[vicinal.plugins]\ncuda = {module}\n")
        return tmp_path / module

    # A build of everything has a plug-in beside the library, which would come first. A copy of the library has none.
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if linked := re.search(r"/.*/(libvicinal\.so\.\d+).*", line):
            shutil.copyfile(linked[0], tmp_path / linked[1])
    install.folder = tmp_path
    return install


@pytest.fixture
def answer(site):
    """What a new process prints that runs `import vicinal as vc` and a program."""

    def answer(program, **variables):
        # VICINAL_CUDA_PLUGIN is what ctest names; here it would come first.
        environment = {key: value for key, value in os.environ.items() if key != "VICINAL_CUDA_PLUGIN"} | variables
        for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):
            environment[name] = os.pathsep.join([str(site.folder), environment.get(name, "")])
        done = subprocess.run(
            [sys.executable, "-c", f"import sys, numpy as np, vicinal as vc\n{program}"],
            env=environment,
            cwd=site.folder,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return answer


LOADED = "print(vc.doctor(device='cpu').cuda_plugin)"
REFUSED = """
try:
    vc.knn(np.eye(3), k=1, device="cuda")
except vc.DeviceUnavailable as error:
    print(error)
assert vc.knn(np.eye(3), k=1).plan.device == "cpu"  # device="auto" does without
"""


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_a_package_is_found(device, site, answer):
    folder = site()
    program = f"assert vc.knn(np.eye(3), k=1, device='{device}').plan.device == 'cuda:0'"
    assert answer(f"{program}\n{LOADED}").strip() == str(folder / "libvicinal_cuda.so")


def test_no_package_is_looked_for_before_a_device_is_needed(site, answer):
    site()
    answer("vc.knn(np.eye(3), k=1, device='cpu')\nassert 'vicinal._plugins' not in sys.modules")


def test_no_package_is_looked_for_without_a_driver(site, answer):
    site()
    program = "vc.knn(np.eye(3), k=1)\nassert vc.doctor().cuda_driver or 'vicinal._plugins' not in sys.modules"
    answer(program, LD_LIBRARY_PATH="")


def test_the_environment_and_the_program_come_first(site, answer):
    site(plugin=None)
    path = site("other-plugin") / "libvicinal_cuda.so"
    checked = f"{LOADED}\nassert 'vicinal._plugins' not in sys.modules"
    assert answer(f"vc.use_plugin('cuda', {str(path)!r})\n{checked}").strip() == str(path)
    assert answer(checked, VICINAL_CUDA_PLUGIN=str(path)).strip() == str(path)


def test_a_package_of_another_version_is_refused(site, answer):
    site(version="0.0.1")
    expected = f"the plug-in cuda is that of cuda-plugin 0.0.1, but vicinal {vc.__version__} needs"
    refused = answer(REFUSED)
    assert expected in refused and refused.count("\n") == 1, refused
    assert expected in answer("print(vc.doctor(device='cpu').cuda_missing)")


def test_several_packages_are_refused(site, answer):
    site()
    site("other-plugin")
    refused = answer(REFUSED)
    names = f"cuda-plugin {vc.__version__}, other-plugin {vc.__version__}"
    assert names in refused and refused.count("\n") == 1, refused


def test_a_package_without_its_file_is_refused(site, answer):
    site(plugin=None)
    refused = answer(REFUSED)
    assert "cuda-plugin" in refused and "does not contain" in refused and refused.count("\n") == 1, refused


def test_a_file_that_is_no_plugin_is_refused(site, answer):
    (site(plugin=None) / "libvicinal_cuda.so").write_text("no library")
    refused = answer(REFUSED)
    assert "libvicinal_cuda.so" in refused and refused.count("\n") == 1, refused


def test_the_command_finds_it_too(site, answer):
    folder = site()
    program = "from vicinal._command import main\nsys.argv = ['vicinal', 'doctor', '--device', 'cpu']\nmain()"
    assert f"{folder / 'libvicinal_cuda.so'}, for architectures" in answer(program)


def test_an_error_while_packages_are_looked_for_is_raised(site, answer):
    site()
    program = """
import vicinal._plugins
vicinal._plugins.find = lambda plugin: {}[plugin]
for device in ("auto", "cuda"):
    try:
        vc.knn(np.eye(3), k=1, device=device)
    except KeyError as error:
        print(error)
"""
    assert answer(program) == "'cuda'\n'cuda'\n"


def test_a_damaged_package_is_a_reason(site, answer):
    site()
    program = """
import vicinal._plugins
def entry_points(**_):
    raise OSError("entry_points.txt is damaged")
vicinal._plugins.metadata.entry_points = entry_points
print(vc.knn(np.eye(3), k=1, device="auto").plan.device)
print(vc.doctor(device="cpu").cuda_missing)
"""
    device, reason = answer(program).splitlines()
    assert device == "cpu"
    assert "the packages cannot be asked for the plug-in cuda: OSError: entry_points.txt is damaged" in reason, reason
