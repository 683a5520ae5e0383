"""Plays a DECTRIS detector with its HTTP interface (SIMPLON API reference 1.8) and its stream (pyzmq, cbor2), and checks
that keepup reads the configuration, arms, triggers and disarms, also when the detector misbehaves.

usage: simplon.py KEEPUP DIRECTORY
"""
import datetime
import decimal
import http.server
import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import cbor2
import h5py
import numpy
import zmq

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
START = datetime.datetime(2026, 11, 26, 9, 30, tzinfo=datetime.timezone.utc)
CHANNELS = ["threshold_1", "threshold_2"]
context = zmq.Context()


class Detector:
    """A detector: HTTP server, PUSH socket, and the series that it sends."""

    def __init__(self, version="1.8.0", images=20, trigger_mode="ints"):
        self.version, self.images, self.state, self.number = version, images, "idle", 0
        # Parameters as text: what is recorded must be the same to the last digit.
        self.parameters = {
            "detector/config/nimages": '{"value": %d, "value_type": "uint", "min": 1}' % images,
            "detector/config/ntrigger": '{"value": 1, "value_type": "uint"}',
            "detector/config/trigger_mode": '{"value": "%s", "allowed_values": ["ints", "exts", "exte"]}' % trigger_mode,
            "detector/config/frame_time": '{"value": 0.0001, "unit": "s"}',
            "detector/config/threshold/1/energy": '{ "value" : 6200.12345678901234567890, "unit" : "eV" }',
            "detector/config/detector_translation": '{"value": [0.0, -1e-320, 9007199254740993]}',
            "detector/config/description": '{"value": "µ \\"quoted\\" \\\\ \\u0007"}',
            # Set while arming.
            "detector/config/data_collection_date": '{"value": "never"}',
            "stream/config/mode": '{"value": "enabled"}',
            "stream/config/header_appendix": '{"value": ""}',
            "detector/status/temperature": '{"value": 21.5}',
        }
        self.commands, self.requested, self.hooks = [], [], {}
        self.socket = context.socket(zmq.PUSH)
        self.socket.sndhwm = 1000
        self.stream = f"127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.lock, self.is_in_series = threading.Lock(), False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.socket.close(linger=0)

    def get(self, path):
        """Status and text for a path."""
        subsystem, api, *rest = path.strip("/").split("/")
        if rest == ["version"]:
            return 200, json.dumps({"value": self.version, "value_type": "string"})
        if api != "api" or rest[:1] != [self.version]:
            return 404, "no such version"
        name = "/".join([subsystem, *rest[1:]])
        if name == "detector/status/state":
            return 200, json.dumps({"value": self.state})
        if name.endswith("/keys"):
            part = name.removesuffix("keys")
            names = [key.removeprefix(part) for key in self.parameters if key.startswith(part)]
            if part == "detector/config/":
                # Two of them are never requested, one does not exist.
                names += ["flatfield", "threshold/1/pixel_mask", "gone"]
            return 200, json.dumps({"value": names, "value_type": "list"})
        if name in self.parameters:
            return 200, self.parameters[name]
        return 404, "Parameter does not exist"

    def put(self, command):
        self.commands.append(command)
        if command in self.hooks and (answer := self.hooks[command]()):
            return answer
        return getattr(self, command)() or (200, json.dumps({"sequence id": self.number}))

    def arm(self):
        time.sleep(0.3)
        with self.lock:
            self.number += 1
            self.state, self.is_in_series = "ready", True
            self.parameters["detector/config/data_collection_date"] = '{"value": "armed %d"}' % self.number
            # Without a receiver, the start of the series is lost.
            self.send({
                "type": "start", "channels": CHANNELS, "image_dtype": "uint16", "image_size_x": 30, "image_size_y": 20,
                "number_of_images": self.images, "arm_date": START,
            })

    def trigger(self):
        self.expose(self.images)
        self.end()

    def expose(self, images):
        """Images of the series, from 0 on."""
        self.state = "acquire"
        for index in range(images):
            data = {
                name: cbor2.CBORTag(40, [[20, 30], cbor2.CBORTag(69, frame(self.number, index, at).tobytes())])
                for at, name in enumerate(CHANNELS)
            }
            self.send({
                "type": "image", "image_id": index, "real_time": [1, 1000], "series_date": START,
                "start_time": [index, 1000], "stop_time": [index + 1, 1000], "data": data,
            })

    def disarm(self):
        self.end()

    def end(self):
        with self.lock:
            if self.is_in_series:
                self.send({"type": "end"})
            self.state, self.is_in_series = "idle", False

    def send(self, message):
        message |= {"series_id": self.number, "series_unique_id": f"01J{self.number}"}
        try:
            self.socket.send(cbor2.dumps(message, datetime_as_timestamp=False), zmq.NOBLOCK)
        except zmq.Again:
            self.commands.append(f"dropped {message['type']}")


