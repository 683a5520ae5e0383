"""Takes awkward names through every place where keepup encodes a name a second time, and back.

Names of recordings and of volumes: the NeXus master and its virtual sources read from another working directory, a
recording set, Zarr references, archives in a directory and in an S3 store restored from the printed address, a drain
to another recorder, JSON, metrics, the pages of `keepup serve`, and the printed commands, which are run by a shell.
Names of streams and of metadata: HDF5, MCAP, raw files, Zarr references, metrics, JSON. A name that is not accepted
must be refused before anything is recorded, with `cannot ...` and a hint. Names that are not printable are those of
directories.

usage: names.py KEEPUP DIRECTORY
"""
import concurrent.futures
import contextlib
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import fsspec
import h5py
import numpy
import zarr
from mcap.reader import make_reader

import wire

keepup, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
# moto is in an environment of its own.
MOTO = pathlib.Path(sys.executable).parents[2] / "ci-archive/bin/moto_server"
EVENTS, SHAPE = 40, (64, 64)
# Each has several characters with a meaning elsewhere.
NAMES = [
    "%25 50%d", "#1~[a]{{x}}", " it's \"$HOME\" ", "$(id)`id`;|>", "--a=b,c", "<b>&amp;back\\slash\\n", "*?a::b",
    "Bru\u0308hl 日本語😀", "ü" * 100,
]
# Names of volumes only.
DIRECTORIES = ["👩\u200d🔬 \u202egnp", "tab\tbed\x07it's", "new\nline%s\\", "x" * 255]
REFUSED = ["", ".", "..", ".hidden", "a/b", "tab\tbed", "bell\x07", "new\nline", "\u202egnp", "x" * 201]
STREAM_NAMES = [
    *NAMES, *REFUSED, "...", "name?versionId=1", "\\", "*", "[", ".zgroup", "__init__", "bytes", "segments", "title",
    "metadata", "stream-3", "sequence", "data", "x" * 256,
]
HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
failures = []


