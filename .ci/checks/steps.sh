# The steps of .ci/run that are more than one command. Sourced with `set -euo pipefail`; `scope` and `last_full` are those
# of .ci/checks/run.sh, KEEPUP is the program that is checked, CI_PYTHON the Python that reads what it wrote,
# DECTRIS_CAPTURE a package with captured messages.

# Installs what is missing, as root; fails where something is missing afterwards.
install_packages() {
    local -A packages=(
        [cc]='gcc libc6-dev' [c++]=g++ [ip]=iproute2 [tc]=iproute2 [valgrind]=valgrind [h5dump]=hdf5-tools [fio]=fio
        [iperf3]=iperf3 [chromium]='chromium fonts-dejavu-core' [systemd-analyze]=systemd [promtool]=prometheus
        [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [python3]='python3 python3-venv' [losetup]=mount
        [taskset]=util-linux
    )
    local missing=() program left=()
    for program in "${!packages[@]}"; do
        # shellcheck disable=SC2206 # several packages
        command -v "$program" >/dev/null || missing+=(${packages[$program]})
    done
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    [ -e /usr/share/dbench/client.txt ] || missing+=(dbench)
    [ ${#missing[@]} -ne 0 ] || { real_traces; return; }
    echo "missing: ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || { echo 'only root can install them'; return 1; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq install --no-install-recommends "${missing[@]}" >/dev/null
    for program in "${!packages[@]}"; do
        command -v "$program" >/dev/null || left+=("$program")
    done
    [ ${#left[@]} -eq 0 ] || { echo "still missing: ${left[*]}"; return 1; }
    real_traces
}

# Unpacks the traces of Debian's blkreplay-examples to CI_TRACES: images of containers install no documentation.
real_traces() {
    [ ! -d "$CI_TRACES/usr" ] || return 0
    mkdir -p "$CI_TRACES"
    (
        cd "$CI_TRACES"
        apt-get -qq download blkreplay-examples 2>/dev/null || { apt-get -qq update; apt-get -qq download blkreplay-examples; }
        dpkg-deb -x blkreplay-examples_*.deb .
        rm blkreplay-examples_*.deb
    )
}

# Fails when the last green .ci/full is more than 60 commits or 7 days behind.
full_is_recent() {
    [ "$scope" = gate ] && [ -n "$last_full" ] || { echo 'every check runs'; return 0; }
    local commits days
    commits="$(git rev-list --first-parent --count "$last_full..HEAD")"
    days="$((($(git log -1 --format=%ct HEAD) - $(git log -1 --format=%ct "$last_full")) / 86400))"
    echo "the last green .ci/full is $commits commits and $days days behind"
    [ "$commits" -le 60 ] && [ "$days" -le 7 ] || { echo 'hint: .ci/full, then commit .ci/full.last'; return 1; }
}

# An environment for Python, once: NAME MODULES PACKAGES...
python_environment() {
    local venv="$PWD/target/$1" modules="$2"
    shift 2
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c "import $modules" 2>/dev/null || "$venv/bin/pip" -q install --no-compile "$@"
    "$venv/bin/python" -c "import $modules"
}

# What reads recordings apart from keepup, a package with a real trace, another simulator; a browser's remote control; the
# official IPbus client; an object store. Each by itself, beside the others.
python_environments() {
    local jobs=() job
    python_environment ci-venv \
        'bagit, baseband, cbor2, darshan, duckdb, fsspec, h5py, hdf5plugin, mcap, nexusformat, numpy, nxmx, p4p, pandas, scapy, simpy, spead2, tifffile, zarr, zmq' \
        'darshan==3.5.*' 'mcap>=1.6,<2' 'h5py>=3,<4' 'hdf5plugin>=5' 'numpy>=2' 'pandas>=2' 'duckdb>=1.1' \
        'simpy>=4.1,<5' 'cbor2>=5' 'pyzmq>=26' 'baseband>=4.2' 'bagit>=1.9,<2' 'tifffile>=2025.1' 'spead2>=4.4,<5' \
        'scapy>=2.6,<3' 'p4p>=4.2' 'nexusformat>=2.1,<3' 'nxmx==0.0.8' 'zarr>=3,<4' \
        'fsspec>=2026.1' & jobs+=($!)
    python_environment ci-browser 'playwright, prometheus_client, websockets, numpy' 'playwright>=1.50,<2' \
        prometheus_client websockets numpy & jobs+=($!)
    python_environment ci-ipbus uhal 'uhal==2.8.22.*' & jobs+=($!)
    python_environment ci-archive 'moto.moto_server.threaded_moto_server, google_crc32c' 'moto[s3,server]>=5.2,<6' \
        'google-crc32c>=1.5,<2' & jobs+=($!)
    for job in "${jobs[@]}"; do wait "$job"; done
    # Captured messages of a detector: read as they are, not installed.
    [ -e "$DECTRIS_CAPTURE" ] || target/ci-venv/bin/pip -q download --no-deps --dest "$(dirname "$DECTRIS_CAPTURE")" \
        'tickit-devices==0.4.1'
}

# Lints with the features of the tests, and the program that README builds. In a directory of its own: tests would wait
# for it. Fuzz targets are compiled at least.
clippy() {
    export CARGO_TARGET_DIR=target/ci-clippy
    cargo clippy --workspace --features keepup-cli/fleet --all-targets --quiet -- -D warnings
    cargo clippy -p keepup-cli --quiet -- -D warnings
    cargo check --quiet --manifest-path fuzz/Cargo.toml
}

# Runs tests; one that did not run is a failure.
run_tests() {
    local log="$PWD/target/ci/logs/tests.$$"
    cargo test --features keepup-cli/fleet "$@" 2>&1 | tee "$log"
    ! grep -qF 'SKIPPED: ' "$log" || { echo 'some tests did not run here'; return 1; }
}

# Without a search for documentation tests, which takes rustdoc two minutes: there are none, and none is written.
run_fast_tests() {
    if grep -rnE '^ *//[/!] *```' --include='*.rs' crates testkit xtask; then
        echo 'a documentation test is not run: write it as a unit test'
        return 1
    fi
    run_tests --workspace --lib --bins --tests --no-fail-fast -- --test-threads 4
}

# All that is compiled is there already: the whole workspace is named, and the feature, so that features stay the same.
run_system_tests() { # KILLS with|without (guests)
    local skipped=(--skip ::measured::)
    [ "$2" = with ] || skipped+=(--skip registers::guest)
    # Most of them wait, some of them for the busy one that may run.
    KEEPUP_KILLS=$1 run_tests --workspace --test end_to_end -- --ignored "${skipped[@]}" --test-threads 6
}

# Clients, kills and full disks again, with several intake threads in every recorder; faults and every source too, with
# the last number of them.
run_tests_with_intakes() { # NUMBERS
    local common=(recorder::clients recorder::intakes recorder::kills recorder::volumes) number
    local sources=(recorder::detectors recorder::directory recorder::packets recorder::pvaccess recorder::series)
    for number in ${1% *}; do
        [ "$number" = "$1" ] || run_tests_with "$number" "${common[@]}"
    done
    run_tests_with "${1##* }" "${common[@]}" recorder::faults "${sources[@]}"
}

run_tests_with() { # INTAKE_THREADS TESTS...
    KEEPUP_TEST_INTAKE_THREADS=$1 KEEPUP_KILLS=20 run_tests --workspace --test end_to_end -- \
        --include-ignored --test-threads 6 "${@:2}"
}

# Every interleaving of the protocols between threads, as far as loom bounds it.
run_loom() {
    RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/ci-loom \
        cargo test --quiet -p keepup-sys -p keepup-recorder --lib loom_tests
}

# Whole recordings with three intake threads under ThreadSanitizer. The stable compiler has it, for those who ask.
# The same command with `--no-run` first, where nothing waits for it.
thread_sanitizer() {
    RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' \
        TSAN_OPTIONS="suppressions=$PWD/.ci/tsan-suppressions" KEEPUP_TEST_INTAKE_THREADS=3 \
        CARGO_TARGET_DIR=target/ci-tsan CARGO_PROFILE_DEV_DEBUG=line-tables-only \
        cargo test --quiet -p keepup-recorder --test record --target "$(rustc -vV | sed -n 's/^host: //p')" "$@"
}

# One at a time, by a lock of their own: with one thread the harness would not name the threads.
run_measured_tests() {
    run_tests --workspace --test end_to_end -- --ignored ::measured:: --test-threads 2
}

# Records three seconds of the csl profile, verifies it, and counts its messages with the official Python reader.
round_trip() {
    local scratch="$1" recorder address
    mkdir -p "$scratch/disk"
    "$KEEPUP" record --listen 127.0.0.1:0 --volume "$scratch/disk" --name trip --segment '128 MiB' \
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
    timeout 60 "$KEEPUP" source csl --to "$address" --time 3s --buffer '1 GB' --json >"$scratch/source.json"
    wait "$recorder"
    trap - EXIT
    timeout 120 "$KEEPUP" verify "$scratch/disk/trip" --json >"$scratch/verify.json"
    "$CI_PYTHON" .ci/checks/messages.py "$scratch/source.json" "$scratch/record.json" "$scratch/disk/trip"
}

# Streams of every sort over three volumes, read back in every way.
open_everywhere() {
    mkdir -p "$1/views"
    timeout 300 "$CI_PYTHON" .ci/checks/views.py "$KEEPUP" "$1/views"
}

# The commands of a fleet, and faults in every phase of a recording and a trial, by the script of the book.
fleet_in_namespaces() {
    # Programs of this check wait for each other, on a machine that other programs may use.
    LEASE_MS=1500 SLACK_MS=10000 timeout 300 docs/book/fleet-namespaces.sh commands faults
}

# A run on two recorders, read as one.
recording_set() {
    timeout 120 "$CI_PYTHON" .ci/checks/recording_set.py "$KEEPUP" "$1/set"
}

# The recording of the round trip as a bag, intact and with a changed byte.
bag_of_a_recording() {
    local bag="$1/bag" segment
    "$KEEPUP" export "$1/disk/trip" --to bagit --out "$bag"
    "$CI_PYTHON" -m bagit --validate "$bag"
    "$KEEPUP" verify "$bag/data" >/dev/null
    segment="$bag/data/segment-000000.mcap"
    printf 'x' | dd of="$segment" bs=1 seek=100000 conv=notrunc status=none
    if "$CI_PYTHON" -m bagit --validate "$bag" 2>/dev/null; then
        echo 'a changed byte was not found'
        return 1
    fi
}

# Frames written, and read back, by baseband.
vdif_frames() {
    timeout 300 "$CI_PYTHON" .ci/checks/vdif.py "$KEEPUP" "$1/vdif"
}

# Files written by h5py and tifffile into a directory, and restored.
directory_files() {
    timeout 300 "$CI_PYTHON" .ci/checks/directory.py "$KEEPUP" "$1/directory"
}

# A recording in an object store with the XML API of Google, and back.
archive_google() {
    timeout 200 target/ci-archive/bin/python .ci/checks/archive_google.py "$KEEPUP" "$1/archive-google"
}

# Heaps sent by spead2, whole and with packets lost on the way.
spead_heaps() {
    timeout 300 "$CI_PYTHON" .ci/checks/spead.py "$KEEPUP" "$1/spead"
}

# Captures written by scapy: every link layer and file format, read by keepup.
captures() {
    timeout 300 "$CI_PYTHON" .ci/checks/captures.py "$KEEPUP" "$1/captures"
}

# Series of a DECTRIS detector, sent by libzmq; compressed images of a simulated one, received by libzmq.
dectris_series() {
    timeout 300 "$CI_PYTHON" .ci/checks/dectris.py "$KEEPUP" "$1/dectris" "$DECTRIS_CAPTURE"
    timeout 300 "$CI_PYTHON" .ci/checks/dectris_source.py "$KEEPUP" "$1/dectris-source"
}

# Configuration, arm, trigger and disarm of a DECTRIS detector with a simulated SIMPLON server.
dectris_control() {
    timeout 300 "$CI_PYTHON" .ci/checks/simplon.py "$KEEPUP" "$1/simplon"
}

# Images of a pvAccess server, served by p4p (pvxs).
pvaccess_images() {
    timeout 300 "$CI_PYTHON" .ci/checks/pvaccess.py "$KEEPUP" "$1/pvaccess"
}

# Streams that are reduced on the way, read by h5py and compared with what numpy computes.
reduced_streams() {
    timeout 120 "$CI_PYTHON" .ci/checks/reduce.py "$KEEPUP" "$1/reduce"
}

# The machine may be shared, so the verdict may be any; what the result says must hold together all the same.
qualify_csl() {
    local scratch="$1" code=0 out
    out="$(mktemp -d)"
    mkdir -p "$scratch/qualify"
    timeout 480 "$KEEPUP" qualify csl --quick --max-write 40GB --volume "$scratch/qualify" \
        --out "$out" --json >"$scratch/result.json" || code=$?
    case "$code" in
        0 | 1 | 4 | 5 | 6) ;;
        *) echo "qualify ended with exit code $code"; return 1 ;;
    esac
    "$CI_PYTHON" .ci/checks/result.py "$scratch/result.json" "$code"
    # Its report is looked at later, in a browser.
    mkdir -p "$scratch/reports"
    cp "$out"/*/report.html "$scratch/reports/measured.html"
    rm -rf "$scratch/qualified"
    mv "$out" "$scratch/qualified"
}

# Names that mean something in a URL, a pattern, a format or a shell, in every place that a name reaches.
names() { # SCRATCH
    rm -rf "$1/names"
    timeout 600 "$CI_PYTHON" .ci/checks/names.py "$KEEPUP" "$1/names"
    rm -rf "$1/names"
}

# The book's page for pandas, DuckDB and Grafana, on results that were just made.
use_your_result() {
    local scratch="$1" out="$1/swept"
    mkdir -p "$scratch/qualify" "$out"
    "$KEEPUP" disk sweep --sizes '4 KiB,1 MiB' --depths 1,8 --time 100ms --file '64 MiB' --repeats 5 \
        --volume "$scratch/qualify" --out "$out" >/dev/null
    "$CI_PYTHON" .ci/checks/use_your_result.py docs/book/use-your-result.md "$out"/* "$scratch"/qualified/*
}

# Buffers against SimPy, networks of queues against the recursion of the textbooks. The tests have built the example.
model_oracles() {
    timeout 300 "$CI_PYTHON" .ci/checks/model_oracles.py target/debug/examples/simulate
}

# Licences, sources and bans of all dependencies, by deny.toml. Compiles cargo-deny if it is not installed.
dependencies() {
    command -v cargo-deny >/dev/null || cargo install --quiet --debug --locked cargo-deny
    cargo deny --log-level error check --hide-inclusion-graph licenses sources bans
}

# Whether the database of advisories can be had.
has_advisories() {
    timeout 120 cargo deny --log-level error fetch db >/dev/null 2>&1
}

# Published weaknesses of dependencies, by the database that was just fetched.
advisories() {
    cargo deny --log-level error check --disable-fetch advisories
}

# Coverage is counted by the stable compiler. Without sanitizers: unsafe code is in one crate, which reads nothing foreign.
# Compiled by a profile of its own, which takes less time than it costs in ten seconds of fuzzing.
fuzz_build() {
    local flags='--cfg fuzzing -Cpasses=sancov-module -Cdebug-assertions=on' level
    for level in level=4 inline-8bit-counters pc-table trace-compares; do
        flags="$flags -Cllvm-args=-sanitizer-coverage-$level"
    done
    RUSTFLAGS="$flags" CARGO_TARGET_DIR=target/ci-fuzz cargo build --quiet --profile ci \
        --bins --target "$(rustc -vV | sed -n 's/^host: //p')" --manifest-path fuzz/Cargo.toml
}

# Every target for ten seconds, two at a time: each keeps one processor busy.
fuzz_all() { # SCRATCH
    local targets
    mapfile -t targets < <(sed -n '/^\[\[bin\]\]/{n;s/^name = "\(.*\)"$/\1/p}' fuzz/Cargo.toml)
    [ "${#targets[@]}" -gt 0 ] || { echo 'no targets in fuzz/Cargo.toml'; return 1; }
    printf '%s\n' "${targets[@]}" |
        xargs -P 2 -I '{}' bash -euo pipefail -c '. .ci/checks/steps.sh; fuzz_short "$1" "$2"' fuzz "$1" '{}'
    echo "${#targets[@]} targets"
}

fuzz_short() { # SCRATCH TARGET
    local corpus="$1/fuzz/$2" binary
    binary=$(echo target/ci-fuzz/*/ci/"$2")
    # A target ends without a chance to remove what it keeps on disk.
    mkdir -p "$corpus" "$1/fuzz/tmp-$2"
    [ ! -d "fuzz/seeds/$2" ] || cp -r "fuzz/seeds/$2/." "$corpus"
    # The same seed each time: what fails here fails again elsewhere.
    TMPDIR="$1/fuzz/tmp-$2" "$binary" "$corpus" -seed=1 -max_total_time=10 -timeout=60 -rss_limit_mb=2048 \
        -artifact_prefix="$1/fuzz/" >"$1/fuzz/$2.log" 2>&1 ||
        { echo "FAILED: $2"; tail -n 40 "$1/fuzz/$2.log"; return 1; }
    rm -rf "$1/fuzz/tmp-$2"
    printf '%s: %s\n' "$2" "$(grep DONE "$1/fuzz/$2.log")"
}

# The official IPbus client, from outside and in an environment of its own, against the target of keepup.
official_ipbus_client() {
    local venv=target/ci-ipbus table=target/ci/registers.xml
    printf '<node id="top"><node id="first" address="0x0"/></node>\n' >"$table"
    timeout 120 "$venv/bin/python" .ci/checks/ipbus.py "$KEEPUP" "$PWD/$table"
}

# Reports of a sample of every kind, of the verdicts that there are, and of what was just measured, in a real browser.
reports_in_chromium() {
    local scratch="$1" venv=target/ci-browser sample
    mkdir -p "$scratch/reports"
    for sample in crates/results/samples/*.json crates/report/tests/{fit,limited,not_fit}.json; do
        "$KEEPUP" report "$sample" --html "$scratch/reports/$(basename "$sample" .json).html"
    done
    # Pages of papers are made here: their tables are the widest.
    rm -rf "$scratch/papers"
    mkdir -p "$scratch/papers/volume"
    for paper in cern-vme romanis; do
        local volume=(--volume "$scratch/papers/volume")
        # Registers need no disk.
        if [ "$paper" = cern-vme ]; then volume=(); fi
        "$KEEPUP" reproduce "$paper" --scale 0.01 --repeats 2 "${volume[@]}" \
            --out "$scratch/papers/$paper" >/dev/null
        cp "$scratch/papers/$paper"/*/report.html "$scratch/reports/$paper.html"
    done
    "$KEEPUP" predict papers --html "$scratch/reports/predict-papers.html" >/dev/null
    "$KEEPUP" predict csl-old --on papers/romanis --sweep disks=1..8 --html "$scratch/reports/predict-sweep.html" >/dev/null
    timeout 900 "$venv/bin/python" .ci/checks/report_in_chromium.py "$(command -v chromium)" "$scratch/pictures" \
        "$scratch"/reports/*.html
}

# Samples of every kind as results, copies of one and one whose texts look like markup, and a recording that was made before.
serve_in_chromium() {
    local scratch="$1" venv=target/ci-browser sample catalog
    catalog="$scratch/catalog"
    rm -rf "$catalog"
    for sample in crates/results/samples/*.json crates/results/samples/disk-v4.json; do
        local place
        place="$catalog/$(basename "$sample" .json)"
        [ ! -e "$place" ] || place="$place-again"
        mkdir -p "$place"
        echo sample >"$place/.keepup-result"
        : >"$place/events.jsonl"
        cp "$sample" "$place/result.json"
    done
    sed -i 's/"failure": null/"failure": "<img src=x onerror=alert(1)><b>bold<\/b>"/' "$catalog/disk-v4-again/result.json"
    timeout 300 "$venv/bin/python" .ci/checks/serve_in_chromium.py "$(command -v chromium)" "$KEEPUP" \
        "$scratch/pictures" "$catalog" "$scratch/disk"
}

# A whole run by the page, another by `ctl`, a volume that fails in between; metrics and the book's subscriber on the way.
live_in_chromium() {
    local scratch="$1" venv=target/ci-browser
    timeout 600 "$venv/bin/python" .ci/checks/live_in_chromium.py "$(command -v chromium)" "$KEEPUP" \
        "$scratch/pictures" "$scratch/live" docs/book
}

# The live page of two recorders and a spare: one recorder is killed, the page stops the run.
fleet_in_chromium() {
    local scratch="$1" venv=target/ci-browser
    timeout 120 "$venv/bin/python" .ci/checks/fleet_in_chromium.py "$(command -v chromium)" "$KEEPUP" \
        "$scratch/pictures" "$scratch/fleet"
}

# The unit's keys and its sandbox, by systemd's own tools, and that its flags are those of the recorder.
systemd_unit() {
    local scratch="$1" unit flag
    unit="$scratch/keepup-record.service"
    sed "s|/usr/bin/keepup|$KEEPUP|" packaging/keepup-record.service >"$unit"
    systemd-analyze verify "$unit"
    systemd-analyze security --offline=true --no-pager --threshold=20 "$unit" | tail -n 1
    "$KEEPUP" record --help >"$scratch/record-help.txt"
    for flag in $(grep -hvE '^#' packaging/keepup-record.service packaging/keepup-record.env | grep -oE -- '--[a-z-]+'); do
        grep -qE -- "$flag( |\$)" "$scratch/record-help.txt" || { echo "keepup record has no $flag"; return 1; }
    done
}

# Alerts: their grammar, and when they stand.
alert_rules() {
    promtool check rules packaging/prometheus/keepup.rules.yml
    promtool test rules packaging/prometheus/keepup.rules.test.yml
}
