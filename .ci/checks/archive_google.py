"""Copies a recording to the XML API of Google Cloud Storage and back: a copy that is killed and continued, data that
changes on the way or in the store, a wrong checksum, two recordings of one name, a key that is refused.

usage: archive_google.py KEEPUP DIRECTORY
"""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from cryptography.hazmat.primitives.asymmetric import rsa

from google_storage import Store

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
PARTS = r"^PUT .*segment.*partNumber"
READS = r"^GET .*segment"
store = Store("bucket")


def run(*arguments, code=0, key="key.json"):
    environment = dict(os.environ, GOOGLE_SERVICE_ACCOUNT=str(root / key))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        environment.pop(name, None)
    done = subprocess.run([keepup, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def start(*arguments):
    environment = dict(os.environ, GOOGLE_SERVICE_ACCOUNT=str(root / "key.json"))
    return subprocess.Popen([keepup, *map(str, arguments)], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def record(volume, events):
    """Records `events` events of 256 KiB in segments of three parts."""
    (root / volume).mkdir()
    recorder = start("record", "--volume", root / volume, "--name", "run", "--listen", "127.0.0.1:0",
                     "--segment", "20 MiB", "--json")
    while "127.0.0.1:" not in (line := recorder.stderr.readline()):
        assert line, "the recorder has ended"
    address = "127.0.0.1:" + line.split("127.0.0.1:")[1].split()[0].strip(",;.")
    run("source", "csl", "--to", address, "--events", events, "--rate", "max")
    out, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, (out, err)


def drain(prefix, *more, volume="a", code=0, key="key.json"):
    done = run("drain", root / volume / "run", "--to", f"gs://bucket/{prefix}", "--json", *more, code=code, key=key)
    return json.loads(done.stdout) if done.stdout.strip().startswith("{") else None, done.stderr


def files(directory):
    """Content of the recording's files, by name; a restore makes a new master file."""
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()
            if name.startswith("segment") or name.endswith("journal")}


def restored(prefix, into):
    run("restore", f"gs://bucket/{prefix}/run", root / into)
    run("verify", root / into)
    original, back = files(root / "a/run"), files(root / into)
    assert back == original and any(name.startswith("segment") for name in back), (sorted(original), sorted(back))


def until(what, process, condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def killed_and_continued():
    slow = start("drain", root / "a/run", "--to", "gs://bucket/pre", "--rate", "25 MB/s", "--connections", "1")
    until("parts of the second segment", slow, lambda: store.count(r"segment-000001.*partNumber=2") > 0)
    slow.send_signal(signal.SIGKILL)
    slow.communicate()
    before = store.take_requests(PARTS)
    account, _ = drain("pre")
    after = store.take_requests("")
    assert account["archived"] is True and account["known_bytes"] >= 24 << 20, account
    again = set(before[:-1]) & {line for line in after if "partNumber" in line}
    assert not again, f"parts that the store had were sent again: {again}"
    # What was completed before the kill was perhaps not noted; nothing else is read back.
    reads = {line.split("?")[0] for line in after if line.startswith("GET ") and "segment" in line}
    assert len(reads) <= 1, f"objects were read back in spite of their checksums: {reads}"
    restored("pre", "back")
    store.take_requests("")
    account, _ = drain("pre")
    sent = [line for line in store.take_requests("^(PUT|POST)") if "keepup-archive.json" not in line]
    assert account["known_bytes"] == account["bytes"] and not sent, (account, sent)


def confirmed_by_checksums():
    """A copy that nothing disturbs is confirmed by checksums alone."""
    account, _ = drain("clean")
    requests = store.take_requests("")
    assert account["archived"] is True and any("partNumber=3" in line for line in requests)
    assert not [line for line in requests if line.startswith("GET ") and "segment" in line], "read back"


def changed_on_the_way():
    store.fail("corrupt on the way", PARTS, 2)
    store.fail("corrupt on the way", r"^PUT .*journal", 1)
    account, _ = drain("way")
    assert account["archived"] is True and store.bad_digests == 3, store.bad_digests
    restored("way", "back-way")


def changed_in_the_store():
    store.fail("corrupt in the store", r"^PUT .*segment-000000.*partNumber=2", 1)
    account, err = drain("disk")
    assert account["archived"] is True and "checksum mismatch" in err + json.dumps(account), (account, err)
    assert store.take_requests(READS), "the object was not read back"
    restored("disk", "back-disk")


def wrong_checksum():
    """A checksum of the whole object that differs confirms nothing: the object is read back."""
    store.take_requests("")
    store.fail("wrong checksum of the whole", r"^POST .*segment-000000.*uploadId", 1)
    account, _ = drain("crc")
    assert account["archived"] is True
    reads = {line.split("?")[0] for line in store.take_requests(READS)}
    assert len(reads) == 1 and "segment-000000" in reads.pop(), reads


def two_of_one_name():
    """Another recording takes the name between the look at the manifest and its creation."""
    record("b", 4)
    _, err = drain("pre", volume="b", code=3)
    assert "another recording of this name" in err, err
    other = threading.Thread(target=lambda: drain("race", volume="b"))

    def overtake():
        other.start()
        other.join()

    store.once_before(r"^PUT /bucket/race/run/keepup.json", overtake)
    _, err = drain("race", code=3)
    assert "another recording of this name" in err, err
    owner = json.loads(store.forward("GET", "/bucket/race/run/keepup.json", {}, b"")[2])
    mine = json.loads((root / "b/run/keepup.json").read_text())
    assert owner["recording"] == mine["recording"], "the later recording has replaced the earlier one"


def refused_key():
    (root / "other.json").write_text(store.account(rsa.generate_private_key(65537, 2048)))
    _, err = drain("denied", code=4, key="other.json")
    assert "hint: renew the credentials" in err, err


def main():
    root.mkdir(parents=True)
    (root / "key.json").write_text(store.account())
    record("a", 200)
    for check in (killed_and_continued, confirmed_by_checksums, changed_on_the_way, changed_in_the_store,
                  wrong_checksum, two_of_one_name, refused_key):
        since = time.monotonic()
        check()
        print(f"{check.__name__}: {time.monotonic() - since:.1f} s", flush=True)


main()
