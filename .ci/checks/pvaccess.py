"""Serves images as areaDetector's NDPluginPva does (NTNDArray over pvAccess, by p4p), and reads with h5py what keepup
recorded of them. Monitors keepup's simulated IOC with p4p.

usage: pvaccess.py KEEPUP DIRECTORY
"""
import faulthandler
import json
import pathlib
import queue
import re
import socket
import subprocess
import sys
import time
import urllib.request

import h5py
import hdf5plugin
import numpy
from mcap.reader import make_reader
from p4p import Value
from p4p.client.thread import Context
from p4p.nt import NTNDArray
from p4p.server import Server
from p4p.server.thread import SharedPV

# Shows where it waits, before the time limit of the check.
faulthandler.dump_traceback_later(280, exit=True)
keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(28)
START = 1_795_685_400
COUNT = 40
PV = "KEEPUP:Pva1:Image"
# Numbers of pvData's scalar types, which areaDetector puts into codec.parameters.
SCALARS = {"i1": 1, "i2": 2, "i4": 3, "i8": 4, "u1": 5, "u2": 6, "u4": 7, "u8": 8, "f4": 9, "f8": 10}
LOCAL = {"EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVAS_BROADCAST_PORT": "0",
         "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO", "EPICS_PVAS_BEACON_ADDR_LIST": "127.0.0.1"}


