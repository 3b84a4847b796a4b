"""Zeros in a shared library the machine code for other GPUs than one, so that it packs small: what is left runs there.

    python3 bench/gpu/one_architecture.py LIBRARY ARCHITECTURE     e.g. libcuvs.so 90

The section .nv_fatbin is a row of containers of entries, machine code or PTX of one source each. Nothing moves; entries
of a container without machine code for the architecture stay as they are.
"""

import pathlib
import struct
import sys

MAGIC = 0xBA55ED50
MACHINE_CODE = 2


def section(data, name):
    """Where a section lies."""
    headers, = struct.unpack_from("<Q", data, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", data, 0x3A)
    found = [struct.unpack_from("<IIQQQQ", data, headers + i * size) for i in range(count)]
    names = found[of_names][4]
    for entry in found:
        begin = names + entry[0]
        if data[begin:data.index(0, begin)] == name:
            return entry[4], entry[4] + entry[5]
    raise ValueError("no section " + name.decode())


def entries(data, begin, end):
    """(kind, architecture, first byte, bytes) of each entry of a container."""
    while begin < end:
        kind, _, header, size = struct.unpack_from("<HHIQ", data, begin)
        yield kind, struct.unpack_from("<I", data, begin + 28)[0], begin + header, size
        begin += header + size


def keep(data, architecture):
    """Zeros the others; returns the bytes that are left."""
    left = 0
    at, end = section(data, b".nv_fatbin")
    while at + 16 <= end:
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:  # padding
            at += 8
            continue
        found = list(entries(data, at + header, at + header + size))
        served = any(entry[:2] == (MACHINE_CODE, architecture) for entry in found)
        for kind, of, first, count in found:
            if served and (kind, of) != (MACHINE_CODE, architecture):
                data[first:first + count] = bytes(count)
            else:
                left += count
        at += header + size
    return left


def main():
    path, architecture = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    data = bytearray(path.read_bytes())
    left = keep(data, architecture)
    path.write_bytes(data)
    print(f"{path.name}: {left / 1e6:.1f} MB of machine code left")


if __name__ == "__main__":
    main()
