"""The XML API of Google Cloud Storage in front of another object store: moto's S3 server, which keeps objects and parts.

What Google's reference documents and S3 has not is done here:

- bearer tokens: JWTs that a service account signed itself, with the scope of Cloud Storage;
- `x-goog-hash` of a request is compared with the data, and a difference is answered with BadDigest;
- `x-goog-if-generation-match: 0` creates an object only if there is none, whatever else happens at the same time;
- answers have `x-goog-generation` and `x-goog-hash`; an object of several parts has a CRC32C, no MD5, and an ETag
  that is not derived from its content. The answer to its completion names another ETag, as clients cannot rely on
  the form of either.

Faults happen on command. Any header of S3's own (`x-amz-…`) in a request is an error.
"""
import base64
import hashlib
import http.client
import http.server
import json
import logging
import re
import threading
import time
import urllib.parse

import google_crc32c
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
EMAIL = "keepup@project.iam.gserviceaccount.com"
SCOPES = {"https://www.googleapis.com/auth/devstorage.full_control",
          "https://www.googleapis.com/auth/devstorage.read_write", "https://www.googleapis.com/auth/cloud-platform"}
# moto reads the service from it, and does not check the signature.
UPSTREAM = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
KEPT = {"content-type", "content-length", "content-range", "last-modified", "accept-ranges"}


def base64_of(data):
    return base64.b64encode(data).decode()


def crc32c_of(data):
    return base64_of(google_crc32c.value(data).to_bytes(4, "big"))


