"""Receives compressed images of keepup's simulated DECTRIS detector with pyzmq and cbor2, and records the same images with
keepup. Decompresses both with HDF5's own filter (hdf5plugin) and compares every pixel.

usage: dectris_source.py KEEPUP DIRECTORY
"""
import json
import pathlib
import subprocess
import sys

import cbor2
import h5py
import hdf5plugin
import numpy
import zmq

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
COUNT = 25
DTYPES = {"u8": ("u1", 64, "uint8"), "u16": ("<u2", 69, "uint16"), "u32": ("<u4", 70, "uint32")}
# Pixels that fill whole blocks of the compressor, that end in a smaller block, and that are not a multiple of eight.
CASES = [("u16", (512, 512), 60_000, 170_000), ("u8", (300, 404), 15_000, 45_000), ("u32", (515, 301), 30_000, 90_000)]


def profile(element, shape, least, most):
    path = root / f"images-{element}.toml"
    path.write_text(f"""name = "images-{element}"
title = "Compressed images"
[event]
distribution = "uniform"
min = "{least} B"
max = "{most} B"
element = "{element}"
shape = {list(shape)}
compression = "bslz4"
[source]
rate = "100 Hz"
transport = "zeromq"
""")
    return path


def source(path, version):
    """Starts a source; returns it and its address."""
    command = [keepup, "source", path, "--as", f"dectris-{version}", "--listen", "127.0.0.1:0", "--events", str(COUNT),
               "--rate", "max", "--seed", "36", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in started.stderr:
        if "waiting for a recorder: " in line:
            return started, line.rsplit(maxsplit=1)[-1].strip("`")
    raise AssertionError(f"no address: {started.wait()}")


def sent(started):
    out, errors = started.communicate(timeout=60)
    assert started.returncode == 0, (started.returncode, out, errors)
    return json.loads(out)["sent"]


def chunk_v1(parts, element, shape):
    head, data = json.loads(parts[0]), json.loads(parts[1])
    assert data["shape"] == list(shape[::-1]) and data["type"] == DTYPES[element][2], data
    assert data["encoding"] == f"bs{element[1:]}-lz4<" and data["size"] == len(parts[2]), data
    return head["frame"], parts[2]


def chunk_v2(parts, element, shape):
    part, = parts
    # DECTRIS' parser takes only messages that are marked as CBOR.
    assert part.startswith(b"\xd9\xd9\xf7"), part[:8]
    message = cbor2.loads(part)
    array = message["data"]["threshold_1"]
    dimensions, elements = array.value
    assert array.tag == 40 and list(dimensions) == list(shape) and elements.tag == DTYPES[element][1], array.value
    compressed = elements.value
    algorithm, size, chunk = compressed.value
    assert compressed.tag == 56500 and algorithm == "bslz4" and size == int(element[1:]) // 8, compressed
    return message["image_id"], chunk


def received(address, version, element, shape):
    """The chunks that pyzmq receives."""
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.rcvtimeo = 60_000
    socket.connect(address.replace("zmq://", "tcp://"))
    messages = [socket.recv_multipart() for _ in range(COUNT + 2)]
    socket.close()
    context.term()
    assert b"start" in messages[0][0] or b"dheader" in messages[0][0]
    take = chunk_v1 if version == "v1" else chunk_v2
    numbers, chunks = zip(*(take(parts, element, shape) for parts in messages[1:-1]))
    assert list(numbers) == list(range(COUNT)), numbers
    return chunks


def decompressed(chunks, element, shape):
    with h5py.File("chunks", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", (len(chunks), *shape), DTYPES[element][0], chunks=(1, *shape),
                                   **hdf5plugin.Bitshuffle(cname="lz4"))
        for index, chunk in enumerate(chunks):
            data.id.write_direct_chunk((index, 0, 0), chunk)
        return data[...]


def check_counts(images):
    """Images have the counts of one or two neighbouring brightnesses, and all differ."""
    for image in images:
        mean = image.mean()
        assert 0.001 < mean < 1000, mean
        # The mean of the rows is that of the image, or of one that is twice as bright, or half as bright.
        rows = image.mean(axis=1)
        assert mean / 3 < numpy.median(rows) < 3 * mean, (mean, numpy.median(rows))
        assert image.max() < 6 * mean + 20, (mean, image.max())
        # The variance of a Poisson distribution is its mean. A block of the compressor has one brightness.
        block = image.reshape(-1)[:8192 // image.itemsize].astype(float)
        assert 0.8 < block.var() / block.mean() < 1.25, (block.mean(), block.var())
    assert len({image.tobytes() for image in images}) == len(images), "images are repeated"


def recorded(path, version, name):
    """The images as keepup recorded them, and the counts of the source."""
    started, address = source(path, version)
    command = [keepup, "record", "--from", address, "--volume", root, "--name", name, "--json"]
    account = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    counts = sent(started)
    account = json.loads("{" + f"\n{account}".rpartition("\n{")[2])
    assert account["durable"] == counts and account["whole"], (account, counts)
    subprocess.run([keepup, "verify", root / name], stdout=subprocess.PIPE, check=True, timeout=60)
    with h5py.File(root / name / "recording.nxs") as file:
        group = file["entry"]["image" if version == "v1" else "threshold_1"]
        return group["data"][...], counts


root.mkdir(parents=True, exist_ok=True)
ratios = []
for element, shape, least, most in CASES:
    path = profile(element, shape, least, most)
    for version in ("v1", "v2"):
        started, address = source(path, version)
        chunks = received(address, version, element, shape)
        sizes = [len(chunk) for chunk in chunks]
        assert sent(started) == {"events": COUNT, "bytes": sum(sizes)}, sizes
        assert least * 0.9 < min(sizes) and max(sizes) <= most and len(set(sizes)) > COUNT / 2, sizes
        images = decompressed(chunks, element, shape)
        check_counts(images)
        data, counts = recorded(path, version, f"{element}-{version}")
        assert data.dtype == images.dtype and data.shape == images.shape, data
        assert (data == images).all() and counts["bytes"] == sum(sizes), f"{element}, {version}: other images"
        ratios.append(images.nbytes / sum(sizes))
trial = [keepup, "trial", path, "--time", "1s", "--volume", root, "--json"]
for flags, protocol in [([], "dectris-v2"), (["--as", "dectris-v1"], "dectris-v1")]:
    done = subprocess.run(trial + flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True)
    assert f"protocol {protocol};" in done.stderr and "compressed)" in done.stderr, done.stderr
    ledger = json.loads(done.stdout)["runs"][0]["ledger"]
    assert ledger["sent"] == ledger["verified"] and ledger["lost"]["events"] == 0, ledger
print(f"{2 * len(CASES)} series of compressed images received by pyzmq and recorded, with the same pixels; "
      f"compressed {min(ratios):.1f} to {max(ratios):.1f} times")