def frame(number, index, channel):
    return (numpy.arange(600, dtype="<u2").reshape(20, 30) + 100 * number + 10 * index + channel).astype("<u2")


def handler(detector):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Idle connections are closed early.
        timeout = 0.5

        def do_GET(self):
            detector.requested.append(self.path)
            hook = detector.hooks.get("GET")
            self.answer(*((hook and hook(self.path)) or detector.get(self.path)))

        def do_PUT(self):
            assert int(self.headers.get("Content-Length", 0)) == 0, "a command without arguments has no body"
            prefix = f"/detector/api/{detector.version}/command/"
            self.answer(*(detector.put(self.path.removeprefix(prefix)) if self.path.startswith(prefix) else (404, "")))

        def answer(self, status, text):
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            try:
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                # A recorder that was stopped did not wait for it.
                self.close_connection = True

        def log_message(self, *_):
            pass

    return Handler


class Recorder:
    """keepup record for some detectors."""

    def __init__(self, name, *detectors, options=(), arms=True):
        command = [keepup, "record", "--name", name, "--json", "--volume", root / "a", "--pool", "64 MiB", *options]
        for detector in detectors:
            command += ["--from", f"zmq://{detector.stream}", "--simplon", detector.url]
        self.name, self.lines, self.text = name, [], ""
        self.process = subprocess.Popen(
            command + (["--arm"] if arms else []), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said = threading.Condition()
        self.readers = [threading.Thread(target=self.read_errors), threading.Thread(target=self.read_output)]
        for reader in self.readers:
            reader.start()

    def read_errors(self):
        for line in self.process.stderr:
            with self.said:
                self.lines.append(line.rstrip("\n"))
                self.said.notify_all()

    def read_output(self):
        self.text = self.process.stdout.read()

    def wait_for(self, text):
        with self.said:
            assert self.said.wait_for(lambda: any(text in line for line in self.lines), 30), (text, self.lines)

    def finish(self, timeout=60):
        """Exit code, account and messages."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError((self.name, self.lines)) from None
        for reader in self.readers:
            reader.join()
        account = json.loads("{" + f"\n{self.text}".rpartition("\n{")[2]) if self.text else None
        return code, account, "\n".join(self.lines)


def exact(text):
    return json.loads(text, parse_float=decimal.Decimal)


def configuration(name, stream="detector_config"):
    """The recorded document."""
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        data = file[f"entry/{stream}/data"]
        assert data.dtype == "u1" and data.ndim == 2 and len(data) == 1, data
        assert file[f"entry/{stream}"].attrs["NX_class"] == b"NXcollection", "a program would take it for images"
        # A recording without images has no default.
        assert b"threshold_1" in file["entry"].attrs.get("default", b"threshold_1"), "the default is no image"
        return bytes(data[0]).decode()


def check(name, detector, number, stream="detector_config"):
    """The recorded configuration is what the detector served after it was armed."""
    text = configuration(name, stream)
    found, served = exact(text), detector.parameters
    armed = {**served, "detector/config/data_collection_date": '{"value": "armed %d"}' % number}
    for subsystem, kind in [("detector", "config"), ("detector", "status"), ("stream", "config")]:
        part = f"{subsystem}/{kind}/"
        expected = {key.removeprefix(part): value for key, value in armed.items() if key.startswith(part)}
        assert found[subsystem][kind] == {key: exact(value) for key, value in expected.items()}, (name, found)
        assert all(value.strip() in text for value in expected.values()), (name, text)
    assert found["format"] == 1 and found["url"] == detector.url, found
    assert found["detector"]["version"] == found["stream"]["version"] == detector.version, found
    assert set(found["left_out"]) == {
        "detector/config/flatfield", "detector/config/threshold/1/pixel_mask", "detector/config/gone"
    }, found["left_out"]
    assert not any("flatfield" in path or "pixel_mask" in path for path in detector.requested), detector.requested
    return found


def check_images(name, number, images, prefix=""):
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        for at, channel in enumerate(CHANNELS):
            data = file[f"entry/{prefix}{channel}/data"][...]
            assert data.shape == (images, 20, 30), (name, data.shape)
            assert all((data[index] == frame(number, index, at)).all() for index in range(images)), name


def verify(name):
    verified = subprocess.run([keepup, "verify", root / "a" / name, "--json"], stdout=subprocess.PIPE, check=False)
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stdout


def not_recorded(name):
    assert not (root / "a" / name).exists(), f"{name} was recorded"


def hanging_disarm():
    """A detector that does not answer disarm: the data are safe, and the command ends."""
    detector = Detector()
    detector.hooks["disarm"] = lambda: time.sleep(50)
    recorder = Recorder("hangs", detector, options=["--trigger"])
    code, account, said = recorder.finish(timeout=100)
    assert code == 1 and account["durable"]["events"] == 41 and account["whole"], (code, account)
    assert "cannot disarm" in said and f"curl -X PUT {detector.url}/detector/api/1.8.0/command/disarm" in said, said
    assert any("cannot disarm" in incident for incident in account["incidents"]["listed"]), account["incidents"]
    check("hangs", detector, 1)
    detector.close()


def triggered():
    for version in ("1.8.0", "1.6.0"):
        name, detector = f"triggered-{version}", Detector(version)
        code, account, said = Recorder(name, detector, options=["--trigger"]).finish()
        assert code == 0 and account["whole"] and account["durable"]["events"] == 2 * 20 + 1, (code, account, said)
        assert detector.commands == ["arm", "trigger", "disarm"], detector.commands
        assert check(name, detector, 1)["series"] == 1
        listed, = account["incidents"]["listed"]
        assert "1 parameters could not be read: detector/config/gone: HTTP status 404" in listed, listed
        check_images(name, 1, 20)
        verify(name)
        info = subprocess.run([keepup, "info", root / "a" / name], stdout=subprocess.PIPE, text=True, check=True)
        assert "detector_config" in info.stdout, info.stdout
        detector.close()


def not_armed():
    """Another program arms the detector; the configuration is that of the armed detector."""
    detector = Detector(trigger_mode="exts")
    recorder = Recorder("not-armed", detector, arms=False)
    recorder.wait_for("receiving from")
    time.sleep(1)
    detector.arm()
    recorder.wait_for("configuration of")
    detector.trigger()
    code, account, said = recorder.finish()
    assert code == 0 and account["durable"]["events"] == 41 and detector.commands == [], (code, account, said)
    assert check("not-armed", detector, 1)["series"] is None
    check_images("not-armed", 1, 20)
    detector.close()
    # A series that is over before the configuration can be read.
    detector = Detector()
    recorder = Recorder("short", detector, arms=False)
    recorder.wait_for("receiving from")
    time.sleep(1)
    detector.hooks["GET"] = lambda path: time.sleep(0.1)
    detector.arm()
    detector.trigger()
    code, account, said = recorder.finish()
    assert code == 0 and account["durable"]["events"] == 41, (code, account, said)
    check("short", detector, 1)
    detector.close()


def stopped():
    """An external trigger, and Ctrl-C: disarm brings the last image and the end of the series."""
    detector = Detector(trigger_mode="exte")
    detector.hooks["disarm"] = lambda: detector.expose(20)
    recorder = Recorder("stopped", detector)
    recorder.wait_for("configuration of")
    recorder.process.send_signal(signal.SIGINT)
    code, account, said = recorder.finish()
    assert code == 0 and account["ended"] == "all sources have ended", (code, account, said)
    assert account["durable"]["events"] == 41 and detector.commands == ["arm", "disarm"], (account, detector.commands)
    check_images("stopped", 1, 20)
    detector.close()
    # Software triggers that another program sends, and a signal before them.
    detector = Detector()
    recorder = Recorder("before", detector)
    recorder.wait_for(f"waiting for a trigger: curl -X PUT {detector.url}/detector/api/1.8.0/command/trigger")
    recorder.process.send_signal(signal.SIGTERM)
    code, account, said = recorder.finish()
    assert detector.commands == ["arm", "disarm"] and detector.state == "idle", (detector.commands, said)
    check("before", detector, 1)
    detector.close()
    # While the detector is being armed.
    detector = Detector()
    detector.hooks["arm"] = lambda: time.sleep(1)
    recorder = Recorder("arming", detector, options=["--trigger"])
    recorder.wait_for("arming http://")
    recorder.process.send_signal(signal.SIGINT)
    recorder.finish()
    assert detector.commands == ["arm", "disarm"] and detector.state == "idle", detector.commands
    detector.close()
    # A detector that is stopped in the middle of a trigger.
    detector = Detector()
    ends = threading.Event()
    detector.hooks["trigger"] = lambda: detector.expose(5) or (ends.wait(30) and (400, "aborted"))
    detector.hooks["disarm"] = lambda: ends.set()
    recorder = Recorder("aborted", detector, options=["--trigger"])
    recorder.wait_for("configuration of")
    while "trigger" not in detector.commands:
        time.sleep(0.01)
    recorder.process.send_signal(signal.SIGINT)
    code, account, said = recorder.finish()
    assert detector.commands == ["arm", "trigger", "disarm"] and "cannot trigger" not in said, (detector.commands, said)
    assert code == 1 and account["durable"]["events"] == 11 and account["missing_events"] == {"sequence_gap": 30}, account
    verify("aborted")
    detector.close()


def limited():
    detector = Detector()
    recorder = Recorder("limited", detector, options=["--stop-after", "2 s"])
    code, account, said = recorder.finish()
    assert code == 0 and "2 s" in account["ended"] and detector.commands == ["arm", "disarm"], (account, said)
    check("limited", detector, 1)
    detector.close()


    # The recording ends before the configuration was read: the report says so.
    detector = Detector()
    detector.hooks["GET"] = lambda path: time.sleep(0.3) if detector.number else None
    recorder = Recorder("early", detector, options=["--stop-after", "10 events"], arms=False)
    recorder.wait_for("receiving from")
    time.sleep(1)
    detector.arm()
    detector.trigger()
    code, account, said = recorder.finish()
    assert code == 1 and account["durable"]["events"] >= 10, (code, account, said)
    assert any("configuration of" in incident for incident in account["incidents"]["listed"]), account["incidents"]
    detector.close()


def several():
    detectors = [Detector(), Detector("1.6.0", images=10)]
    code, account, said = Recorder("several", *detectors, options=["--trigger"]).finish()
    assert code == 0 and account["durable"]["events"] == 2 * 20 + 2 * 10 + 2, (code, account, said)
    for detector in detectors:
        assert detector.commands == ["arm", "trigger", "disarm"], detector.commands
        check("several", detector, 1, f"{detector.stream}-detector_config")
        check_images("several", 1, detector.images, f"{detector.stream}-")
        detector.close()


def series():
    detector = Detector()
    recorder = Recorder("run", detector, options=["--trigger", "--series", "3"])
    code, account, said = recorder.finish()
    assert code == 0 and detector.commands == ["arm", "trigger", "disarm"] * 3, (code, detector.commands, said)
    names = sorted((path.name for path in (root / "a").glob("run-*")), key=lambda name: int(name.split("-")[1]))
    for number, name in enumerate(names, start=1):
        assert check(name, detector, number)["series"] == number, name
        check_images(name, number, 20)
    assert len(names) == 3, names
    detector.close()


def faults():
    # Refused: nothing is recorded, and nothing has to be disarmed.
    detector = Detector()
    detector.hooks["arm"] = lambda: (400, "high voltage is off")
    code, _, said = Recorder("refused", detector, options=["--trigger"]).finish()
    assert code == 4 and "HTTP status 400: high voltage is off" in said, (code, said)
    assert detector.commands == ["arm"], detector.commands
    not_recorded("refused")
    # An internal error of one of two: the other one is disarmed.
    detectors = [Detector(), Detector()]
    detectors[1].hooks["arm"] = lambda: time.sleep(1) or (500, "")
    code, _, said = Recorder("one-of-two", *detectors).finish()
    assert code == 4 and f"cannot arm {detectors[1].url}: HTTP status 500" in said, (code, said)
    assert [detector.commands for detector in detectors] == [["arm", "disarm"], ["arm"]], said
    # The trigger fails.
    detector = Detector()
    detector.hooks["trigger"] = lambda: (400, "not ready")
    code, _, said = Recorder("no-trigger", detector, options=["--trigger"]).finish()
    assert code == 4 and f"cannot trigger {detector.url}: HTTP status 400: not ready" in said, (code, said)
    assert detector.commands == ["arm", "trigger", "disarm"], detector.commands
    # The server answers nothing more after the detector was armed: the images are recorded.
    detector = Detector()
    detector.hooks["GET"] = lambda path: (500, "") if detector.number else None
    code, account, said = Recorder("no-config", detector, options=["--trigger"]).finish()
    assert code == 1 and account["whole"] and account["durable"]["events"] == 40, (code, account)
    assert "cannot read the configuration of" in said and detector.commands[-1] == "disarm", said
    check_images("no-config", 1, 20)
    # Messages that cannot be decoded end the recording, with and without the start of a series.
    for arms in (True, False):
        name, detector = f"undecodable-{arms}", Detector()
        detector.hooks["arm"] = lambda: time.sleep(0.5) or detector.socket.send(b"\x00", zmq.NOBLOCK) or (200, "{}")
        recorder = Recorder(name, detector, arms=arms)
        if not arms:
            recorder.wait_for("receiving from")
            time.sleep(1)
            detector.hooks["arm"]()
        code, account, said = recorder.finish()
        assert code == 1 and "a source failed" in account["ended"], (code, account, said)
        assert detector.commands == (["arm", "disarm"] if arms else []), (detector.commands, said)
    # What is wrong before the recording: nothing is armed, nothing recorded.
    for name, parameter, expected in [
        ("disabled", ("stream/config/mode", "disabled"), '-d \'{"value": "enabled"}\''),
        ("external", ("detector/config/trigger_mode", "exts"), "record without --trigger"),
    ]:
        detector = Detector()
        detector.parameters[parameter[0]] = json.dumps({"value": parameter[1]})
        code, _, said = Recorder(name, detector, options=["--trigger"]).finish()
        assert code == 4 and expected in said and detector.commands == [], (name, code, said)
        not_recorded(name)
    for state, expected in [("na", "command/initialize"), ("acquire", "command/disarm")]:
        detector = Detector()
        detector.state = state
        code, _, said = Recorder(state, detector).finish()
        assert code == 4 and expected in said and detector.commands == [], (state, code, said)
        not_recorded(state)
    detector = Detector()
    detector.close()
    code, _, said = Recorder("gone", detector).finish()
    assert code == 4 and "Connection refused" in said and f"curl {detector.url}" in said, (code, said)
    not_recorded("gone")
    # One address for two detectors.
    code, _, said = Recorder("unequal", Detector(), options=["--from", "zmq://127.0.0.1:9"]).finish()
    assert code == 2 and "in the same order" in said, (code, said)


(root / "a").mkdir(parents=True, exist_ok=True)
begin = time.monotonic()
slow = threading.Thread(target=hanging_disarm)
failed = []
threading.excepthook = lambda arguments: (failed.append(arguments), sys.__excepthook__(*arguments[:3]))
slow.start()
for case in (triggered, not_armed, stopped, limited, several, series, faults):
    case()
slow.join()
assert not failed, failed
print(f"a DECTRIS detector configured, armed, triggered and disarmed in {time.monotonic() - begin:.1f} s")
