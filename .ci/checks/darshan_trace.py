"""Turns the DXT log that the package darshan ships into rows of MSR Cambridge, a device for each file.

The log is of a real job: each read and write of 169 files, with its begin and end. Prints what was written.
"""
import json
import pathlib
import sys

import darshan

LOG = pathlib.Path(darshan.__file__).parent / "examples" / "example_logs" / "dxt.darshan"
TICKS_PER_SECOND = 10_000_000
# From 1601, where Windows' file times begin, to 1970, s.
FILETIME_TO_UNIX = 11_644_473_600


def segments(report):
    """Every request: its begin and end in ticks, host, number of the file, kind, offset, length."""
    begin = report.metadata["job"]["start_time_sec"] + FILETIME_TO_UNIX
    report.mod_read_all_dxt_records("DXT_POSIX")
    files = {}
    for record in report.records["DXT_POSIX"]:
        number = files.setdefault(record["id"], len(files))
        for kind in ("read", "write"):
            for segment in record[f"{kind}_segments"]:
                start, end = (round(segment[at] * TICKS_PER_SECOND) for at in ("start_time", "end_time"))
                place = segment["offset"], segment["length"]
                yield begin * TICKS_PER_SECOND + start, end - start, record["hostname"], number, kind, *place


def main(out):
    rows = sorted(segments(darshan.DarshanReport(str(LOG), read_all=False)))
    with open(out, "w", encoding="ascii") as file:
        for time, ticks, host, number, kind, offset, length in rows:
            print(time, host, number, kind.capitalize(), offset, length, ticks, sep=",", file=file)
    told = {"files": len({row[3] for row in rows}), "seconds": (rows[-1][0] - rows[0][0]) / TICKS_PER_SECOND}
    for kind in ("read", "write"):
        lengths = [row[6] for row in rows if row[4] == kind]
        told[kind] = {"records": len(lengths), "bytes": sum(lengths), "empty": lengths.count(0)}
    print(json.dumps(told))


main(sys.argv[1])