@contextlib.contextmanager
def place(what, name):
    """Notes what fails here, and goes on with the next place."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        text = " ".join(str(error).split()) or type(error).__name__
        failures.append((what, name, text))
        print(f"FAILED {what}: {name!r}: {text[:300]}", flush=True)


def environment(**more):
    found = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**found, **more}


def run(*arguments, code=0, **more):
    done = subprocess.run([keepup, *map(str, arguments)], capture_output=True, timeout=120, **more)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    assert done.returncode == code, f"{arguments[0]} ended with {done.returncode}: {err or out}"
    return out


def frames(seed):
    return numpy.random.default_rng(seed).integers(0, 4000, (EVENTS, *SHAPE), dtype="u2")


def streams(names):
    return [{"id": number, "name": name, "element": "u16", "shape": SHAPE} for number, name in enumerate(names)]


def start(*arguments, cwd=None):
    return subprocess.Popen([keepup, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)


def started(program, words="listening on "):
    """Text behind these words on stderr, or None if the program has ended, and all of stderr until then."""
    text = ""
    for line in program.stderr:
        text += line.decode(errors="replace")
        if words in text:
            return text.split(words)[1].split()[0], text
    return None, text


def send(address, names, data):
    events = [(stream, n, 1000 + n, data[n].tobytes()) for n in range(EVENTS) for stream in range(len(names))]
    ends = [{"id": stream, "events": EVENTS, "bytes": EVENTS * data[0].nbytes, "lost_events": 0, "lost_bytes": 0,
             "next_sequence": EVENTS} for stream in range(len(names))]
    return wire.send(address, streams(names), events, ends)


def stop(process, how=signal.SIGINT):
    if process.poll() is None:
        process.send_signal(how)
    try:
        return process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def record(name, volumes, data, more=(), cwd=None, stream_names=("camera",)):
    """Records on these volumes; the report, or None and the error if the name was refused."""
    arguments = ["record", "--listen", "127.0.0.1:0", f"--name={name}", "--block", "64KiB", "--segment", "512KiB",
                 "--pool", "32MiB", "--json", *more]
    for volume in volumes:
        arguments.append(f"--volume={volume}")
    recorder = start(*arguments, cwd=cwd)
    address, said = started(recorder)
    if address is None:
        return None, (recorder.wait(60), said)
    try:
        send(address, stream_names, data)
        out, err = recorder.communicate(timeout=60)
    finally:
        stop(recorder, signal.SIGKILL)
    assert recorder.returncode == 0, f"record ended with {recorder.returncode}: {err.decode(errors='replace')}"
    return json.loads(out), None


def refused(name, error, volumes):
    """A refusal comes before anything is recorded, with a cause and a hint."""
    code, err = error
    left = [path for volume in volumes for path in volume.rglob("*")]
    assert code in (2, 3), f"exit code {code}"
    assert "cannot " in err, f"no cause: {err}"
    assert "hint:" in err, f"no hint: {err.strip()}"
    assert not left, f"left behind: {left}"


def files(directory):
    return {path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in directory.rglob("*") if path.is_file() and path.name not in ("recording.nxs",)
            and not path.name.startswith("archive-")}


@contextlib.contextmanager
def working_directory(path):
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def check_master(path, data, name=None, stream="camera"):
    """As a reader in another directory sees it."""
    for directory, shown in [("/", path), (path.parent, path.name), (root, os.path.relpath(path, root))]:
        with working_directory(directory), h5py.File(os.fsencode(shown)) as file:
            group = file["entry"][stream]
            valid = int((group["valid"][:] == 1).sum())
            assert valid == EVENTS, f"{valid} of {EVENTS} events are valid from {directory}"
            numpy.testing.assert_array_equal(group["data"][:], data)
            if name is not None:
                assert file["entry/title"][()].decode() == name, file["entry/title"][()]
            for link in file["entry/segments"]:
                assert len(file["entry/segments"][link]), f"the link {link} leads nowhere"


def check_references(path, data, stream, name=None):
    """Reads the references: a path, an offset and a length."""
    refs = json.loads(path.read_text())["refs"]
    if name is not None:
        assert json.loads(refs[".zattrs"])["name"] == name
    for row in range(EVENTS):
        target, offset, length = refs[f"{stream}/data/{row}.0.0"]
        with open(target, "rb") as file:
            file.seek(offset)
            assert file.read(length) == data[row].tobytes(), row


def commands(text):
    """Commands that a text proposes, joined where it was wrapped."""
    return [" ".join(found.split("\n")) for found in re.findall(r"keepup (?:recover|verify|drain) [^\n]+", text)]


def shell(command, cwd):
    """Runs a printed command as a user would paste it."""
    with_path = environment(PATH=f"{pathlib.Path(keepup).parent}:{os.environ['PATH']}")
    done = subprocess.run(["sh", "-c", command], cwd=cwd, env=with_path, capture_output=True, timeout=60)
    assert done.returncode == 0, f"`{command}` ended with {done.returncode}: {done.stderr.decode(errors='replace')}"


def printed_address(text):
    found = re.search(r"((?:s3|file)://\S+)", text)
    assert found, f"no address in {text!r}"
    return found.group(1)


class Store:
    """An S3 server of moto with one bucket."""

    def __init__(self):
        assert MOTO.exists(), f"cannot test S3: {MOTO} does not exist"
        self.server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env=environment())
        for line in self.server.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.url = found.group(0)
                break
        self.environment = environment(AWS_ENDPOINT_URL=self.url, AWS_ACCESS_KEY_ID="key", AWS_REGION="us-east-1",
                                       AWS_SECRET_ACCESS_KEY="secret", AWS_CHECKSUM_ALGORITHM="sha256")
        request = urllib.request.Request(f"{self.url}/bucket", method="PUT")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(request, timeout=30)
        self.log = open(root / "moto.log", "w")
        self.drain = subprocess.Popen(["cat"], stdin=self.server.stderr, stdout=self.log)

    def close(self):
        self.server.terminate()
        self.server.wait(30)
        self.drain.wait(30)
        self.log.close()


def label_values(text, label):
    """Values of a label in metrics, by the escapes of the exposition format."""
    values = set()
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        head = re.match(r'[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? \S+$', line)
        assert head, f"malformed line {line!r}"
        for key, value in re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', head.group(1) or ""):
            if key == label:
                values.add(re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value))
    return values


def get(url, accept="*/*", token=None):
    headers = {"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(urllib.request.Request(url, headers=headers), timeout=30).read().decode()


def recording(number, name, directory, s3):
    """A recording of this name, on volumes whose directories have the other one."""
    home = root / f"{number:03}"
    data = frames(number)
    volumes = [home / "v0" / directory, home / "v1" / directory]
    for volume in volumes:
        volume.mkdir(parents=True)
    report, error = record(name, volumes, data, [f"--meta=sample={name}"])
    assert report, error
    first = volumes[0] / name
    with place("JSON of record", name):
        assert pathlib.Path(report["master"]) == first / "recording.nxs", report["master"]
    with place("JSON of info", name):
        info = json.loads(run("info", first, "--json"))
        assert info["name"] == name and info["metadata"] == {"sample": name}, (info["name"], info["metadata"])
    with place("NeXus master", name):
        check_master(first / "recording.nxs", data, name)
    with place("metadata in the master", name):
        with h5py.File(os.fsencode(first / "recording.nxs")) as file:
            assert file["entry/metadata/sample"][()].decode() == name
    with place("verify", name):
        run("verify", first, cwd="/")
    with place("cat", name):
        done = subprocess.run([keepup, "cat", volumes[1] / name, "--stream", "0"], capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stdout == data.tobytes(), done.stderr
    with place("Zarr references", name):
        run("export", first, "--to", "zarr-reference", "--out", home / "refs.json")
        check_references(home / "refs.json", data, "camera", name)
    with place("master at another place", name):
        (home / "out" / name).mkdir(parents=True)
        run("export", first, "--to", "nexus", "--out", home / "out" / name / "master.nxs")
        check_master(home / "out" / name / "master.nxs", data, name)
    with place("bag", name):
        run("export", first, "--to", "bagit", "--out", home / "bag")
        run("verify", home / "bag/data")
    archives(home, first, name, data, s3)
    recording_set(home, first, name, directory, data)
    with place("drain to a directory", name):
        (home / "copy").mkdir()
        run("drain", first, "--to", home / "copy")
        copies = [path.parent for path in (home / "copy").rglob("keepup.json")]
        assert len(copies) == 1, copies
        assert json.loads(run("info", copies[0], "--json"))["origin"]["name"] == name
        check_master(copies[0] / "recording.nxs", data)
    with place("moved", name):
        shutil.move(home / "v0", home / "elsewhere0")
        shutil.move(home / "v1", home / "elsewhere1")
        (home / "moved").mkdir()
        for volume in 0, 1:
            shutil.move(home / f"elsewhere{volume}", home / "moved" / f"v{volume}")
        check_master(home / "moved/v0" / directory / name / "recording.nxs", data, name)


def archives(home, first, name, data, s3):
    """Archives of a recording, restored from the address that was printed."""
    (home / "store" / name).mkdir(parents=True)
    as_url = "file://" + urllib.parse.quote(str(home / "store" / name))
    for kind, to in [("directory", as_url), ("S3", f"s3://bucket/{home.name}/{urllib.parse.quote(name)}")]:
        with place(f"archive in {kind}", name):
            environment_ = s3 if kind == "S3" else environment()
            address = printed_address(run("drain", first, "--to", to, env=environment_))
            in_json = json.loads(run("drain", first, "--to", to, "--json", env=environment_))
            with place(f"printed address of the archive in {kind}", name):
                assert in_json["archive"] == address, f"{address} is printed, {in_json['archive']} in JSON"
            address = in_json["archive"]
            with place(f"address of the archive in {kind}, in a shell", name):
                done = subprocess.run(["sh", "-c", f"printf %s {address}"], capture_output=True, text=True, cwd="/")
                assert (done.returncode, done.stdout) == (0, address), f"{address}: {done.stdout} {done.stderr}"
            with place(f"address of the archive in {kind}, in info", name):
                assert address in run("info", first), f"{address} is not in {run('info', first)}"
            back = home / f"back {kind}"
            run("restore", address, back, env=environment_, cwd="/")
            run("verify", back)
            original, restored = files(first), files(back)
            assert original.items() <= restored.items(), f"{sorted(original)} {sorted(restored)}"
            assert json.loads(run("info", back, "--json"))["name"] == name
            check_master(back / "recording.nxs", data, name)


def recording_set(home, first, name, directory, data):
    """The recording as a set, whose file names its directories."""
    with place("recording set", name):
        said = json.loads(run("info", first, "--json"))
        directories = [f"v0/{directory}/{name}", f"v1/{directory}/{name}"]
        entry = {"host": "daq1", "id": said["recording"], "directories": directories, "end": "finished", "why": None}
        (home / "keepup-set.json").write_text(json.dumps({
            "format": "keepup-set", "version": 1, "name": name, "run": said["run"], "id": "5e" * 16,
            "created_unix_ns": 1795751999000000000, "fleet": "hall", "recordings": [entry], "moves": []}))
        assert json.loads(run("verify", home, "--json"))["whole"]
        run("export", home, "--to", "nexus", "--out", home / "set.nxs")
        check_master(home / "set.nxs", data, name)
        with place("recording set, --at", name):
            at = [f"{home}/{one}".replace(",", ",,") for one in directories]
            run("verify", home, "--at", f"daq1={','.join(at)}")


def printed_commands(number, name):
    """A recorder is killed; the commands that are printed then must do what they say. The volume is relative."""
    home = root / f"cut-{number:03}"
    (home / name).mkdir(parents=True)
    for what, volume, cwd in [("absolute", home / name, home), ("relative", name, home)]:
        with place(f"printed command, {what} volume", name):
            recorder = start("record", "--listen", "127.0.0.1:0", f"--name={what}", f"--volume={volume}", "--stay",
                             "--pool", "32MiB", "--segment", "512KiB", "--block", "64KiB", cwd=cwd)
            try:
                address, said = started(recorder)
                assert address, said
                send(address, ["camera"], frames(1))
            finally:
                stop(recorder, signal.SIGKILL)
            given = volume if what == "absolute" else "./" + name
            found = subprocess.run([keepup, "info", f"{given}/{what}"], cwd=cwd, capture_output=True, text=True)
            said = commands(found.stdout + found.stderr)
            assert said, f"info proposes nothing: {found.stdout} {found.stderr}"
            shell(said[0], cwd)
            after = json.loads(run("info", home / name / what, "--json"))
            assert after["state"]["state"] != "in_progress" and (home / name / what / "recording.nxs").exists(), after["state"]


def files_source(number, name):
    """The command that a source of files prints, for its directory."""
    directory = root / f"files-{number:03}" / name
    directory.mkdir(parents=True)
    from_ = f"dir:{directory}".replace(",", ",,")
    with place("printed command of a source of files", name):
        done = subprocess.run([keepup, "source", "pilatus-100k", "--as", "files", "--to", f"dir:{directory}", "--events", "2"],
                              capture_output=True, timeout=60)
        said = re.search(r"`(keepup record .*)`\n", done.stderr.decode(errors="replace"))
        assert done.returncode == 0 and said, done.stderr
        parsed = subprocess.run(["sh", "-c", f"set -- {said[1]}\nprintf '%s\\0' \"$@\""], capture_output=True, timeout=60)
        assert parsed.stdout.split(b"\0")[-2] == from_.encode(), (said[1], parsed.stdout, parsed.stderr)
    with place("directory as a source", name):
        volume = directory.parent / "volume"
        volume.mkdir()
        recorder = start("record", "--from", f"{from_},existing=record", f"--volume={volume}", "--name", "files", "--pool", "32MiB")
        try:
            address, said = started(recorder, "receiving from ")
            assert address, said
            for _ in range(200):
                found = subprocess.run([keepup, "info", volume / "files", "--json"], capture_output=True, timeout=60)
                if found.returncode == 0 and len(json.loads(found.stdout)["streams"]) == 2:
                    break
                time.sleep(0.05)
        finally:
            stop(recorder)
        assert json.loads(run("info", volume / "files", "--json"))["streams"], "nothing was recorded"


def live(number, name):
    """Metrics and lists of a recorder and of `keepup serve`."""
    home = root / f"live-{number:03}"
    volume = home / name
    volume.mkdir(parents=True)
    recorder = start("record", "--listen", "127.0.0.1:0", f"--name={name}", f"--volume={volume}", "--stay", "--pool",
                     "32MiB", "--segment", "512KiB", "--block", "64KiB", "--http", "127.0.0.1:0")
    try:
        page = address = None
        for line in recorder.stderr:
            line = line.decode(errors="replace")
            page = page or next(iter(re.findall(r"http://127\.0\.0\.1:\d+", line)), None)
            address = address or next(iter(re.findall(r"listening on (\S+)", line)), None)
            if page and address:
                break
        assert page and address, "the recorder has ended"
        send(address, [name if is_stream_name(name) else "camera"], frames(2))
        with place("metrics", name):
            for accept in "*/*", "application/openmetrics-text; version=1.0.0":
                volumes, labels = set(), set()
                for _ in range(100):
                    text = get(f"{page}/metrics", accept)
                    volumes, labels = label_values(text, "volume"), label_values(text, "name") | label_values(text, "stream")
                    if volumes and labels:
                        break
                    time.sleep(0.1)
                assert str(volume / name) in volumes, f"volume is one of {volumes}"
                assert not is_stream_name(name) or name in labels, f"stream is one of {labels}"
        with place("HTTP status", name):
            status = json.loads(get(f"{page}/api/v1/run"))
            assert json.dumps(name)[1:-1] in json.dumps(status), status
    except Exception as error:  # noqa: BLE001
        failures.append(("live", name, str(error)))
    finally:
        stop(recorder)
    with place("serve", name):
        server = start("serve", home, "--http", "127.0.0.1:0")
        try:
            url, said = started(server, "live page: ")
            assert url, said
            page, token = url.split("/#token=")
            found = {}
            for _ in range(100):
                found = json.loads(get(f"{page}/api/v1/recordings", token=token))
                if name in json.dumps(found, ensure_ascii=False):
                    break
                time.sleep(0.1)
            assert json.dumps(name) in json.dumps(found), f"not listed: {json.dumps(found)[:400]}"
            ids = [entry["id"] for entry in found["entries"]]
            opened = json.loads(get(f"{page}/recordings/{urllib.parse.quote(ids[0], safe='')}", token=token))
            assert opened["name"] == name, opened["name"]
        finally:
            stop(server)


def is_stream_name(name):
    return 1 <= len(name.encode()) <= 256 and name.isprintable() and not HIDDEN.search(name)


def stream_and_keys():
    """Every name as a stream of one recording, and as a key of its metadata."""
    home = root / "streams"
    volumes = [home / "a", home / "b"]
    for volume in volumes:
        volume.mkdir(parents=True)
    names = []
    for name in STREAM_NAMES:
        with place("hello", name):
            try:
                wire_check(home, name)
                names.append(name)
            except SystemExit:
                pass
    data = frames(3)
    keys = [name for name in NAMES if 0 < len(name.encode()) <= 64 and "=" not in name and name.isprintable()]
    more = [part for key in keys[:60] for part in (f"--meta={key}={key}",)]
    report, error = record("streams", volumes, data, more, stream_names=names)
    assert report, error
    first = volumes[0] / "streams"
    with place("metadata keys", "all"), h5py.File(first / "recording.nxs") as file:
        texts = {text.attrs["key"].decode(): text[()].decode() for text in file["entry/metadata"].values()}
        assert texts == {key: key for key in keys[:60]}, set(texts) ^ set(keys[:60])
        assert json.loads(run("info", first, "--json"))["metadata"] == texts
    with h5py.File(first / "recording.nxs") as file:
        entry = file["entry"]
        groups = {group.attrs["stream_name"].decode(): group for group in entry.values()
                  if isinstance(group, h5py.Group) and "stream_name" in group.attrs}
        for name in names:
            with place("stream in the master", name):
                assert (groups[name]["valid"][:] == 1).all()
                numpy.testing.assert_array_equal(groups[name]["data"][:], data)
    for form, out in ("mcap", "all.mcap"), ("raw", "raw"), ("zarr-reference", "refs.json"):
        with place(f"export to {form}", "all streams"):
            run("export", first, "--to", form, "--out", home / out)
    for name in names:
        with place("topic in MCAP", name), open(home / "all.mcap", "rb") as file:
            messages = [message.data for _, _, message in make_reader(file).iter_messages(topics=[name])]
            assert messages == [frame.tobytes() for frame in data], len(messages)
    refs = json.loads((home / "refs.json").read_text())["refs"]
    named = {json.loads(text)["stream_name"]: key.rpartition("/")[0] for key, text in refs.items()
             if key.endswith("/.zattrs")}
    arrays = zarr.open(fsspec.get_mapper("reference://", fo=str(home / "refs.json")), mode="r")
    for name in names:
        with place("stream in Zarr references", name):
            check_references(home / "refs.json", data, named[name])
            numpy.testing.assert_array_equal(arrays[named[name]]["data"][:], data)
            assert arrays[named[name]]["valid"][:].all()
        with place("raw file", name):
            number = names.index(name)
            raw = [home / "raw" / f"{stem}.raw" for stem in (name, f"stream-{number}")]
            found = [path for path in raw if "/" not in path.stem and len(path.name) < 250 and path.exists()]
            assert found and found[0].read_bytes() == data.tobytes(), found
            with open(found[0].with_name(found[0].name[:-4] + ".csv")) as table:
                assert len(list(csv.DictReader(table))) == EVENTS
    with place("information", "all streams"):
        said = json.loads(run("info", first, "--json"))
        assert json.dumps(names[0]) in json.dumps(said)
        run("info", first)


def wire_check(home, name):
    """Whether a recorder accepts a stream of this name; SystemExit if it is refused with a cause."""
    recorder = start("record", "--listen", "127.0.0.1:0", "--to-null", "--pool", "32MiB")
    try:
        address, said = started(recorder)
        assert address, said
        try:
            send(address, [name], frames(4))
        except AssertionError as error:
            said = str(error)
            assert "cannot" in said or "name" in said, said
            raise SystemExit from None
    finally:
        stop(recorder, signal.SIGKILL)


def everything(number, name, directory, s3):
    """All checks of one name, in a process of its own; returns its failures."""
    failures.clear()
    with place("record", name):
        recording(number, name, directory, s3)
    printed_commands(number, directory)
    files_source(number, directory)
    live(number, name)
    return failures


def refusals():
    for number, name in enumerate(REFUSED):
        volume = root / f"refused-{number}"
        volume.mkdir()
        with place("refusal", name):
            report, error = record(name, [volume], frames(6))
            assert report is None, "accepted"
            refused(name, error, [volume])


def main():
    root.mkdir(parents=True)
    store = Store()
    found = []
    pairs = [*((name, name) for name in NAMES), *(("run", directory) for directory in DIRECTORIES)]
    try:
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
            waiting = [pool.submit(everything, number, *pair, store.environment) for number, pair in enumerate(pairs)]
            refusals()
            stream_and_keys()
            found += failures
            for done in waiting:
                found += done.result()
    finally:
        store.close()
    assert not found, f"{len(found)} failures: " + "; ".join(f"{what}: {name!r}: {text[:300]}" for what, name, text in found)
    print(f"{len(NAMES)} names of recordings, {len(DIRECTORIES)} of directories, {len(STREAM_NAMES)} of streams, "
          f"{len(REFUSED)} refused")


main()
