"""Records streams of every sort over three volumes, then reads them back in every way there is.

keepup's own reader, Python mcap (indexed and streaming), h5py (segments and master) and h5dump must give the
bytes that were sent. The recording is then moved as a whole, and the master must still open.

usage: views.py KEEPUP DIRECTORY
"""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import time

import fsspec
import h5py
import hdf5plugin
import numpy
import zarr
from mcap.exceptions import McapError
from mcap.reader import NonSeekingReader, make_reader

import wire

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(4)
dice = random.Random(4)
RUN, METADATA = 41, {"sample": "α-quartz, 4 µm", "beam/energy": "12.4 keV", "note": ""}
LOST = 20  # an event of stream 3 that the source declares lost


def compressed_frames(count):
    """Frames as a detector with bitshuffle-LZ4 sends them: what, and as which bytes."""
    frames = rng.integers(0, 50, (count, 60, 90), dtype="u2")
    with h5py.File("frames", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", data=frames, chunks=(1, 60, 90), **hdf5plugin.Bitshuffle(cname="lz4"))
        return frames, [data.id.read_direct_chunk((index, 0, 0))[1] for index in range(count)]


frames, chunks = compressed_frames(40)
STREAMS = [
    {"id": 0, "name": "camera", "element": "u16", "shape": [20, 30]},
    {"id": 1, "name": "packed", "element": "u16", "shape": [60, 90], "compression": "bslz4"},
    {"id": 2, "name": "text/any size", "element": "u8", "shape": []},
    {"id": 3, "name": "tiny", "element": "f32", "shape": [2]},
    {"id": 4, "name": "silent", "element": "i64", "shape": [1]},
    {"id": 5, "name": "mixed", "element": "u16", "shape": [60, 90], "compression": "bslz4"},
    {"id": 6, "name": "silent bytes", "element": "u8", "shape": []},
]
EVENTS = {
    0: [rng.integers(0, 4000, (20, 30), dtype="u2").tobytes() for _ in range(1500)],
    1: chunks,
    2: [dice.randbytes(dice.choice([0, 1, 100, 70_000])) for _ in range(100)],
    3: [rng.normal(size=2).astype("f4").tobytes() for _ in range(5000)],
    4: [],
    5: [b"", *chunks],  # the segment with the empty one has no `data`
    6: [],
}
TIMES = [0, 2**63 - 1, 2**63, 2**64 - 1]  # of the last events of stream 1, ns since 1970


def send(address):
    """Sends all events, the streams mixed, without event LOST of stream 3."""
    order = sorted((dice.random(), stream) for stream, events in EVENTS.items() for _ in events)
    sequences = dict.fromkeys(EVENTS, 0)

    def mixed():
        for _, stream in order:
            sequence = sequences[stream]
            sequences[stream] += 1
            payload = None if (stream, sequence) == (3, LOST) else EVENTS[stream][sequence]
            yield stream, sequence, time_of(stream, sequence), payload

    ends = []
    for stream, events in EVENTS.items():
        lost, size = int(stream == 3), sum(map(len, events))
        ends.append({"id": stream, "events": len(events) - lost, "bytes": size - 8 * lost,
                     "lost_events": lost, "lost_bytes": 8 * lost, "next_sequence": len(events)})
    wire.send(address, STREAMS, mixed(), ends)


def time_of(stream, sequence):
    late = sequence - (len(EVENTS[1]) - len(TIMES))
    return TIMES[late] if stream == 1 and late >= 0 else 10**18 + sequence * 1000 + stream


def expected(stream):
    return {(stream, n): event for n, event in enumerate(EVENTS[stream]) if (stream, n) != (3, LOST)}


ALL = {key: event for stream in EVENTS for key, event in expected(stream).items()}


def record(volumes):
    arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--name", "run", "--segment", "512KiB"]
    arguments += ["--block", "64KiB", "--pool", "32MiB", "--json"]
    arguments += ["--run", str(RUN)]
    for key, value in METADATA.items():
        arguments += ["--meta", f"{key}={value}"]
    for volume in volumes:
        volume.mkdir(parents=True)
        arguments += ["--volume", volume]
    recorder = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in recorder.stderr:
        if line.startswith("listening on "):
            send(line.removeprefix("listening on ").strip())
            break
    out, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 1, f"an event was declared lost: {out} {err}"


def mcap_messages(segments, reader, **options):
    found = {}
    for segment in segments:
        with segment.open("rb") as file:
            for _, channel, message in reader(file).iter_messages(**options):
                assert message.log_time == time_of(channel.id, message.sequence)
                found[channel.id, message.sequence] = message.data
    return found


def hdf5_rows(group, stream, bytes_of=None):
    """Events of one stream's group: those that are valid."""
    valid, sequence, timestamp = (group[name][:] for name in ("valid", "sequence", "timestamp"))
    rows = numpy.flatnonzero(valid)
    data = group["data"][:] if "data" in group else None
    assert group.attrs["stream_id"] == stream
    for row in rows:
        assert timestamp[row] == time_of(stream, int(sequence[row]))
        if data is not None:
            event = data[row].tobytes()
        else:
            offset, length = int(group["offset"][row]), int(group["length"][row])
            event = bytes_of[offset:offset + length].tobytes()
        yield (stream, int(sequence[row])), event


def as_array(stream, events):
    """Events as HDF5 gives them: with the compression undone."""
    return {key: frames[key[1]].tobytes() if stream == 1 else event for key, event in events.items()}


def check_segments(segments):
    found = {}
    for segment in segments:
        with h5py.File(segment) as file:
            for name, group in file.items():
                if name != "bytes":
                    stream = int(group.attrs["stream_id"])
                    assert group.attrs["stream_name"].decode() == STREAMS[stream]["name"]
                    found.update(hdf5_rows(group, stream, file.get("bytes")))
    for stream in EVENTS.keys() - {5}:
        mine = {key: event for key, event in found.items() if key[0] == stream}
        assert mine == as_array(stream, expected(stream)), f"h5py, segments, stream {stream}"
    for key, event in expected(5).items():
        assert found[key] in (event, frames[key[1] - 1].tobytes()), f"h5py, segments, {key}"


def check_master(path):
    with h5py.File(path) as file:
        entry = file[file.attrs["default"]]
        assert entry.attrs["NX_class"] == b"NXentry" and entry["title"][()] == b"run"
        assert entry["entry_identifier"][()].decode() == str(RUN)
        assert entry["metadata"].attrs["NX_class"] == b"NXcollection"
        texts = {text.attrs["key"].decode(): text[()].decode() for text in entry["metadata"].values()}
        assert texts == METADATA and "sample" in entry["metadata"], texts
        for stream, name in [(0, "camera"), (1, "packed"), (3, "tiny")]:
            group = entry[name]
            assert group["data"].shape == (len(EVENTS[stream]), *STREAMS[stream]["shape"])
            assert dict(hdf5_rows(group, stream)) == as_array(stream, expected(stream)), f"master, {name}"
            assert group["valid"][:].sum() == group.attrs["events"] == len(expected(stream)), f"master, {name}"
        assert entry["tiny/valid"][LOST] == 0 and entry["tiny/data"][LOST].tolist() == [0, 0]
        lengths = entry["stream-2/length"][:].tolist()
        assert lengths == [len(event) for event in EVENTS[2]]
        for name in "silent", "silent bytes":
            rows = {dataset.shape[0] for dataset in entry[name].values()}
            assert rows == {0} and entry[name].attrs["events"] == 0, f"master, {name}"
        # HDF5 shows virtual rows of a dataset that does not exist as missing, without an error.
        mixed = entry["mixed"]
        assert set(mixed) == {"sequence", "timestamp", "valid"} and b"segments" in mixed.attrs["left_out"]
        assert "signal" not in mixed.attrs and (mixed["valid"][:] == 1).all()
        assert "left_out" not in entry["camera"].attrs
        for group in entry.values():
            for dataset in group.values() if isinstance(group, h5py.Group) else ():
                check_sources(path, dataset)
        first = next(iter(entry["segments"].values()))
        assert len(first) > 0, "the links lead to the segments"


def check_sources(path, dataset):
    """The files and datasets that a virtual dataset refers to exist."""
    if isinstance(dataset, h5py.Dataset) and dataset.is_virtual:
        for source in dataset.virtual_sources():
            with h5py.File(path.parent / source.file_name) as segment:
                assert source.dset_name in segment, f"{dataset.name}: {source}"


def check_strangers(path, segments):
    """Other files with the names of segments, in the working directory: see the book."""
    strange, here = root / "strange", os.getcwd()
    strange.mkdir()
    for own, other in zip(segments, [*segments[1:], segments[0]]):
        shutil.copy(other, strange / own.name)
    os.chdir(strange)
    check_master(path)
    # From the directory of the master, nothing stands in for a missing segment.
    os.chdir(path.parent)
    missing = segments[0].rename(root / "missing")
    with h5py.File(path) as file:
        groups = [group for group in file["entry"].values() if "events" in group.attrs]
        assert any(group["valid"][:].sum() < group.attrs["events"] for group in groups)
    missing.rename(segments[0])
    os.chdir(here)


def check_h5dump(path):
    """The tool of the C library, without Python in between."""
    dump = root / "dump"
    subprocess.run(["h5dump", "-d", "/entry/camera/data", "-b", "LE", "-o", dump, path], check=True,
                   stdout=subprocess.DEVNULL)
    assert dump.read_bytes() == b"".join(EVENTS[0]), "h5dump, master"


def cat(recording, stream, *more):
    command = [keepup, "cat", recording, "--stream", str(stream), *map(str, more)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def check_own_reader(recording):
    for stream in EVENTS:
        assert cat(recording, stream) == b"".join(expected(stream).values()), f"keepup cat, stream {stream}"
    assert cat(recording, 0, "--from", 123, "--count", 2) == EVENTS[0][123] + EVENTS[0][124]
    assert cat(recording, 0, "--from-time", time_of(0, 77), "--count", 1) == EVENTS[0][77]
    info = json.loads(subprocess.run([keepup, "info", recording, "--json"], check=True, capture_output=True).stdout)
    assert info["state"] == {"state": "clean"}
    assert (info["run"], info["metadata"]) == (RUN, METADATA)
    assert info["streams"]["3"]["missing"] == {"source": 1}
    assert info["streams"]["0"]["events"] == 1500


def check_exports(recording):
    def export(form, name):
        subprocess.run([keepup, "export", recording, "--to", form, "--out", root / name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return root / name

    one = export("mcap", "one.mcap")
    with one.open("rb") as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        counts = {channel.topic: summary.statistics.channel_message_counts[id] for id, channel in summary.channels.items()}
        assert counts == {stream["name"]: len(expected(stream["id"])) for stream in STREAMS}, counts
        (missing,) = reader.iter_metadata()
        gaps = {str(stream): [[LOST, 1, "source"]] if stream == 3 else [] for stream in EVENTS}
        assert missing.name == "missing" and {k: json.loads(v) for k, v in missing.metadata.items()} == gaps
    with h5py.File(one) as file:
        assert file["silent/data"].shape == (0, 1) and file["silent bytes/length"].shape == (0,)
        assert file["silent/sequence"][:].tolist() == file["silent/timestamp"][:].tolist() == []
        assert file["tiny/sequence"][LOST - 1:LOST + 1].tolist() == [LOST - 1, LOST + 1]
    assert mcap_messages([one], lambda file: make_reader(file, validate_crcs=True)) == ALL, "exported MCAP"
    check_segments([one])
    raw = export("raw", "raw")
    for stream, name in [(0, "camera"), (1, "packed"), (2, "stream-2"), (3, "tiny")]:
        assert (raw / f"{name}.raw").read_bytes() == b"".join(expected(stream).values()), f"exported raw, {name}"
    references = json.loads(export("zarr-reference", "zarr.json").read_text())["refs"]
    attributes = json.loads(references[".zattrs"])
    assert attributes == {"name": "run", "run": RUN, "metadata": METADATA}, attributes
    for (stream, sequence), event in {**expected(0), **expected(3)}.items():
        name, zeros = [("camera", ".0.0"), None, None, ("tiny", ".0")][stream]
        path, offset, length = references[f"{name}/data/{sequence}{zeros}"]
        with open(path, "rb") as file:
            file.seek(offset)
            assert file.read(length) == event, f"zarr reference, {name}"
    arrays = zarr.open(fsspec.get_mapper("reference://", fo=str(root / "zarr.json")), mode="r")
    for stream, name in [(0, "camera"), (3, "tiny"), (4, "silent")]:
        group = arrays[name]
        valid = {(stream, int(row)): group["data"][int(row)].tobytes() for row in numpy.flatnonzero(group["valid"][:])}
        assert group["data"].shape == (len(EVENTS[stream]), *STREAMS[stream]["shape"])
        assert valid == expected(stream) and group.attrs["events"] == len(valid), f"zarr, {name}"
    assert arrays["tiny"]["valid"][LOST] == 0 and arrays["tiny"].attrs["missing"] == [[LOST, 1, "source"]]
    check_master(export("nexus", "elsewhere.nxs"))


def check_open_segments(segments):
    """The book's reader of open segments: zeros in place of what the seal added do not disturb it."""
    book = pathlib.Path(__file__).parents[2] / "docs/book/open-a-recording.md"
    names = {}
    exec(re.search(r"```python\n(import struct\n.*?)\n\nfor channel", book.read_text(), re.S).group(1), names)
    total = 0
    for segment in segments:
        sealed = [(channel.topic, message.sequence, message.data) for channel, message in names["messages"](segment)]
        with segment.open("rb") as file:
            end = 8
            file.seek(end)
            while (head := file.read(9))[0] != 0x0F:
                end += 9 + int.from_bytes(head[1:], "little")
                file.seek(end)
            file.seek(0)
            (root / "open.mcap").write_bytes(file.read(end) + bytes(1 << 20))
        still_open = [(channel.topic, message.sequence, message.data) for channel, message in names["messages"](root / "open.mcap")]
        assert sealed == still_open, f"open segment: {len(still_open)} of {len(sealed)} messages"
        total += len(sealed)
    assert total == len(ALL), f"open segments: {total} of {len(ALL)} messages"


def check_segment_that_is_written():
    """The official streaming reader ends cleanly behind what is in an open segment, while the recorder is idle."""
    volume = root / "running"
    volume.mkdir()
    arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--name", "run", "--volume", volume]
    arguments += ["--pool", "32MiB", "--segment", "1MiB", "--block", "64KiB"]
    recorder = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = next(line for line in recorder.stderr if line.startswith("listening on "))
        with wire.connect(address.removeprefix("listening on ").strip(), STREAMS[:1]) as sock:
            until = time.monotonic() + 60
            for before, sent in ((0, 0), (0, 100), (100, 300)):
                for sequence in range(before, sent):
                    sock.sendall(wire.frame(2, EVENTS[0][sequence], 0, sequence, time_of(0, sequence)))
                found = None
                while found != [EVENTS[0][sequence] for sequence in range(sent)]:
                    assert time.monotonic() < until, f"open segment: {sent} sent, read: {found and len(found)}"
                    time.sleep(0.1)
                    with (volume / "run/segment-000000.mcap").open("rb") as file:
                        try:
                            reader = NonSeekingReader(file, validate_crcs=True)
                            found = [message.data for _, _, message in reader.iter_messages(log_time_order=False)]
                        # Without an end mark zeros follow, and the file may end within what would be a record of them.
                        except (McapError, struct.error) as error:
                            found = None
                            print(f"being written: {error!r}")
    finally:
        recorder.terminate()
        recorder.communicate()


def check_parts():
    """A master of many streams and segments shows parts, which show the segments."""
    streams = [{"id": id, "name": f"sensor-{id}", "element": "u16", "shape": [512]} for id in range(520)]
    late = {id for id in range(520) if id % 10 == 9}  # they send only the second half: early parts are without them
    events = {id: {n: rng.integers(0, 4000, 512, dtype="u2") for n in range(20) if id not in late or n >= 10} for id in range(520)}
    arguments = [keepup, "record", "--listen", "127.0.0.1:0", "--name", "run", "--segment", "256KiB", "--block", "16KiB"]
    volumes = [root / "many" / name for name in ("a", "b", "c")]
    for volume in volumes:
        volume.mkdir(parents=True)
        arguments += ["--volume", volume]
    recorder = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    address = next(line for line in recorder.stderr if line.startswith("listening on ")).removeprefix("listening on ").strip()
    # A stream without its first ten events has lost them.
    order = [(id, n, n, events[id][n].tobytes() if n in events[id] else None) for n in range(20) for id in range(520)]
    ends = [{"id": id, "events": len(events[id]), "bytes": 1024 * len(events[id]), "lost_events": 20 - len(events[id]),
             "lost_bytes": 1024 * (20 - len(events[id])), "next_sequence": 20} for id in range(520)]
    wire.send(address, streams, order, ends)
    recorder.communicate(timeout=60)
    home = volumes[0] / "run"
    parts = sorted(part.name for part in home.glob("recording-*.nxs"))
    assert len(parts) > 1, parts

    def check(path):
        with h5py.File(path) as file:
            entry = file["entry"]
            assert len(entry["segments"]) == len(parts)
            links = [segment for part in entry["segments"].values() for segment in part.values()]
            assert all(len(link) > 0 for link in links) and len(links) == len(list(path.parents[2].rglob("segment-*")))
            for id, sent in events.items():
                group = entry[f"sensor-{id}"]
                assert group["valid"][:].tolist() == [int(n in sent) for n in range(20)], id
                assert group.attrs["events"] == len(sent)
                assert (group["sequence"][:] == group["timestamp"][:]).all()
                for n in [min(sent), 19] if id % 50 else sent:
                    assert (group["data"][n] == sent[n]).all(), (id, n)
                check_sources(path, group["data"])
        with h5py.File(path.parent / parts[0]) as file:
            assert len(file["entry/segments"]) == 32

    check(home / "recording.nxs")
    report = json.loads(subprocess.run([keepup, "verify", home, "--json"], capture_output=True).stdout)
    assert report["faults"] == report["unchecked"] == [], report
    dump = root / "dump"
    subprocess.run(["h5dump", "-d", "/entry/sensor-8/data", "-b", "LE", "-o", dump, home / "recording.nxs"], check=True,
                   stdout=subprocess.DEVNULL)
    assert dump.read_bytes() == b"".join(events[8][n].tobytes() for n in range(20)), "h5dump, master of parts"
    shutil.move(root / "many", root / "many elsewhere")
    check(root / "many elsewhere" / "a" / "run" / "recording.nxs")


check_segment_that_is_written()
check_parts()
volumes = [root / "first" / name for name in ("a", "b", "c")]
record(volumes)
segments = sorted(segment for volume in volumes for segment in (volume / "run").glob("segment-*.mcap"))
assert len(segments) > 6, segments
assert mcap_messages(segments, lambda file: make_reader(file, validate_crcs=True)) == ALL, "mcap, indexed"
assert mcap_messages(segments, lambda file: NonSeekingReader(file, validate_crcs=True)) == ALL, "mcap, streaming"
check_open_segments(segments)
window = mcap_messages(segments, make_reader, topics=["camera"], starting_at=time_of(0, 50),
                       ending_before=time_of(0, 60))
assert set(window) == {(0, sequence) for sequence in range(50, 60)}, "mcap, by topic and time"
check_segments(segments)
check_own_reader(volumes[1] / "run")
check_exports(volumes[2] / "run")
check_master(volumes[0] / "run" / "recording.nxs")
first = [segment for segment in segments if segment.is_relative_to(volumes[0])]
check_strangers(volumes[0] / "run" / "recording.nxs", first)
check_h5dump(volumes[0] / "run" / "recording.nxs")
shutil.move(root / "first", root / "moved elsewhere")
check_master(root / "moved elsewhere" / "a" / "run" / "recording.nxs")
print(f"{len(ALL)} events in {len(segments)} segments on 3 volumes: the same bytes by every path")
