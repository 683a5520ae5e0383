# The steps of .ci/run that are more than one command. Sourced with `set -euo pipefail`.

# Records three seconds of the csl profile, verifies it, and counts its messages with the official Python reader.
round_trip() {
    local scratch="$1" keepup=target/release/keepup recorder address
    mkdir -p "$scratch/disk"
    "$keepup" record --listen 127.0.0.1:0 --volume "$scratch/disk" --name trip --segment '128 MiB' \
        --json >"$scratch/record.json" 2>"$scratch/record.log" &
    recorder=$!
    trap "kill $recorder 2>/dev/null || true" EXIT
    for _ in $(seq 600); do
        address="$(grep -oE '127\.0\.0\.1:[0-9]+' "$scratch/record.log" | head -n 1 || true)"
        [ -n "$address" ] && break
        kill -0 "$recorder" 2>/dev/null || break
        sleep 0.1
    done
    [ -n "$address" ] || { cat "$scratch/record.log"; return 1; }
    timeout 60 "$keepup" source csl --to "$address" --duration 3s --buffer '1 GB' --json >"$scratch/source.json"
    wait "$recorder"
    trap - EXIT
    timeout 120 "$keepup" verify "$scratch/disk/trip" --json >"$scratch/verify.json"
    "$CI_PYTHON" .ci/checks/messages.py "$scratch/source.json" "$scratch/record.json" "$scratch/disk/trip"
}

# Streams of every sort over three volumes, read back in every way.
open_everywhere() {
    mkdir -p "$1/views"
    timeout 300 "$CI_PYTHON" .ci/checks/views.py "$PWD/target/release/keepup" "$1/views"
}

# Streams that are reduced on the way, read by h5py and compared with what numpy computes.
reduced_streams() {
    timeout 120 "$CI_PYTHON" .ci/checks/reduce.py "$PWD/target/release/keepup" "$1/reduce"
}

# The machine may be shared, so the verdict may be any; what the result says must hold together all the same.
qualify_csl() {
    local scratch="$1" code=0 out
    out="$(mktemp -d)"
    mkdir -p "$scratch/qualify"
    timeout 480 cargo run --release --quiet -- qualify csl --quick --max-write 40GB --volume "$scratch/qualify" \
        --out "$out" --json >"$scratch/result.json" || code=$?
    case "$code" in
        0 | 1 | 4 | 5) ;;
        *) echo "qualify ended with exit code $code"; return 1 ;;
    esac
    "$CI_PYTHON" .ci/checks/result.py "$scratch/result.json" "$code"
    # Its report is looked at later, in a browser.
    mkdir -p "$scratch/reports"
    cp "$out"/*/report.html "$scratch/reports/measured.html"
    rm -rf "$scratch/qualified"
    mv "$out" "$scratch/qualified"
}

# The book's page for pandas, DuckDB and Grafana, on results that were just made.
use_your_result() {
    local scratch="$1" out="$1/swept"
    mkdir -p "$scratch/qualify" "$out"
    target/release/keepup disk sweep --sizes '4 KiB,1 MiB' --depths 1,8 --time 100ms --file '64 MiB' --repeats 5 \
        --volume "$scratch/qualify" --out "$out" >/dev/null
    "$CI_PYTHON" .ci/checks/use_your_result.py docs/book/use-your-result.md "$out"/* "$scratch"/qualified/*
}

# Buffers against SimPy, networks of queues against the recursion of the textbooks.
model_oracles() {
    cargo build --quiet -p keepup-model --example simulate
    timeout 300 "$CI_PYTHON" .ci/checks/model_oracles.py target/debug/examples/simulate
}

# The program that checks dependencies: the one that is installed, else one that is built here, once.
cargo_deny() {
    local root=target/ci-deny
    if command -v cargo-deny >/dev/null; then command -v cargo-deny; return; fi
    [ -x "$root/bin/cargo-deny" ] || cargo install --quiet --debug --locked --root "$root" cargo-deny >&2
    printf '%s\n' "$root/bin/cargo-deny"
}

# Licences, sources and bans of all dependencies, by deny.toml.
dependencies() {
    local deny
    deny="$(cargo_deny)"
    "$deny" --log-level error check --hide-inclusion-graph licenses sources bans
}

# Whether the database of advisories can be had.
has_advisories() {
    timeout 120 "$(cargo_deny)" --log-level error fetch db >/dev/null 2>&1
}

# Published weaknesses of dependencies, by the database that was just fetched.
advisories() {
    "$(cargo_deny)" --log-level error check --disable-fetch advisories
}

# Coverage is counted by the stable compiler. Without sanitizers: unsafe code is in one crate, which reads nothing foreign.
fuzz_build() {
    local flags='--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 -Cdebug-assertions=on' level
    for level in level=4 inline-8bit-counters pc-table trace-compares; do
        flags="$flags -Cllvm-args=-sanitizer-coverage-$level"
    done
    RUSTFLAGS="$flags" CARGO_TARGET_DIR=target/ci-fuzz cargo build --quiet --release --bins \
        --target "$(rustc -vV | sed -n 's/^host: //p')" --manifest-path fuzz/Cargo.toml
}

fuzz_short() { # SCRATCH TARGET
    local corpus="$1/fuzz/$2" binary
    binary=$(echo target/ci-fuzz/*/release/"$2")
    # A target ends without a chance to remove what it keeps on disk.
    mkdir -p "$corpus" "$1/fuzz/tmp"
    [ ! -d "fuzz/seeds/$2" ] || cp -r "fuzz/seeds/$2/." "$corpus"
    # The same seed each time: what fails here fails again elsewhere.
    TMPDIR="$1/fuzz/tmp" "$binary" "$corpus" -seed=1 -max_total_time=10 -timeout=60 -rss_limit_mb=2048 \
        -artifact_prefix="$1/fuzz/" >"$1/fuzz/$2.log" 2>&1 ||
        { tail -n 40 "$1/fuzz/$2.log"; return 1; }
    rm -rf "$1/fuzz/tmp"
    grep DONE "$1/fuzz/$2.log"
}

