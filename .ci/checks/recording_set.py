"""Records one run on two recorders, with a stream that both have, and reads the set as one with h5py and mcap.

Each event must be there once with the bytes that were sent, by the NeXus master over both recordings and by every
export. The tree is then moved as a whole: the master must still open.

usage: recording_set.py KEEPUP DIRECTORY
"""
import csv
import json
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy
from mcap.reader import make_reader

import wire

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(17)
BOTH = 300  # events of the stream `camera` that both recorders have
CAMERA = rng.integers(0, 4000, (1000, 20, 30), dtype="u2")
BYTES = [rng.bytes(int(size)) for size in rng.integers(0, 5000, 400)]
STREAMS = {
    2: {"id": 2, "name": "camera", "element": "u16", "shape": [20, 30]},
    3: {"id": 3, "name": "left", "element": "u8", "shape": []},
    4: {"id": 4, "name": "right", "element": "u8", "shape": []},
}
PAYLOADS = {2: [frame.tobytes() for frame in CAMERA], 3: BYTES[:200], 4: BYTES[200:]}


def run(*arguments, code=0):
    done = subprocess.run([keepup, *arguments], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}"
    return done.stdout


def record(host, volumes, block, counts):
    """Records the first events of some streams; returns the entry of the set."""
    places = [root / host / f"disk{number}" for number in range(volumes)]
    arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--name", "run-17", "--block", block, "--segment",
                 "4MiB", "--pool", "64MiB", "--run", "17"]
    for place in places:
        place.mkdir(parents=True)
        arguments += ["--volume", place]
    recorder = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in recorder.stderr:
        if line.startswith("listening on "):
            break
    events = [(stream, sequence, 1000 + sequence, PAYLOADS[stream][sequence])
              for stream, count in counts.items() for sequence in range(count)]
    ends = [{"id": stream, "events": count, "bytes": sum(map(len, PAYLOADS[stream][:count])), "lost_events": 0,
             "lost_bytes": 0, "next_sequence": count} for stream, count in counts.items()]
    wire.send(line.removeprefix("listening on ").strip(), [STREAMS[stream] for stream in counts], events, ends)
    out, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, f"{out} {err}"
    directories = [f"{host}/disk{number}/run-17" for number in range(volumes)]
    told = json.loads(run("info", root / directories[0], "--json"))
    return {"host": host, "id": told["recording"], "directories": directories, "end": "finished", "why": None}


recordings = [record("daq1", 2, "64KiB", {2: BOTH, 3: 200}), record("daq2", 1, "256KiB", {2: len(CAMERA), 4: 200})]
(root / "keepup-set.json").write_text(json.dumps({
    "format": "keepup-set", "version": 1, "name": "run-17", "run": 17, "id": "5e" * 16, "created_unix_ns": 1795751999000000000,
    "fleet": "hall-3", "recordings": recordings,
    "moves": [{"from": "daq1", "to": "daq2", "epoch": 2, "at_unix_ns": 1795752000000000000}]}))
report = json.loads(run("verify", root, "--json"))
assert report["whole"] and report["account"]["streams"]["2"]["duplicates"] == BOTH, report["account"]


def check_master(path):
    with h5py.File(path) as file:
        entry = file["entry"]
        camera = entry["camera"]
        numpy.testing.assert_array_equal(camera["data"][:], CAMERA)
        assert camera["valid"][:].all() and camera["sequence"][:].tolist() == list(range(len(CAMERA)))
        assert camera["timestamp"][:].tolist() == [1000 + n for n in range(len(CAMERA))]
        for stream in 3, 4:
            lengths = entry[STREAMS[stream]["name"]]["length"][:].tolist()
            assert lengths == [len(payload) for payload in PAYLOADS[stream]]
        assert entry["entry_identifier"][()].decode() == "17" and entry["title"][()].decode() == "run-17"
        assert {name.split("-")[0] for name in entry["segments"]} == {"daq1", "daq2"}
        files = {source.file_name.split("/")[0] for source in camera["data"].virtual_sources()}
        assert files == {"daq1", "daq2"}, files


run("export", root, "--to", "nexus", "--out", root / "run-17.nxs")
check_master(root / "run-17.nxs")
run("export", root, "--to", "raw", "--out", root / "raw")
run("export", root, "--to", "mcap", "--out", root / "all.mcap")
run("export", root, "--to", "zarr-reference", "--out", root / "refs.json")
for stream, payloads in PAYLOADS.items():
    name = STREAMS[stream]["name"]
    assert (root / "raw" / f"{name}.raw").read_bytes() == b"".join(payloads)
    with open(root / "raw" / f"{name}.csv") as table:
        assert [int(row["sequence"]) for row in csv.DictReader(table)] == list(range(len(payloads)))
    with open(root / "all.mcap", "rb") as file:
        messages = {message.sequence: message.data for _, _, message in make_reader(file).iter_messages(topics=[name])}
        assert [messages[n] for n in range(len(payloads))] == payloads and len(messages) == len(payloads)
with h5py.File(root / "all.mcap") as file:
    numpy.testing.assert_array_equal(file["camera/data"][:], CAMERA)
refs = json.loads((root / "refs.json").read_text())["refs"]
for row, frame in enumerate(CAMERA):
    path, offset, length = refs[f"camera/data/{row}.0.0"]
    with open(path, "rb") as file:
        file.seek(offset)
        assert file.read(length) == frame.tobytes()
moved = root.with_name(root.name + "-moved")
shutil.move(root, moved)
check_master(moved / "run-17.nxs")
run("verify", moved)
# One recording elsewhere: stated, and found where --at says.
(moved / "daq1").rename(moved / "mounted")
assert "NOT HERE" in run("info", moved, code=1)
run("verify", moved, "--at", f"daq1={moved}/mounted/disk0/run-17")
print(f"{len(CAMERA)} events of two recorders, {BOTH} of them in both")