def chunks(frames, filters):
    """Each frame as the HDF5 filter stores it."""
    with h5py.File("frames", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", data=frames, chunks=(1, *frames.shape[1:]), **filters)
        return [data.id.read_direct_chunk((index,) + (0,) * (frames.ndim - 1))[1] for index in range(len(frames))]


def compressed(frames, codec):
    """Each frame as NDPluginCodec compresses it: `bslz4` and `lz4` are without the header of the HDF5 filter."""
    match codec:
        case "bslz4":
            found = chunks(frames, hdf5plugin.Bitshuffle(cname="lz4"))
            assert all(chunk[8:12] == (8192).to_bytes(4, "big") for chunk in found)
            return [chunk[12:] for chunk in found]
        case "lz4":
            # One block, as LZ4_compress_default makes it.
            found = chunks(frames, hdf5plugin.LZ4(nbytes=frames[0].nbytes))
            assert all(int.from_bytes(chunk[12:16], "big") == len(chunk) - 16 for chunk in found)
            return [chunk[16:] for chunk in found]
        case "lz4hdf5":
            return chunks(frames, hdf5plugin.LZ4(nbytes=4096))
        case "jpeg":
            # Bytes of different lengths; nothing decodes them.
            return [frame.tobytes()[: 100 + index] for index, frame in enumerate(frames)]


def signed(number):
    """A number as an int32 counter shows it."""
    return (number + 2**31) % 2**32 - 2**31


class FirstConnection:
    """When the first client connected to a PV."""
    since = None

    def onFirstConnect(self, pv):
        self.since = time.monotonic()


class Detector:
    """A server with one PV. Until the first image is posted, its value is an image of an earlier run."""

    def __init__(self, port="0"):
        self.type = NTNDArray.buildType()
        self.connection = FirstConnection()
        self.pv = SharedPV(initial=self.image(numpy.zeros((3, 3), "u1"), 4711), handler=self.connection)
        self.server = Server(providers=[{PV: self.pv}], conf={**LOCAL, "EPICS_PVAS_SERVER_PORT": port}, useenv=False)
        self.port = self.server.conf()["EPICS_PVAS_SERVER_PORT"]
        self.address = f"pva://127.0.0.1:{self.port}/{PV},queue=64"

    def image(self, frame, index, codec=None, payload=None, is_partial=False):
        number = signed(index)
        pixels = frame if codec is None else numpy.frombuffer(payload, "u1")
        stamp = {"secondsPastEpoch": START, "nanoseconds": number % 10**6}
        fields = {
            "value": (NTNDArray._code2u[pixels.dtype.char], pixels.flatten()),
            "uniqueId": number, "dataTimeStamp": stamp, "timeStamp": {**stamp, "secondsPastEpoch": START + 7},
        }
        if not is_partial:
            fields |= {
                "compressedSize": pixels.nbytes, "uncompressedSize": frame.nbytes,
                "codec": {"name": codec or "", "parameters": SCALARS[frame.dtype.str[1:]]},
                "dimension": [{"size": size, "fullSize": size, "binning": 1} for size in reversed(frame.shape)],
                "attribute": [{"name": "ColorMode", "value": 0}, {"name": "Gain", "value": 1.5},
                              {"name": "Operator", "value": "µ"}],
            }
        return Value(self.type, fields)

    def is_monitored(self):
        # p4p can lock up if its server is asked while it reports a connection: it holds Python's lock meanwhile.
        if self.connection.since is None or time.monotonic() < self.connection.since + 0.3:
            return False
        return re.search(f"{PV} .*Executing .*MONITOR", self.server.tostr(3)) is not None


def record(source, is_monitored, name, events, act):
    """Records what `act` posts; returns the exit code and the account."""
    command = [keepup, "record", "--from", source, "--name", name, "--stop-after", f"{events} events", "--json"]
    volumes = [word for volume in ("a", "b") for word in ("--volume", root / volume)]
    page = ["--http", "127.0.0.1:0"]
    with open(root / f"{name}.log", "w+") as log:
        recorder = subprocess.Popen(command + volumes + page, stdout=subprocess.PIPE, stderr=log, text=True)
        until(is_monitored, "the recorder does not subscribe")
        act()
        out, _ = recorder.communicate(timeout=60)
    return recorder.returncode, json.loads(out)


def received(name):
    """Events that the recorder has received, by its metrics."""
    log = root / f"{name}.log"
    until(lambda: "live page: " in log.read_text(), "the recorder does not start")
    page = re.search(r"live page: (http://[^/]+/)", log.read_text())
    with urllib.request.urlopen(page[1] + "metrics") as metrics:
        found = re.search(r"^keepup_stream_received_events\S* (\d+)", metrics.read().decode(), re.MULTILINE)
    return int(found[1]) if found else 0


def until(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def opened(name):
    return h5py.File(root / "a" / name / "recording.nxs")


def metadata(file):
    return {item.attrs["key"].decode(): item[()].decode() for item in file["entry/metadata"].values()}


def check(name, frames, numbers):
    """The master over both volumes gives the pixels that were posted."""
    with opened(name) as file:
        group = file["entry"][PV]
        valid = group["valid"][...].astype(bool)
        there = [number - numbers[0] for number in numbers]
        assert list(group["sequence"][...][valid]) == there, f"{name}: other images"
        data = group["data"][...][valid]
        assert data.dtype == frames.dtype and (data == frames).all(), f"{name}: other pixels"
        times = [START * 10**9 + signed(number) % 10**6 for number in numbers]
        assert list(group["timestamp"][...][valid]) == times, f"{name}: other times"
        expected = {"pv": PV, "first_unique_id": str(numbers[0]), "ColorMode": "0", "Gain": "1.5", "Operator": "µ"}
        assert expected.items() <= metadata(file).items(), metadata(file)
    verified = subprocess.run([keepup, "verify", root / "a" / name, "--json"], stdout=subprocess.PIPE, check=False)
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stdout


def series(name, dtype, shape, codec=None, lost=(), start=100):
    """Posts a series without the images `lost`; every second image with its changed fields alone."""
    detector = Detector()
    top = numpy.iinfo(dtype).max if numpy.dtype(dtype).kind in "iu" else 1000
    frames = rng.integers(0, min(top, 30), (COUNT, *shape)).astype(dtype)
    payloads = [None] * COUNT if codec is None else compressed(frames, codec)
    there = [index for index in range(COUNT) if index not in lost]

    def act():
        for index in there:
            is_partial = index % 2 == 1
            detector.pv.post(detector.image(frames[index], start + index, codec, payloads[index], is_partial))

    code, account = record(detector.address, detector.is_monitored, name, len(there), act)
    assert code == (1 if lost else 0), (name, code, account)
    assert account["received"]["events"] == account["durable"]["events"] == len(there), (name, account)
    assert account["missing_events"] == ({"sequence_gap": len(lost)} if lost else {}), (name, account)
    assert account["trouble"] == [] and account["whole"] == (not lost), (name, account)
    if codec != "jpeg":
        check(name, frames[there], [start + index for index in there])
    else:
        check_opaque(name, payloads)
    detector.server.stop()


def check_opaque(name, payloads):
    """Bytes that no HDF5 filter reads are in the segments as they were sent."""
    found = {}
    for path in [*root.glob(f"*/{name}/*.mcap")]:
        with open(path, "rb") as file:
            for _, channel, message in make_reader(file).iter_messages():
                assert channel.topic == PV
                found[message.sequence] = message.data
    assert [found[index] for index in sorted(found)] == payloads, f"{name}: other bytes"


def restarted(name):
    """The server ends in mid-series and comes back; images are lost meanwhile."""
    detectors = [Detector()]
    frames = rng.integers(0, 1000, (30, 60, 80)).astype("u2")

    def act():
        for index in range(10):
            detectors[0].pv.post(detectors[0].image(frames[index], 1 + index))
        # The server drops what it has not sent when it stops: wait until the recorder has answered it all.
        until(lambda: received(name) == 10, "the recorder does not receive")
        detectors[0].server.stop()
        detectors.append(Detector(detectors[0].port))
        assert detectors[1].port == detectors[0].port
        until(detectors[1].is_monitored, "the recorder does not come back")
        for index in range(15, 30):
            detectors[1].pv.post(detectors[1].image(frames[index], 1 + index))

    code, account = record(detectors[0].address, detectors[0].is_monitored, name, 25, act)
    assert code == 1 and account["missing_events"] == {"connection_lost": 5}, (code, account)
    there = [*range(10), *range(15, 30)]
    check(name, frames[there], [1 + index for index in there])
    detectors[1].server.stop()


def older_server(name):
    """Images of 2 MB from EPICS's older server, one after the other: it has a queue of its own length."""
    shape, count = (1000, 1000), 12
    frames = rng.integers(0, 60_000, (2 * count, *shape)).astype("u2")
    numpy.save(root / "frames.npy", frames)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, pathlib.Path(__file__).with_name("pvaccess_ioc.py"), str(port), *map(str, shape)]
    ioc = subprocess.Popen([*command, root / "frames.npy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_for_post():
        while not (line := ioc.stdout.readline()).startswith("posted"):
            assert line, "the IOC has ended"

    def post():
        ioc.stdin.write("\n")
        ioc.stdin.flush()
        wait_for_post()

    def act():
        # The IOC does not tell who monitors it: images that are posted earlier are not recorded.
        while (before := received(name)) < count - 1:
            post()
            if before > 0:
                until(lambda: received(name) > before, "the recorder does not receive")
            else:
                time.sleep(0.5)
        post()

    # The value before the recording.
    wait_for_post()
    code, account = record(f"pva://127.0.0.1:{port}/KEEPUP:Image", lambda: True, name, count, act)
    ioc.communicate(timeout=30)
    assert code == 0 and account["missing_events"] == {}, (code, account)
    with opened(name) as file:
        first = int(metadata(file)["first_unique_id"]) - 1000
        data = file["entry/KEEPUP:Image/data"][...]
        assert len(data) >= count and (data == frames[first:first + len(data)]).all(), f"{name}: other pixels"


def simulated_ioc(settings):
    """Starts a simulated IOC; returns its process, port and PV. The same seed gives the same images."""
    command = [keepup, "source", *settings, "--as", "pvaccess", "--listen", "127.0.0.1:0", "--seed", "28", "--json"]
    source = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = re.search(r"--from pva://127.0.0.1:(\d+)/(\S+)`", source.stderr.readline())
    return source, found[1], found[2]


def monitored(settings, request, count):
    """All updates that p4p gets from a simulated IOC, which it finds by asking it for the PV over TCP."""
    source, port, pv = simulated_ioc(settings)
    client = Context("pva", conf={"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{port}", "EPICS_PVA_ADDR_LIST": "127.0.0.1",
                                  "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False, nt=False)
    updates = queue.SimpleQueue()
    subscription = client.monitor(pv, updates.put, request=request)
    # The first one is the value before the run.
    found = [updates.get(timeout=60) for _ in range(count + 1)]
    subscription.close()
    client.close()
    out, _ = source.communicate(timeout=60)
    assert source.returncode == 0, out
    return found, json.loads(out)


def simulator(name, profile, request, count):
    """p4p gets from a simulated IOC, image by image, what keepup records from one with the same seed."""
    settings = [profile, "--events", str(count), "--rate", "200 MB/s"]
    (before, *updates), report = monitored(settings, request, count)
    assert report["sent"]["events"] == count and report["lost_at_source"]["events"] == 0, report
    assert before.uniqueId == 0 and before.value is None and len(before.dimension) == 0
    assert before.getID() == "epics:nt/NTNDArray:1.0"
    assert [update.uniqueId for update in updates] == [*range(1, count + 1)]
    source, port, pv = simulated_ioc(settings)
    code, account = record(f"pva://127.0.0.1:{port}/{pv}", lambda: True, name, count, lambda: None)
    source.communicate(timeout=60)
    assert code == 0 and account["missing_events"] == {}, (code, account)
    with opened(name) as file:
        group = file["entry"][pv]
        data = group["data"]
        for update, frame in zip(updates, data, strict=True):
            shape = [dimension.size for dimension in reversed(update.dimension)]
            assert (frame == NTNDArray.unwrap(update)).all() and list(frame.shape) == shape, f"{name}: other pixels"
            assert update.compressedSize == update.uncompressedSize == frame.nbytes
            assert frame.dtype == update.value.dtype and update.codec.name == ""
            assert update.timeStamp.todict() == update.dataTimeStamp.todict()
        attributes = {attribute.name: str(attribute.value) for attribute in updates[-1].attribute}
        expected = {"pv": pv, "first_unique_id": "1", **attributes}
        assert attributes.keys() == {"ColorMode", "DriverVersion"} and expected == metadata(file), metadata(file)
        times = [update.timeStamp.secondsPastEpoch * 10**9 + update.timeStamp.nanoseconds for update in updates]
        steps, recorded = numpy.diff(times), numpy.diff(group["timestamp"][...])
        # The clock of the detector is the same in both runs.
        assert (abs(steps - recorded.astype(numpy.int64)) <= 1).all(), f"{name}: other times"


def slow_client(name):
    """Images that a slow p4p client misses are gaps in `uniqueId`, and counted by the IOC."""
    settings = ["eiger2-4m-8bit", "--event", "1MiB", "--buffer", "3MiB", "--rate", "400 /s", "--time", "3s"]
    source, port, pv = simulated_ioc(settings)
    client = Context("pva", conf={"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{port}", "EPICS_PVA_ADDR_LIST": "127.0.0.1",
                                  "EPICS_PVA_AUTO_ADDR_LIST": "NO"}, useenv=False, nt=False)
    numbers = []

    def take(update):
        if isinstance(update, Exception):
            return
        numbers.append(update.uniqueId)
        time.sleep(0.02)

    subscription = client.monitor(pv, take, request="record[pipeline=true,queueSize=4]field()")
    out, _ = source.communicate(timeout=60)
    report = json.loads(out)
    until(lambda: len(numbers) > report["sent"]["events"], "p4p does not hand out everything")
    subscription.close()
    client.close()
    due, lost = report["due"]["events"], report["lost_at_source"]["events"]
    assert source.returncode == 1 and lost > due // 2, report
    assert numbers == sorted(set(numbers)) and len(numbers) == report["sent"]["events"] + 1 == due - lost + 1, report
    print(f"{name}: {len(numbers) - 1} of {due} images taken, {lost} lost at the source")


(root / "a").mkdir(parents=True, exist_ok=True)
(root / "b").mkdir(parents=True, exist_ok=True)
begin = time.monotonic()
series("plain", "u2", (200, 300))
series("bytes", "i1", (33, 57))
series("colour", "u1", (50, 40, 3))
series("reals", "f8", (20, 30))
series("bitshuffled", "u4", (200, 301), "bslz4")
series("lz4", "u2", (200, 300), "lz4")
series("lz4hdf5", "i4", (200, 300), "lz4hdf5")
series("jpeg", "u1", (20, 30), "jpeg")
series("gaps", "u2", (200, 300), "bslz4", lost={3, 4, 20, 38})
series("wrapped", "u2", (20, 30), start=2**31 - 20)
restarted("restarted")
older_server("older")
simulator("simulated", "oryx-51s5m", "record[queueSize=64]field()", 30)
simulator("pipelined", "lambda-750k-pva", "record[pipeline=true,queueSize=8]field()", 60)
slow_client("slow client")
print(f"15 series of pvAccess servers recorded in {time.monotonic() - begin:.1f} s")
