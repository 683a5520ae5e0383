"""Checks what `keepup qualify --json` printed: all fields are there, the ledger balances, verdict and exit code agree.

usage: result.py RESULT.json EXIT_CODE
"""
import json
import pathlib
import sys

FIELDS = (
    "verdict profile required_bytes_per_second knee_bytes_per_second qualified_bytes_per_second headroom bottleneck "
    "ceilings ledger cpu trials limits result_directory"
).split()
CODES = {"FIT": (0,), "FIT WITH LIMITS": (6,), "NOT FIT": (1,), "INCONCLUSIVE": (4, 5)}

result = json.loads(pathlib.Path(sys.argv[1]).read_text())
code = int(sys.argv[2])
missing = [field for field in FIELDS if field not in result]
assert not missing, f"fields are missing: {missing}"
assert result["profile"] == "csl", result["profile"]
assert code in CODES[result["verdict"]], f"{result['verdict']} with exit code {code}"
ledger = result["ledger"]
for unit in ("events", "bytes"):
    due = ledger["sent"][unit] + ledger["lost_at_source"][unit]
    known = ledger["durable"][unit] + ledger["lost"][unit]
    assert due == known, f"{due} {unit} were due and {known} are accounted for: {ledger}"
assert result["trials"], "no trial is on record"
assert (pathlib.Path(result["result_directory"]) / "result.json").is_file(), result["result_directory"]
if code in (0, 6):
    assert result["qualified_bytes_per_second"] >= result["required_bytes_per_second"]
    assert ledger["lost"]["events"] == 0, ledger
print(f"{result['verdict']}: {len(result['trials'])} trials, {ledger['durable']['events']} events durable in the last soak")
