"""Sends series as a DECTRIS detector does (pyzmq, cbor2, images compressed by HDF5's own filter), and reads with h5py
and mcap what keepup recorded of them.

usage: dectris.py KEEPUP DIRECTORY
"""
import datetime
import json
import pathlib
import subprocess
import sys
import time

import cbor2
import h5py
import hdf5plugin
import numpy
import zmq

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(27)
START = datetime.datetime(2026, 11, 26, 9, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
CHANNELS = ["threshold_1", "threshold_2"]
DTYPES = {"uint8": ("u1", 64), "uint16": ("<u2", 69), "uint32": ("<u4", 70)}


def encoded(frames, compression):
    """The bytes of each frame, as the detector sends them."""
    if compression is None:
        return [frame.tobytes() for frame in frames]
    filters = hdf5plugin.Bitshuffle(cname="lz4") if compression == "bslz4" else hdf5plugin.LZ4()
    with h5py.File("frames", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", data=frames, chunks=(1, *frames.shape[1:]), **filters)
        return [data.id.read_direct_chunk((index, 0, 0))[1] for index in range(len(frames))]


def image_data(frame, bytes_, tag, compression):
    content = bytes_
    if compression is not None:
        content = cbor2.CBORTag(56500, [compression, frame.itemsize, bytes_])
    return cbor2.CBORTag(40, [list(frame.shape), cbor2.CBORTag(tag, content)])


def series(number, dtype, compression, count, lost, detail):
    """Messages of a series without the images `lost`, and its frames by channel."""
    code, tag = DTYPES[dtype]
    frames = {name: rng.integers(0, 30, (count, 200, 300)).astype(code) for name in CHANNELS}
    chunks = {name: encoded(frames[name], compression) for name in CHANNELS}
    start = {
        "type": "start", "arm_date": START, "beam_center_x": 150.5, "channels": CHANNELS, "count_time": 0.001,
        "goniometer": {"omega": {"increment": 0.1, "start": 0.0}}, "image_dtype": dtype, "image_size_x": 300,
        "image_size_y": 200, "number_of_images": count, "series_id": number, "series_unique_id": f"01J{number}",
        "user_data": {"anything": [1, None, {"nested": b"bytes"}]},
    }
    if detail:
        mask = numpy.zeros((200, 300), "<u4")
        array = cbor2.CBORTag(40, [[200, 300], cbor2.CBORTag(70, mask.tobytes())])
        start["pixel_mask"] = {name: array for name in CHANNELS}
    messages = [start]
    for index in (index for index in range(count) if index not in lost):
        messages.append({
            "type": "image", "series_id": number, "series_unique_id": f"01J{number}", "image_id": index,
            "real_time": [100_000, 100_000_000], "series_date": START, "start_time": [index * 200_000, 100_000_000],
            "stop_time": [index * 200_000 + 100_000, 100_000_000], "user_data": "µ",
            "data": {name: image_data(frames[name][0], chunks[name][index], tag, compression) for name in CHANNELS},
        })
    messages.append({"type": "end", "series_id": number, "series_unique_id": f"01J{number}"})
    return messages, frames


def series_v1(number, dtype, compression, count):
    """Messages of a series of Stream V1, and its frames by channel."""
    code, _ = DTYPES[dtype]
    frames = rng.integers(0, 30, (count, 200, 300)).astype(code)
    item = frames.itemsize
    encoding = {None: "<", "lz4": "lz4<", "bslz4": f"bs{8 * item}-lz4<"}[compression]
    chunks = encoded(frames, compression)
    if compression == "lz4":
        # The detector sends the block without the header of HDF5's filter.
        chunks = [chunk[16:] for chunk in chunks]
    config = {"beam_center_x": 150.5, "nimages": count, "ntrigger": 1, "omega_increment": 0.1}
    text = lambda value: json.dumps(value).encode()
    yield [text({"htype": "dheader-1.0", "series": number, "header_detail": "basic"}), text(config)], frames
    for index, chunk in enumerate(chunks):
        head = {"htype": "dimage-1.0", "series": number, "frame": index, "hash": ""}
        data = {"htype": "dimage_d-1.0", "shape": [300, 200], "type": dtype, "encoding": encoding, "size": len(chunk)}
        times = {"htype": "dconfig-1.0", "start_time": index * 2_000_000, "stop_time": index * 2_000_000 + 1_000_000,
                 "real_time": 1_000_000}
        yield [text(head), text(data), chunk, text(times)], frames
    yield [text({"htype": "dseries_end-1.0", "series": number})], frames


def check_v1(name, frames):
    """The master gives the frames and the times between them."""
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        entry = file["entry"]
        metadata = {item.attrs["key"].decode(): item[()].decode() for item in entry["metadata"].values()}
        assert metadata["beam_center_x"] == "150.5" and metadata["omega_increment"] == "0.1", metadata
        group = entry["image"]
        valid = group["valid"][...].astype(bool)
        assert (group["data"][...][valid] == frames).all(), f"{name}: other pixels"
        assert (numpy.diff(group["timestamp"][...][valid].astype(int)) == 2_000_000).all(), f"{name}: other times"


def record(context, name, messages):
    """Records what a detector sends; returns the exit code and the account."""
    socket = context.socket(zmq.PUSH)
    # As many as the detector keeps; then it waits.
    socket.sndhwm = 20
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    command = [keepup, "record", "--from", f"zmq://127.0.0.1:{port}", "--name", name, "--json"]
    volumes = [root / "a", root / "b"]
    recorder = subprocess.Popen(
        command + [word for volume in volumes for word in ("--volume", volume)], stdout=subprocess.PIPE, text=True
    )
    for message in messages:
        if isinstance(message, list):
            socket.send_multipart(message)
        else:
            socket.send(cbor2.dumps(message, datetime_as_timestamp=False))
    out, _ = recorder.communicate(timeout=60)
    socket.close(linger=0)
    return recorder.returncode, json.loads(out)


def check(name, frames, count, lost):
    """The master over both volumes gives the frames that were sent; the others are marked as missing."""
    there = [index for index in range(count) if index not in lost]
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        entry = file["entry"]
        metadata = {item.attrs["key"].decode(): item[()].decode() for item in entry["metadata"].values()}
        assert float(metadata["beam_center_x"]) == 150.5 and metadata["goniometer/omega/increment"] == "0.1", metadata
        assert "pixel_mask" not in metadata and metadata["arm_date"].startswith("2026-11-26T09:30"), metadata
        for channel in CHANNELS:
            group = entry[channel]
            data, valid = group["data"][...], group["valid"][...].astype(bool)
            sequence = group["sequence"][...]
            assert list(sequence[valid]) == there, f"{name}: other images"
            assert (data[valid] == frames[channel][there]).all(), f"{name}: other pixels"
            times = group["timestamp"][...][valid]
            base = int(START.timestamp()) * 10**9
            assert list(times) == [base + index * 2_000_000 for index in there], f"{name}: other times"


(root / "a").mkdir(parents=True, exist_ok=True)
(root / "b").mkdir(parents=True, exist_ok=True)
context = zmq.Context()
begin = time.monotonic()
CASES = [
    ("plain", "uint16", None, set(), False),
    ("bitshuffled", "uint32", "bslz4", set(), True),
    ("lz4", "uint8", "lz4", set(), False),
    ("gaps", "uint16", "bslz4", {3, 4, 30, 59}, True),
]
for number, (name, dtype, compression, lost, detail) in enumerate(CASES):
    messages, frames = series(number, dtype, compression, 60, lost, detail)
    code, account = record(context, name, messages)
    assert code == (1 if lost else 0), (name, code, account)
    received = account["received"]["events"]
    assert received == account["durable"]["events"] == 2 * (60 - len(lost)), (name, account)
    assert sum(stream["gap_events"].get("sequence_gap", 0) for stream in account["ledger"]["streams"].values()) \
        == 2 * len(lost), (name, account["ledger"])
    assert account["trouble"] == [] and account["whole"], (name, account)
    verified = subprocess.run([keepup, "verify", root / "a" / name, "--json"], stdout=subprocess.PIPE, check=False)
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stdout
    check(name, frames, 60, lost)
CASES_V1 = [("v1-plain", "uint16", None), ("v1-lz4", "uint32", "lz4"), ("v1-bitshuffled", "uint8", "bslz4")]
for number, (name, dtype, compression) in enumerate(CASES_V1):
    messages = list(series_v1(number, dtype, compression, 60))
    code, account = record(context, name, [message for message, _ in messages])
    assert code == 0 and account["durable"]["events"] == 60, (name, code, account)
    check_v1(name, messages[0][1])
print(f"{len(CASES) + len(CASES_V1)} series of a DECTRIS detector recorded in {time.monotonic() - begin:.1f} s")
