"""A disk that is soon full."""

import os
import subprocess

import pytest


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a tmpfs of a size such as "64k", and returns its folder; it is unmounted after the test."""
    disk = tmp_path / "disk"

    def mount(size):
        if os.geteuid() != 0:
            pytest.skip("a full disk is made with a tiny tmpfs, which takes root to mount")
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True,
                                 text=True)
        if mounted.returncode != 0:
            pytest.skip(f"a tiny tmpfs cannot be mounted here: {mounted.stderr.strip()}")
        return disk

    yield mount
    if os.path.ismount(disk):
        subprocess.run(["umount", disk], check=True)
