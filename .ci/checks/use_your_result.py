"""Runs the Python of docs/book/use-your-result.md as it stands there, on results of the real program.

Arguments: the page, a directory with a disk test, one with a qualification.
"""

import os
import re
import sys
import tempfile

page, sweep, qualify = (os.path.abspath(path) for path in sys.argv[1:4])
with open(page, encoding="utf-8") as file:
    blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
assert len(blocks) >= 5, f"{len(blocks)} blocks of Python in {page}"
names = {"SWEEP": sweep, "QUALIFY": qualify}
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    rows = sum(1 for _ in open("samples.csv", encoding="utf-8"))
    os.chdir("/")
# 64 KiB of nothing would print as well: what was read must be what was measured.
phases = names["phases"]
assert len(phases) == 4 * 2 * 5, phases
assert (phases["MB/s"] > 0).all(), phases
assert rows > 10, f"{rows} rows of samples"
print(f"{len(blocks)} blocks ran; {len(phases)} phases, {rows} rows of samples")
