"""Records streams that are reduced on the way, and reads them with h5py, hdf5plugin and numpy.

What lies in the files must be what numpy computes from the events that were sent: exactly where nothing is
rounded, and to single precision where something is.

usage: reduce.py KEEPUP DIRECTORY
"""
import json
import pathlib
import subprocess
import sys

import h5py
import hdf5plugin  # noqa: F401, registers the filters
import numpy

import wire

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(11)
COUNT = 40


def noise(dtype, shape, low=0, high=50):
    return rng.integers(low, high, (COUNT, *shape)).astype(dtype)


STREAMS = [  # name, events, reduction
    ("sonar", noise("<i2", (2, 1024), -3000, 3000), "keep=both: spectrum window=hann | lz4"),
    ("plain", noise("<i2", (1000,), -3000, 3000), "spectrum size=250"),
    ("camera", noise("<u2", (60, 90)), "lz4"),
    ("bytes", noise("<u1", (100_001,)), "lz4"),
    ("doubles", rng.normal(size=(COUNT, 3, 37)).astype("<f8"), "lz4"),
    ("wave", rng.normal(size=(COUNT, 4096)).astype("<f4"), "decimate by=8"),
    ("binned", noise("<u1", (8, 12), 0, 256), "bin by=2x3"),
    ("sparse", noise("<i4", (500,), -1000, 1000), "keep=both: threshold at=900 | lz4"),
    ("untouched", noise("<u4", (7,)), None),
]
ELEMENTS = {"u1": "u8", "u2": "u16", "u4": "u32", "i2": "i16", "i4": "i32", "f4": "f32", "f8": "f64"}


def send(address):
    declared, ends = [], []
    for stream, (name, events, _) in enumerate(STREAMS):
        element = ELEMENTS[events.dtype.str.lstrip("<|")]
        declared.append({"id": stream, "name": name, "element": element, "shape": events.shape[1:]})
        ends.append({"id": stream, "events": COUNT, "bytes": events.nbytes, "lost_events": 0, "lost_bytes": 0,
                     "next_sequence": COUNT})
    mixed = ((stream, sequence, sequence, events[sequence].tobytes())
             for sequence in range(COUNT) for stream, (_, events, _) in enumerate(STREAMS))
    final = wire.send(address, declared, mixed, ends)
    for told, (_, events, _) in zip(final["streams"], STREAMS):
        assert told["durable_events"] == COUNT and told["durable_bytes"] == events.nbytes, told


def record():
    root.mkdir(parents=True)
    arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--name", "run", "--block", "64KiB", "--segment", "4MiB",
                 "--pool", "64MiB", "--volume", root, "--reduce-threads", "2", "--json"]
    for stream, (_, _, reduction) in enumerate(STREAMS):
        if reduction:
            settings, _, steps = reduction.rpartition(":")
            arguments += ["--reduce", f"streams={stream} {settings}:{steps}"]
    recorder = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in recorder.stderr:
        if line.startswith("listening on "):
            send(line.removeprefix("listening on ").strip())
            break
    out, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, f"{out} {err}"
    return json.loads(out)


def periodogram(rows, weights):
    return numpy.abs(numpy.fft.rfft(rows * weights)) ** 2 / numpy.sum(weights**2)


def hann(count):
    return 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(count) / count)


def decimated(rows, by):
    reach = 10 * by
    places = numpy.arange(-reach, reach + 1)
    cutoff = 0.5 / by - 0.5 * 3.3 / places.size
    taps = 2 * cutoff * numpy.sinc(2 * cutoff * places) * numpy.hamming(places.size)
    padded = numpy.pad(rows.astype("f8"), ((0, 0), (reach, reach)), mode="edge")
    return numpy.array([numpy.convolve(row, taps / taps.sum(), mode="valid")[::by] for row in padded])


def check(entry):
    events = {name: events for name, events, _ in STREAMS}

    def is_near(name, expected):
        found = entry[name]["data"]
        assert found.dtype == "<f4" and found.shape == expected.shape, (name, found.dtype, found.shape)
        numpy.testing.assert_allclose(found[:], expected, rtol=1e-4, atol=1e-6 * numpy.abs(expected).max(), err_msg=name)

    def is_same(name, expected):
        found = entry[name]["data"]
        assert found.dtype == expected.dtype, (name, found.dtype)
        numpy.testing.assert_array_equal(found[:], expected, err_msg=name)
        assert entry[name]["sequence"][:].tolist() == list(range(COUNT)), name

    for name in ["sonar", "camera", "bytes", "doubles", "sparse", "untouched"]:
        is_same(name, events[name])
    is_near("sonar_reduced", periodogram(events["sonar"], hann(1024)))
    is_near("plain", periodogram(events["plain"].reshape(COUNT, 4, 250), numpy.ones(250)))
    is_near("wave", decimated(events["wave"], 8))
    is_same("binned", events["binned"].reshape(COUNT, 4, 2, 4, 3).astype("<u2").sum(axis=(2, 4), dtype="<u2"))
    is_same("sparse_reduced", numpy.where(events["sparse"] < 900, 0, events["sparse"]).astype("<i4"))
    filters = entry["camera"]["data"].id.get_create_plist()
    assert filters.get_nfilters() == 0 or filters.get_filter(0)[0] == 32008


account = record()
for segment in sorted((root / "run").glob("*.mcap")):
    with h5py.File(segment) as file:
        compressed = file["camera/data"] if "camera" in file else None
        if compressed is not None:
            assert compressed.id.get_create_plist().get_filter(0)[0] == 32008
            assert compressed.id.get_storage_size() < 0.8 * compressed.size * 2, "it is smaller"
with h5py.File(root / "run" / "recording.nxs") as file:
    check({group.attrs["stream_name"].decode().replace("/", "_"): group
           for group in file["entry"].values() if "stream_name" in group.attrs})
verified = json.loads(subprocess.run([keepup, "verify", root / "run", "--json"], check=True, capture_output=True).stdout)
stored = sum(stream["recorded"]["bytes"] for stream in verified["streams"].values())
assert account["stored"]["bytes"] == stored, (account["stored"], stored)
told = json.loads(subprocess.run([keepup, "info", root / "run", "--json"], check=True, capture_output=True).stdout)
assert told["reductions"][0] == "streams=0 keep=both: spectrum window=hann | lz4", told["reductions"]
print(f"{len(STREAMS)} streams, {account['received']['bytes']} bytes received, {stored} on the volume: as numpy has them")