# The official IPbus client, from outside and in an environment of its own, against the target of keepup.
official_ipbus_client() {
    local venv=target/ci-ipbus table=target/ci/registers.xml
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import uhal' 2>/dev/null || "$venv/bin/pip" -q install 'uhal==2.8.22.*'
    printf '<node id="top"><node id="first" address="0x0"/></node>\n' >"$table"
    timeout 120 "$venv/bin/python" .ci/checks/ipbus.py target/release/keepup "$PWD/$table"
}

# Reports of a sample of every kind, of the verdicts that there are, and of what was just measured, in a real browser.
reports_in_chromium() {
    local scratch="$1" venv=target/ci-browser sample
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import playwright' 2>/dev/null || "$venv/bin/pip" -q install 'playwright>=1.50,<2'
    mkdir -p "$scratch/reports"
    for sample in crates/results/samples/*.json crates/report/tests/{fit,limited,not_fit}.json; do
        target/release/keepup report "$sample" --html "$scratch/reports/$(basename "$sample" .json).html"
    done
    # Pages of papers are made here: their tables are the widest.
    rm -rf "$scratch/papers"
    mkdir -p "$scratch/papers/volume"
    for paper in cern-vme romanis; do
        target/release/keepup reproduce "$paper" --scale 0.01 --repeats 2 --volume "$scratch/papers/volume" \
            --out "$scratch/papers/$paper" >/dev/null
        cp "$scratch/papers/$paper"/*/report.html "$scratch/reports/$paper.html"
    done
    target/release/keepup predict papers --html "$scratch/reports/predict-papers.html" >/dev/null
    target/release/keepup predict csl-old --on papers/romanis --sweep disks=1..8 --html "$scratch/reports/predict-sweep.html" >/dev/null
    timeout 900 "$venv/bin/python" .ci/checks/report_in_chromium.py "$(command -v chromium)" "$scratch/pictures" \
        "$scratch"/reports/*.html
}

# Samples of every kind as results, copies of one and one whose texts look like markup, and a recording that was made before.
serve_in_chromium() {
    local scratch="$1" venv=target/ci-browser sample shelf
    shelf="$scratch/shelf"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import playwright' 2>/dev/null || "$venv/bin/pip" -q install 'playwright>=1.50,<2'
    rm -rf "$shelf"
    for sample in crates/results/samples/*.json crates/results/samples/disk-v4.json; do
        local place
        place="$shelf/$(basename "$sample" .json)"
        [ ! -e "$place" ] || place="$place-again"
        mkdir -p "$place"
        echo sample >"$place/.keepup-result"
        : >"$place/events.jsonl"
        cp "$sample" "$place/result.json"
    done
    sed -i 's/"failure": null/"failure": "<img src=x onerror=alert(1)><b>bold<\/b>"/' "$shelf/disk-v4-again/result.json"
    timeout 300 "$venv/bin/python" .ci/checks/serve_in_chromium.py "$(command -v chromium)" target/release/keepup \
        "$scratch/pictures" "$shelf" "$scratch/disk"
}

# A whole run by the page, another by `ctl`, a volume that fails in between; metrics and the book's subscriber on the way.
live_in_chromium() {
    local scratch="$1" venv=target/ci-browser
    "$venv/bin/python" -c 'import playwright, prometheus_client, websockets, numpy' 2>/dev/null ||
        "$venv/bin/pip" -q install 'playwright>=1.50,<2' prometheus_client websockets numpy
    timeout 600 "$venv/bin/python" .ci/checks/live_in_chromium.py "$(command -v chromium)" target/release/keepup \
        "$scratch/pictures" "$scratch/live" docs/book
}

# The unit's keys and its sandbox, by systemd's own tools, and that its flags are those of the recorder.
systemd_unit() {
    local scratch="$1" unit flag
    unit="$scratch/keepup-record.service"
    sed "s|/usr/bin/keepup|$PWD/target/release/keepup|" packaging/keepup-record.service >"$unit"
    systemd-analyze verify "$unit"
    systemd-analyze security --offline=true --no-pager --threshold=20 "$unit" | tail -n 1
    target/release/keepup record --help >"$scratch/record-help.txt"
    for flag in $(grep -hvE '^#' packaging/keepup-record.service packaging/keepup-record.env | grep -oE -- '--[a-z-]+'); do
        grep -qE -- "$flag( |\$)" "$scratch/record-help.txt" || { echo "keepup record has no $flag"; return 1; }
    done
}

# Alerts: their grammar, and when they stand.
alert_rules() {
    promtool check rules packaging/prometheus/keepup.rules.yml
    promtool test rules packaging/prometheus/keepup.rules.test.yml
}
