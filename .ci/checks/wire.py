"""A client of the wire protocol, for checks that send what no simulated source does."""
import json
import socket
import struct
import zlib

WELCOME, FINAL, ERROR = 0x81, 0x83, 0x84


def frame(kind, payload, stream=0, sequence=0, time_ns=0):
    crc, length = zlib.crc32(payload), len(payload)
    head = struct.pack("<IBBHIIQQQQQI", 0x3150554B, kind, 1, 0, stream, crc, sequence, time_ns, length, 0, 0, 0)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def answer(sock, wanted):
    """What the recorder says in the next message of this kind."""
    while head := sock.recv(64, socket.MSG_WAITALL):
        payload = sock.recv(int.from_bytes(head[32:40], "little"), socket.MSG_WAITALL)
        assert head[4] != ERROR, payload
        if head[4] == wanted:
            return json.loads(payload)
    raise SystemExit("the recorder closed the connection")


def connect(address, streams):
    """A connection that has declared `streams`."""
    host, port = address.split(":")
    sock = socket.create_connection((host, int(port)))
    sock.sendall(frame(1, json.dumps({"protocol": 1, "client": "check", "streams": streams}).encode()))
    answer(sock, WELCOME)
    return sock


def send(address, streams, events, ends):
    """Declares `streams`, sends `events` (stream, sequence, time, payload; no payload: the client lost it) and `ends`;
    returns the final account."""
    with connect(address, streams) as sock:
        for stream, sequence, time_ns, payload in events:
            if payload is None:
                gap = {"stream": stream, "first_sequence": sequence, "events": 1, "cause": "source"}
                sock.sendall(frame(5, json.dumps({"gaps": [gap]}).encode()))
            else:
                sock.sendall(frame(2, payload, stream, sequence, time_ns))
        sock.sendall(frame(3, json.dumps({"streams": ends}).encode()))
        return answer(sock, FINAL)
