"""Writes VDIF with baseband, sends its frames as UDP packets with a serial number in front, and reads with baseband
what keepup recorded of them.

usage: vdif.py KEEPUP DIRECTORY
"""
import json
import pathlib
import signal
import socket
import subprocess
import sys

import baseband.data
import numpy
from astropy import units
from astropy.time import Time
from baseband import vdif

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(28)
THREADS, SAMPLES, SECONDS = 2, 20_000, 3
RATE = 400 * units.kHz
PER_SECOND = 20
START = Time("2026-11-26T09:30:00", precision=9)


def write(path):
    """A file of two threads of 2-bit samples; returns its samples."""
    levels = numpy.array([-3.316505, -1.0, 1.0, 3.316505], "f4")
    data = levels[rng.integers(0, 4, (SECONDS * PER_SECOND * SAMPLES, THREADS))]
    # Extended data of version 3 states the sample rate.
    with vdif.open(str(path), "ws", edv=3, time=START, nchan=1, nthread=THREADS, bps=2, complex_data=False,
                   samples_per_frame=SAMPLES, station="Wz", sample_rate=RATE) as file:
        file.write(data)
    return data


def frames(path):
    """The frames of a file, each with its thread."""
    with vdif.open(str(path), "rb") as file:
        header = vdif.VDIFHeader.fromfile(file)
    bytes_, size = path.read_bytes(), header.frame_nbytes
    assert len(bytes_) % size == 0
    whole = [bytes_[at:at + size] for at in range(0, len(bytes_), size)]
    return [(int.from_bytes(frame[12:16], "little") >> 16 & 0x3FF, frame) for frame in whole]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def record(packets, name, options=",skip=8"):
    """Sends packets to a recorder; returns its exit code and account."""
    port = free_port()
    command = [keepup, "record", "--from", f"vdif://127.0.0.1:{port}{options}", "--name", name, "--volume", root / "a"]
    recorder = subprocess.Popen(command + ["--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (line := recorder.stderr.readline()).startswith("receiving from"):
        assert line, "the recorder has ended"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        for packet in packets:
            sender.send(packet)
    recorder.send_signal(signal.SIGINT)
    out, _ = recorder.communicate(timeout=60)
    return recorder.returncode, json.loads(out)


def baseband_samples():
    """Records the samples of baseband, most of them without a sample rate; returns their number of frames."""
    total = 0
    names = sorted(name for name in dir(baseband.data) if name.startswith("SAMPLE") and name.endswith("VDIF"))
    assert len(names) >= 4, names
    for name in names:
        content, sent, expected = pathlib.Path(getattr(baseband.data, name)).read_bytes(), [], {}
        while content:
            size = (int.from_bytes(content[8:12], "little") & 0xFFFFFF) * 8
            frame, content = content[:size], content[size:]
            sent.append(frame)
            # Station and thread.
            expected.setdefault((frame[12:14], frame[14] | (frame[15] & 3) << 8), []).append(frame)
        code, account = record(sent, name, "")
        assert code == 0 and account["durable"]["events"] == len(sent), (name, code, account)
        subprocess.run([keepup, "export", root / "a" / name, "--to", "raw", "--out", root / name], check=True)
        found = sorted(path.read_bytes() for path in (root / name).glob("*.raw"))
        assert found == sorted(b"".join(stream) for stream in expected.values()), f"{name} differs"
        total += len(sent)
    return total


def main():
    (root / "a").mkdir(parents=True)
    print(f"{baseband_samples()} frames of baseband's samples recorded")
    original = root / "original.vdif"
    samples = write(original)
    numbered = [(thread, at.to_bytes(8, "little") + frame) for at, (thread, frame) in enumerate(frames(original))]
    # Neighbours change places, as on a network with two paths; two frames of thread 1 are lost.
    for at in range(10, len(numbered) - 10, 7):
        numbered[at], numbered[at + 3] = numbered[at + 3], numbered[at]
    of_second = [at for at, (thread, _) in enumerate(numbered) if thread == 1]
    lost = {of_second[30], of_second[31]}
    code, account = record([packet for at, (_, packet) in enumerate(numbered) if at not in lost], "run")
    total = THREADS * SECONDS * PER_SECOND
    assert code == 1 and account["durable"]["events"] == total - 2, (code, account)
    assert account["missing_events"] == {"sequence_gap": 2}, account["missing_events"]
    subprocess.run([keepup, "export", root / "a/run", "--to", "raw", "--out", root / "raw"], check=True)
    whole = root / "raw" / "Wz-thread-0.raw"
    with vdif.open(str(whole), "rs") as file:
        assert file.sample_rate == RATE and abs(file.start_time - START) < 1 * units.ns, file.start_time
        # The lower of two threads: baseband squeezes a single thread.
        assert numpy.array_equal(file.read(), samples[:, 0]), "samples of thread 0 differ"
    with_gap = root / "raw" / "Wz-thread-1.raw"
    found = [frame for _, frame in frames(with_gap)]
    sent = [packet[8:] for at, (thread, packet) in enumerate(numbered) if thread == 1 and at not in lost]
    assert sorted(found) == sorted(sent) and len(found) == SECONDS * PER_SECOND - 2
    with vdif.open(str(with_gap), "rb") as file:
        times = [file.read_frame().header.get_time(frame_rate=PER_SECOND * units.Hz) for _ in found]
    assert all(later > earlier for earlier, later in zip(times, times[1:])), "frames are not in order"
    print(f"{total - 2} frames recorded; baseband reads {len(samples)} samples of thread 0 back")


main()