class Store:
    """Objects, what is known of them, requests, and faults."""

    def __init__(self, bucket):
        self.key = rsa.generate_private_key(65537, 2048)
        self.moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self.moto.start()
        self.upstream = self.moto.get_host_and_port()
        self.lock = threading.Lock()
        self.creation = threading.Lock()
        self.requests = []
        self.generations = {}
        self.multipart = {}
        self.faults = []
        self.bad_digests = 0
        self.before = []
        self.next_generation = int(time.time() * 1e6)
        assert self.forward("PUT", f"/{bucket}", {}, b"")[0] == 200
        store = self
        handler = type("Bound", (Handler,), {"store": store})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def account(self, key=None):
        """The key file of the service account."""
        pem = (key or self.key).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return json.dumps({"type": "service_account", "client_email": EMAIL, "private_key_id": "1",
                           "private_key": pem.decode(),
                           "gcs_base_url": f"http://127.0.0.1:{self.server.server_address[1]}"})

    def fail(self, kind, part, times=1):
        """The next requests with this text in method and address have a fault of this kind."""
        with self.lock:
            self.faults.append([kind, re.compile(part), times])

    def fault_of(self, line):
        with self.lock:
            for fault in self.faults:
                if fault[2] > 0 and fault[1].search(line):
                    fault[2] -= 1
                    return fault[0]
        return None

    def once_before(self, part, action):
        """Calls `action` before the next request with this text is served."""
        self.before.append((re.compile(part), action))

    def take_requests(self, part):
        with self.lock:
            found, self.requests = self.requests, []
        return [line for line in found if re.search(part, line)]

    def count(self, part):
        with self.lock:
            return sum(1 for line in self.requests if re.search(part, line))

    def forward(self, method, target, headers, body):
        connection = http.client.HTTPConnection(*self.upstream, timeout=60)
        try:
            connection.request(method, target, body, {"Authorization": UPSTREAM, **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def is_authorized(self, header):
        """Whether the header has a token that the service account signed and that is valid now."""
        try:
            scheme, token = header.split(" ")
            signed, signature = token.rsplit(".", 1)
            decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            self.key.public_key().verify(decode(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(decode(signed.split(".")[1]))
        except Exception:  # Whatever is wrong with it.
            return False
        now = time.time()
        scopes = set(claims["scope"].split())
        return scheme == "Bearer" and claims["iss"] == EMAIL and claims["iat"] - 60 <= now < claims["exp"] and \
            bool(scopes & SCOPES)

    def note(self, path):
        """A new version of an object."""
        with self.lock:
            self.next_generation += 1
            self.generations[path] = self.next_generation
            return self.next_generation


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        try:
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:  # The client was killed, or has seen enough.
            self.close_connection = True

    def refuse(self, status, code, message):
        text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.answer(status, [("Content-Type", "application/xml")], text.encode())

    def serve(self):
        store = self.store
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {path}?{query}"
        for entry in list(store.before):
            if entry[0].search(line):
                store.before.remove(entry)
                entry[1]()
        if not store.is_authorized(self.headers.get("Authorization") or ""):
            return self.refuse(401, "AuthenticationRequired", "Authentication required.")
        foreign = [name for name in self.headers if name.lower().startswith("x-amz-")]
        if foreign:
            return self.refuse(400, "InvalidArgument", f"Headers of another vendor: {foreign}")
        with store.lock:
            store.requests.append(line)
        fault = store.fault_of(line)
        if fault == "corrupt on the way" and body:
            body = body[:-1] + bytes([body[-1] ^ 1])
        sent = re.search(r"crc32c=([^,]+)", self.headers.get("x-goog-hash") or "")
        if sent and sent[1] != crc32c_of(body):
            store.bad_digests += 1
            return self.refuse(400, "BadDigest", "The CRC32C you specified did not match what we received.")
        if fault == "corrupt in the store":
            body = body[:-1] + bytes([body[-1] ^ 1])
        with store.creation:
            if self.headers.get("x-goog-if-generation-match") == "0" and path in store.generations:
                return self.refuse(412, "PreconditionFailed", "At least one of the pre-conditions did not hold.")
            passed = {name: self.headers[name] for name in ("Content-Type", "Range") if name in self.headers}
            target = urllib.parse.quote(path) + (f"?{query}" if query else "")
            status, headers, content = store.forward(self.command, target, passed, body)
            added = self.account_for(path, query, status, body, fault)
            if self.command == "POST" and path in store.multipart:
                other = f"<ETag>&quot;-{store.generations[path]:x}&quot;</ETag>".encode()
                content = re.sub(rb"<ETag>.*?</ETag>", other, content)
        kept = [(name, value) for name, value in headers.items() if name.lower() in KEPT | {"etag"}]
        replaced = {name.lower() for name, _ in added}
        kept = [(name, value) for name, value in kept if name.lower() not in replaced | {"content-length"}] + added
        kept.append(("Content-Length", headers["Content-Length"] if self.command == "HEAD" else str(len(content))))
        return self.answer(status, kept, content)

    def account_for(self, path, query, status, body, fault):
        """Keeps what is known of objects, and returns the headers that only Google has."""
        store, keys = self.store, urllib.parse.parse_qs(query, keep_blank_values=True)
        if status >= 300:
            return []
        if self.command == "DELETE":
            store.generations.pop(path, None)
            return []
        if self.command == "PUT" and "partNumber" in keys:
            return [("x-goog-hash", f"crc32c={crc32c_of(body)}"),
                    ("x-goog-hash", f"md5={base64_of(hashlib.md5(body).digest())}")]
        if self.command == "PUT":
            store.multipart.pop(path, None)
            generation = store.note(path)
            return [("x-goog-generation", str(generation)), ("x-goog-hash", f"crc32c={crc32c_of(body)}")]
        if self.command == "POST" and "uploadId" in keys:
            whole = store.forward("GET", urllib.parse.quote(path), {}, b"")[2]
            store.multipart[path] = crc32c_of(whole)
            generation = store.note(path)
            claimed = "AAAAAA==" if fault == "wrong checksum of the whole" else store.multipart[path]
            return [("x-goog-generation", str(generation)), ("x-goog-hash", f"crc32c={claimed}")]
        if self.command in ("GET", "HEAD") and path in store.generations:
            generation = store.generations[path]
            added = [("x-goog-generation", str(generation))]
            if path in store.multipart:
                tag = base64_of(generation.to_bytes(8, "big"))
                added += [("ETag", f'"{tag}"'), ("x-goog-hash", f"crc32c={store.multipart[path]}")]
            return added
        return []

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve
