"""What the tests of --resume share."""

import json
import zlib


def write_record(folder, record):
    """Writes a record that is as it should be: its digest is that of what it has."""
    text = json.dumps({key: value for key, value in record.items() if key != "digest"}, separators=(",", ":"))
    digest = f"{zlib.crc32(text.encode()):08x}{zlib.adler32(text.encode()):08x}-{len(text)}"
    (folder / "kept" / "job.json").write_text(json.dumps({**record, "digest": digest}))


def refused(vicinal, *arguments, code, **options):
    done = vicinal(*arguments, **options)
    assert done.returncode == code, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
