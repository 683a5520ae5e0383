"""Writes HDF5 with h5py and TIFF with tifffile into a directory and its subdirectories, as the programs of cameras do, while keepup
records it. Restores the files by their names, with `export --to files` and from the index, and compares them byte by
byte.

usage: directory.py KEEPUP DIRECTORY
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import zlib

import h5py
import numpy
import tifffile

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(31)
FILES = 40


def write_hdf5(path, number):
    """Several writes and flushes while the file is open, as a writer of images does."""
    with h5py.File(path, "w", libver="latest") as file:
        data = file.create_dataset("entry/data", (0, 64, 64), "u2", maxshape=(None, 64, 64), chunks=(1, 64, 64))
        for frame in range(1 + number % 8):
            data.resize(frame + 1, axis=0)
            data[frame] = rng.integers(0, 4096, (64, 64), "u2")
            file.flush()
        file.attrs["number"] = number


def write_tiff(path, number):
    """Under a temporary name first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name)
    tifffile.imwrite(hidden, rng.integers(0, 65536, (2 + number % 3, 200, 300), "u2"), compression=None)
    hidden.rename(path)


def write_raw(path, number):
    """Beside the directory first, and moved in."""
    beside = root / "beside"
    beside.write_bytes(rng.bytes(number * 100_000))
    beside.rename(path)


def write_all(into):
    odd = os.fsdecode(b"run \xff\n.raw")
    write_raw(into / odd, 0)
    for number in range(FILES):
        write_hdf5(into / f"scan_{number:04}.h5", number)
        # A directory for each scan, as NDFileTIFF of areaDetector creates them.
        write_tiff(into / f"scan {number // 8}" / "images" / f"frame_{number:04}.tif", number)
        write_raw(into / f"raw {number}.bin", number)


def record(into, more=()):
    command = [keepup, "record", "--from", f"dir:{into},recursive", *more, "--name", "run", "--volume", root / "a", "--json"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (line := recorder.stderr.readline()).startswith("receiving from"):
        assert line, "the recorder has ended"
    write_all(into)
    recorder.send_signal(signal.SIGINT)
    out, err = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, (recorder.returncode, out, err)
    return json.loads(out)


def contents(directory):
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {os.fspath(path.relative_to(directory)): path.read_bytes() for path in paths}


def by_export(written):
    subprocess.run([keepup, "export", root / "a/run", "--to", "files", "--out", root / "restored"], check=True)
    restored = contents(root / "restored")
    assert restored.keys() == written.keys(), written.keys() ^ restored.keys()
    for name, bytes_ in written.items():
        assert restored[name] == bytes_, f"{name!r} differs"
    for name in written:
        times = [(where / name).stat().st_mtime_ns for where in (root / "in", root / "restored")]
        assert times[0] == times[1], f"{name!r} has another time"
    with h5py.File(root / "restored/scan_0007.h5") as file:
        assert file["entry/data"].shape == (8, 64, 64) and file.attrs["number"] == 7
    assert tifffile.imread(root / "restored/scan 0/images/frame_0001.tif").shape == (3, 200, 300)


def by_raw_export(written):
    """As a user would without `--to files`: payloads, their table, and the lines of the index."""
    subprocess.run([keepup, "export", root / "a/run", "--to", "raw", "--out", root / "raw"], check=True)
    payloads = (root / "raw/files.raw").read_bytes()
    rows = [line.split(",") for line in (root / "raw/files.csv").read_text().splitlines()[1:]]
    places = {int(sequence): (int(offset), int(length)) for sequence, _, offset, length in rows}
    found = {}
    for line in (root / "raw/files-index.raw").read_bytes().splitlines():
        entry = json.loads(line)
        offset, length = places[entry["sequence"]]
        payload = payloads[offset:offset + length]
        assert f"{zlib.crc32(payload):08x}" == entry["crc32"] and length == entry["bytes"], entry
        name = bytes.fromhex(entry["name_hex"]) if "name_hex" in entry else entry["name"].encode()
        found[os.fsdecode(name)] = payload
    assert found == written


def main():
    into = root / "in"
    into.mkdir(parents=True)
    (root / "a").mkdir()
    account = record(into)
    written = contents(into)
    assert len(written) == 3 * FILES + 1
    files = account["ledger"]["streams"]["0"]
    total = sum(map(len, written.values()))
    assert files["durable"] == {"events": len(written), "bytes": total}, files
    assert account["missing_events"] == {}, account["missing_events"]
    by_export(written)
    by_raw_export(written)
    print(f"{len(written)} files, {total} bytes: the same by name, content and time")


main()
