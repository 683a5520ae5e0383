"""Counts the messages of a recording with the official MCAP reader: source, recorder and files must agree.

usage: messages.py SOURCE.json RECORD.json RECORDING
"""
import json
import pathlib
import sys

from mcap.reader import NonSeekingReader

source, record = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:3])
events = size = 0
segments = sorted(pathlib.Path(sys.argv[3]).glob("segment-*.mcap"))
for segment in segments:
    with segment.open("rb") as stream:
        for _, _, message in NonSeekingReader(stream, validate_crcs=True).iter_messages(log_time_order=False):
            events += 1
            size += len(message.data)
found = {"events": events, "bytes": size}
print(f"{len(segments)} segments: {found}; source sent {source['sent']}, recorder made durable {record['durable']}")
assert events > 0, "no message was found"
assert source["sent"] == record["durable"] == found, "source, recorder and files do not agree"
