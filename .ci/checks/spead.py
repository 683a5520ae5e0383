"""Sends heaps with spead2 over UDP, from two senders and in both flavours, and compares what keepup recorded of them.

usage: spead.py KEEPUP DIRECTORY
"""
import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys

import numpy
import spead2
import spead2.send

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(29)
HEAPS, SAMPLES = 12, 300_000


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def recorder(port, name, options=""):
    command = [keepup, "record", "--from", f"spead://127.0.0.1:{port}{options}", "--name", name, "--json"]
    started = subprocess.Popen(command + ["--volume", root / "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    while not (line := started.stderr.readline()).startswith("receiving from"):
        assert line, "the recorder has ended"
    return started


def items(address_bits):
    group = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, address_bits))
    group.add_item(0x1600, "timestamp", "of the first sample", shape=(), format=[("u", address_bits)])
    group.add_item(0x3300, "samples", "of one polarization", shape=(SAMPLES,), dtype=">i2")
    return group


def heaps(group, stream, data, last=True, **settings):
    """Sends each row as a heap, and that this was all."""
    for number, row in enumerate(data):
        group["timestamp"].value = 4096 + number
        group["samples"].value = row
        # Descriptors go into a heap of their own. Otherwise, they would be a part of the first event.
        if number == 0:
            stream.send_heap(group.get_heap(descriptors="all", data="none"), **settings)
        stream.send_heap(group.get_heap(descriptors="none", data="all"), **settings)
    if last:
        stream.send_heap(group.get_end(), **settings)


def exported(name):
    """Bytes of each stream of a recording."""
    subprocess.run([keepup, "export", root / "a" / name, "--to", "raw", "--out", root / name], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {path.stem: path.read_bytes() for path in (root / name).glob("*.raw")}


def whole():
    """Two senders at once, each with another flavour. The recording ends when both have stopped."""
    port = free_port()
    running = recorder(port, "whole", ",senders=2")
    # Slowly: the receive buffer of a machine for tests may be small.
    config = spead2.send.StreamConfig(max_packet_size=8000, rate=20e6)
    sent = []
    for bits in (48, 40):
        data = rng.integers(-2048, 2048, (HEAPS, SAMPLES), dtype=numpy.int16)
        stream = spead2.send.UdpStream(spead2.ThreadPool(), [("127.0.0.1", port)], config)
        heaps(items(bits), stream, data)
        sent.append(data)
    out, _ = running.communicate(timeout=60)
    account = json.loads(out)
    assert running.returncode == 0, account
    assert account["durable"]["events"] == 2 * (HEAPS + 1) and account["missing_events"] == {}, account
    manifest = json.loads((root / "a" / "whole" / "keepup.json").read_text())
    values = [value for name, value in manifest["metadata"].items() if name.endswith("/first_heap")]
    assert values == ["1", "1"], manifest["metadata"]
    found = exported("whole")
    data = sorted(stream[-2 * HEAPS * SAMPLES:] for stream in found.values())
    assert data == sorted(rows.astype(">i2").tobytes() for rows in sent), "samples differ"
    return 2 * HEAPS


def damaged():
    """Packets out of order within and across heaps, some lost: the rest is recorded, and the loss counted."""
    stream = spead2.send.BytesStream(spead2.ThreadPool(), spead2.send.StreamConfig(max_packet_size=1472))
    data = rng.integers(-2048, 2048, (HEAPS, SAMPLES // 50), dtype=numpy.int16)
    group = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48))
    group.add_item(0x1600, "timestamp", "of the first sample", shape=(), format=[("u", 48)])
    group.add_item(0x3300, "samples", "of one polarization", shape=data.shape[1:], dtype=">i2")
    heaps(group, stream, data, cnt=-1)
    packets, rest = [], stream.getvalue()
    while rest:
        count = struct.unpack(">H", rest[6:8])[0]
        pointers = struct.unpack(f">{count}Q", rest[8:8 + 8 * count])
        of = {pointer >> 48 & 0x7FFF: pointer & (1 << 48) - 1 for pointer in pointers}
        length = 8 + 8 * count + of[4]
        packets.append((of[1], rest[:length]))
        rest = rest[length:]
    stop = packets.pop()
    lost = {6, 9, HEAPS + 1}
    for heap in lost:
        at = [index for index, (number, _) in enumerate(packets) if number == heap]
        del packets[at[len(at) // 2]]
    first = [packet for packet in packets if packet[0] == 1]
    others = [packet for packet in packets if packet[0] > 1]
    for at in range(0, len(others) - 5, 10):
        others[at], others[at + 5] = others[at + 5], others[at]
    port = free_port()
    running = recorder(port, "damaged")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        for _, packet in first + others + [stop]:
            sender.send(packet)
    out, _ = running.communicate(timeout=60)
    account = json.loads(out)
    assert running.returncode == 1 and account["missing_events"] == {"sequence_gap": len(lost)}, account
    [stream] = exported("damaged").values()
    kept = [row for number, row in enumerate(data.astype(">i2"), 2) if number not in lost]
    assert stream.endswith(b"".join(row.tobytes() for row in kept)), "samples differ"
    return len(kept)


(root / "a").mkdir(parents=True)
print(f"{whole()} heaps of two senders, and {damaged()} beside lost packets, as spead2 sent them")
