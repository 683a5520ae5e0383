#!/usr/bin/env bash
# A fleet on one machine: a controller, two sources and two recorders in four network namespaces, which a bridge
# connects over links of 100 Mbit/s. Runs every command of a fleet, then kills, stops and cuts off hosts in each phase
# of a recording, kills hosts in each phase of a trial, and compares what the source counted as acknowledged with what
# is in the set.
#
#   fleet-namespaces.sh [PART...]     all parts, or: commands trial qualify record campaign reproduce
#                                     joining preparing starting recording ending: faults in a phase of a recording
#                                     trial-preparing trial-running trial-ending: faults in a phase of a trial
#                                     faults: the last eight, at the same time
#
# Needs root, bash, iproute2, coreutils, grep, sed, and keepup with the feature `fleet`: $KEEPUP, or the one in PATH.
# Prints a line for each check. Ends with 1 at the first wrong one. Times are printed with their limits: a single one may
# exceed its limit by SLACK_MS (1000). With CHECK_TIMES=1, medians over their limits are wrong too.
# LEASE_MS (600, at most 2000) is the lease of recordings.
set -euo pipefail

keepup="$(command -v "${KEEPUP:-keepup}")" || { echo 'error: no keepup; set KEEPUP=PATH'; exit 2; }
keepup="$(realpath "$keepup")"
# What a loaded machine may add to a limit, ms.
slack_ms="${SLACK_MS:-1000}"
lease_ms="${LEASE_MS:-600}"
check_times="${CHECK_TIMES:-}"

. "$(dirname "$0")/fleet-namespaces-faults.sh"

### Namespaces: `ctl` is the controller's, `src` that of both sources, `r0` and `r1` those of the recorders.

address() { case "$1" in ctl) echo 10.218.0.1 ;; src) echo 10.218.0.2 ;; r0) echo 10.218.0.3 ;; r1) echo 10.218.0.4 ;; esac; }

create_namespaces() {
    local name
    ip netns add "$site-sw"
    ip -n "$site-sw" link add switch type bridge
    ip -n "$site-sw" link set switch up
    for name in ctl src r0 r1; do
        ip netns add "$site-$name"
        ip -n "$site-$name" link add eth type veth peer name "$name" netns "$site-sw"
        ip -n "$site-$name" address add "$(address "$name")/24" dev eth
        ip -n "$site-$name" link set lo up
        ip -n "$site-$name" link set eth up
        ip -n "$site-sw" link set "$name" master switch up
        tc -n "$site-$name" qdisc replace dev eth root tbf rate 100mbit burst 64kb limit 768kb
    done
}

unplug() { ip -n "$site-sw" link set "$1" down; }
plug() { ip -n "$site-sw" link set "$1" up; }

# Ends the programs in the namespaces, by their process ids, and removes the namespaces.
remove_namespaces() {
    local name pid
    # The rest must be removed even if one step fails.
    set +e
    exec 2>/dev/null
    touch go
    for name in ctl src r0 r1 sw; do
        for pid in $(ip netns pids "$site-$name"); do kill -9 "$pid"; done
        ip netns del "$site-$name"
    done
}

in_namespace() { # NAME COMMAND...: `ip` becomes the command, so $! is its process.
    local name="$1"
    shift
    exec ip netns exec "$site-$name" "$@"
}

agent() { # HOST: process of its agent
    local host="$1" space pid
    case "$host" in s?) space=src ;; *) space="$host" ;; esac
    for pid in $(ip netns pids "$site-$space"); do
        if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q " fleet agent --name $host "; then echo "$pid"; fi
    done
}

agents() { # all of them
    local host
    for host in s0 s1 r0 r1; do agent "$host"; done
}

### The fleet file

# Launchers for faults. The agent starts when the file `go` exists:
slow_launcher='until [ -e go ]; do sleep 0.02; done; host="$1"; shift; exec ip netns exec "$host" "$@"'
# The agent's standard input stays open when the controller is killed, as if the controller's machine had failed. The agent
# then ends after `orphan`:
deaf_launcher='rm -f input; mkfifo input; host="$1"; shift
ip netns exec "$host" "$@" <input & agent=$!
{ head -n 1; while kill -0 "$agent" 2>/dev/null; do sleep 0.02; done; } >input
wait "$agent"'

# write_fleet TIMING [SLOW [DEAF]]: hosts SLOW and DEAF have these launchers.
write_fleet() {
    local host
    cat >fleet.toml <<TOML
name = "hall"
listen = "$(address ctl):7650"
[timing]
$1
[launcher]
preset = "netns"
program = "$keepup"
join_time = "20 s"
TOML
    for host in s0 s1 r0 r1; do
        {
            printf '[[host]]\nname = "%s"\n' "$host"
            case "$host" in
            s?) printf 'role = "source"\naddress = "%s"\ndata = "%s"\n' "$site-src" "$(address src)" ;;
            r?)
                printf 'role = "recorder"\naddress = "%s"\ndata = "%s"\n' "$site-$host" "$(address "$host")"
                printf 'volumes = ["%s"]\n' "$PWD/$host"
                ;;
            esac
            case "$host" in
            "${2:-}") echo 'launcher = ["sh", "slow.sh", "{host}", "{agent}"]' ;;
            "${3:-}") echo 'launcher = ["sh", "deaf.sh", "{host}", "{agent}"]' ;;
            esac
        } >>fleet.toml
    done
    rm -rf runs r0 r1 t0 go ./*.log ./*.out source.json
    mkdir r0 r1
    echo "$slow_launcher" >slow.sh
    echo "$deaf_launcher" >deaf.sh
}

### Checks

now() { date +%s%3N; }

ok() { printf 'ok: %s: %s\n' "$part" "$1"; }

wrong() {
    printf 'WRONG: %s: %s\n' "$part" "$1"
    tail -n 30 ./*.log ./*.err 2>/dev/null || true
    exit 1
}

expect() { [ "$2" = "$3" ] || wrong "$1: $2, expected $3"; } # WHAT IS EXPECTED

within() { # WHAT MS LIMIT_MS: also keeps the measurement for the summary
    printf '%s\t%s\t%s\n' "$1" "$3" "$2" >>"$figures"
    [ "$2" -le "$(($3 + slack_ms))" ] || wrong "$1 after $2 ms, limit $3 ms"
}

wait_until() { # WHAT LIMIT_MS COMMAND...: sets `took`, ms
    local what="$1" limit="$2" start
    start="$(now)"
    shift 2
    until "$@"; do
        [ "$(($(now) - start))" -le "$((limit + slack_ms))" ] || wrong "no $what within $limit ms"
        sleep 0.02
    done
    took=$(($(now) - start))
}

find_line() { # FILE PATTERN: sets `line` to the first match, without indentation
    line="$(grep -m 1 -E -- "$2" "$1" | sed 's/^ *//')" || wrong "no line \"$2\" in $1, which ends: $(tail -n 12 "$1")"
}

said() { grep -qs -- "$2" "$1"; } # FILE PATTERN
said_twice() { [ "$(grep -c -- "$2" "$1")" -ge 2 ]; }
wait_line() { wait_until "line \"$2\"" "${3:-20000}" said "$1" "$2"; } # FILE PATTERN [LIMIT_MS]
no_agents() { [ -z "$(agents)" ]; }
has_status() { # PATTERN; `status` fails when a host is missing
    { "$keepup" fleet status fleet.toml 2>/dev/null || true; } | grep -q "$1"
}

wait_for() { # PROCESS: sets `code` and `took`, ms
    local start
    start="$(now)"
    code=0
    # Without the shell's message about a process that was killed.
    { wait "$1" || code=$?; } 2>/dev/null
    took=$(($(now) - start))
}

signal() { # SIGNAL PROCESS: only one that is still running; the number of another one may belong to a stranger
    if jobs -pr | grep -qx "$2"; then kill "-$1" "$2" || true; fi
}

kill_controller() { { signal KILL "$controller"; wait "$controller"; } 2>/dev/null || true; }

### Programs

start_record() { # LOG [FLAG...]
    local log="$1"
    shift
    in_namespace ctl "$keepup" record --fleet fleet.toml --fleet-output runs --segment '64 MB' --pool '64 MB' "$@" >"$log.out" 2>"$log.log" &
    controller=$!
}

start_source() { # SECONDS PATIENCE
    in_namespace src "$keepup" source romanis --to "$(address r0):7611" --to "$(address r1):7611" --streams 16 \
        --event '20 kB' --rate '8 MB/s' --time "$1s" --recorder-timeout "$2s" --json >source.json 2>source.log &
    source=$! sent=yes
}

end_source() { # The source ends by itself, after its last event was acknowledged.
    wait_for "$source"
    source=''
    expect 'exit code of the source' "$code" 0
}

down() { "$keepup" fleet down fleet.toml 2>down.log; }

count() { sed -n "/^  \"$1\": {/,/}/s/.*\"events\": \\([0-9]*\\).*/\\1/p" source.json; } # KEY of the source's result

# why_not_whole: what verify.json says against a set; nothing if all blocks that are here are intact.
why_not_whole() {
    local reports intact
    reports="$(grep -c '"fault_count":' verify.json || true)"
    intact="$(grep -c '"fault_count": 0,\?$' verify.json || true)"
    [ "$reports" -gt 0 ] || echo 'no recording was verified'
    [ "$intact" -eq "$reports" ] || echo "faults in $((reports - intact)) of $reports recordings"
    [ -n "$(sed -n '/^  "account": {/,/^  }/{/^    "faults": \[\],\?$/p}' verify.json)" ] || echo 'faults in the account'
}

# union RUN...: events in the sets of these runs together, each counted once. A stream has no hole in a run, and a later run
# starts no later than where the earlier one ends. Prints what is wrong instead.
union() {
    local run key value stream='' first='' events='' last total=0 code why
    local -A next=()
    for run in "$@"; do
        code=0
        "$keepup" verify "runs/run-$run" --json >verify.json 2>verify.log || code=$?
        # 1: not complete, such as a run whose end was not reported.
        [ "$code" -le 1 ] || { echo "exit code $code of verify of run $run"; return; }
        why="$(why_not_whole)"
        [ -z "$why" ] || { echo "run $run: $why"; return; }
        while read -r key value; do
            case "$key $value" in
            stream*) stream="$value" first='' events='' ;;
            events*) events="$value" ;;
            first*) first="$value" ;;
            last*)
                last="$value"
                [ "$((last - first + 1))" -eq "$events" ] || { echo "hole in stream $stream of run $run"; return; }
                [ "$first" -le "${next[$stream]:-0}" ] || { echo "hole in stream $stream before run $run"; return; }
                [ "$last" -lt "${next[$stream]:-0}" ] || next[$stream]=$((last + 1))
                ;;
            'unexplained 0' | 'different 0') ;;
            # Not compared: there was nothing to compare.
            'different null') [ "$events" -eq 0 ] || { echo "copies in stream $stream of run $run were not compared"; return; } ;;
            *) echo "$key $value in stream $stream of run $run"; return ;;
            esac
        done < <(sed -n 's/^      "\([0-9]*\)": {/stream \1/p
            s/^        "\(events\|unexplained\|different\)": \([0-9][0-9]*\|null\).*/\1 \2/p
            s/^        "\(first\|last\)_sequence": \([0-9][0-9]*\).*/\1 \2/p' verify.json)
    done
    for stream in "${!next[@]}"; do total=$((total + next[$stream])); done
    echo "$total"
}

### Commands without faults

part_commands() {
    local up median
    write_fleet ''
    in_namespace ctl "$keepup" fleet up fleet.toml >up.out 2>up.log &
    up=$!
    wait_until '4 members' 20000 has_status '4 of 4 hosts'
    ok "fleet up: 4 of 4 hosts after $took ms"
    "$keepup" fleet probe fleet.toml --json >probe.json
    median="$(sed -n 's/^ *"median_ns": \([0-9]*\).*/\1/p' probe.json)"
    [ -n "$median" ] || wrong 'no median in the result of probe'
    [ -z "$check_times" ] || [ "$median" -lt 5000000 ] || wrong "a command takes $median ns in the median, limit 5000000"
    ok "fleet probe: a command to 4 hosts takes $((median / 1000)) us in the median of 50"
    kill -9 "$(agent r1)"
    wait_line up.log 'r1: the connection is closed' 700
    within 'killed host noticed' "$took" 700
    code=0
    wait_until 'missing host' 2000 has_status '3 of 4 hosts'
    "$keepup" fleet status fleet.toml >status.out || code=$?
    expect 'exit code of status with a killed host' "$code" 1
    down
    wait_for "$up"
    expect 'exit code of up' "$code" 0
    no_agents || wrong 'agents are left'
    ok "fleet status, down: a killed host is MISSING, no agent is left"
    code=0
    in_namespace_wait ctl "$keepup" doctor --fleet fleet.toml >doctor.out 2>doctor.log || code=$?
    [ "$code" -le 1 ] || wrong "exit code $code of doctor"
    find_line doctor.out '^  r1 .*recorder'
    find_line doctor.out '^[0-9]+ harmful'
    ok "doctor --fleet: $line"
}

in_namespace_wait() { (in_namespace "$@"); }

trial_flags=(romanis --streams 4 --event '64 KiB' --rate '4 MB/s')

part_trial() {
    write_fleet ''
    in_namespace_wait ctl "$keepup" fleet trial fleet.toml "${trial_flags[@]}" --time 2s >trial.out 2>trial.log ||
        wrong "exit code $? of fleet trial"
    find_line trial.out '^all: .*, 0 events lost'
    ok "$line"
}

part_qualify() {
    local flags=(--fleet fleet.toml romanis --streams 4 --event '64 KiB' --quick --soak 2s) qualified code
    write_fleet ''
    # A controller that is killed in the second trial does not disturb the next one.
    in_namespace ctl "$keepup" qualify "${flags[@]}" >killed.out 2>killed.log &
    controller=$!
    wait_line killed.log '^  trial 2'
    kill_controller
    code=0
    in_namespace_wait ctl "$keepup" qualify "${flags[@]}" --each >qualify.out 2>qualify.log || code=$?
    # 6: fit, with limits that the verdict names.
    [ "$code" = 0 ] || [ "$code" = 6 ] || wrong "exit code $code of qualify"
    # Both sources share a link, so two recorders hold no more than one.
    find_line qualify.out '^ *qualified'
    qualified="$line"
    find_line qualify.out '^ *bottleneck *switch or sources'
    no_agents || wrong 'agents are left'
    ok "$qualified, $line"
}

part_record() {
    local command events copied
    write_fleet ''
    # A drain host, on the machine of the sources.
    mkdir t0
    printf '[[host]]\nname = "t0"\nrole = "drain"\naddress = "%s"\ndata = "%s"\nvolumes = ["%s"]\n' \
        "$site-src" "$(address src)" "$PWD/t0" >>fleet.toml
    start_record record --http 127.0.0.1:8611
    wait_line record.log '^recording hall-run-1 on 2 recorders'
    start_source 3 30
    in_namespace_wait ctl bash -c 'exec 3<>/dev/tcp/127.0.0.1/8611
        printf "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n" >&3; cat <&3' >metrics.out || wrong 'no live page'
    find_line metrics.out '^keepup_received_bytes_total.*host="r1"'
    end_source
    # The recording ends by itself 5 s after its last client.
    wait_for "$controller"
    expect 'exit code of record' "$code" 0
    "$keepup" info runs/run-1 >info.out || wrong "exit code $? of info"
    "$keepup" verify runs/run-1 >verify.out || wrong "exit code $? of verify"
    "$keepup" recover runs/run-1 >recover.out || wrong "exit code $? of recover"
    for command in info verify recover; do
        in_namespace_wait ctl "$keepup" "$command" runs/run-1 --fleet fleet.toml >agents.out 2>agents.log ||
            wrong "exit code $? of $command through the agents"
    done
    "$keepup" export runs/run-1 --to mcap --out run-1.mcap >export.out || wrong "exit code $? of export"
    events="$(count sent)"
    expect 'events in the set' "$(union 1)" "$events"
    find_line export.out "16 streams, $(printf "%'d" "$events" | sed 's/^\([0-9]\)\([0-9]\{3\}\)$/\1,\2/') events"
    ok "record --fleet --http, info, verify, recover, export: $events events sent = $events in the set"
    "$keepup" verify t0/hall-run-1-r0 >copy.out || wrong "exit code $? of verify of a copy"
    "$keepup" verify t0/hall-run-1-r1 >copy.out || wrong "exit code $? of verify of a copy"
    find_line record.out '^t0: .* events, .* copied from 2 recorders'
    copied="$(sed 's/^t0: \([0-9,]*\) events.*/\1/; s/,//g' <<<"$line")"
    expect 'events in the copies' "$copied" "$events"
    ok "drain host: $copied events in 2 copies"
}

part_campaign() {
    write_fleet ''
    cat >cells.toml <<TOML
name = "cells"
repetitions = 2
[run]
verb = "disk concurrent"
files = 1
size = "4 MiB"
kind = "write"
[axes]
place = [{ label = "r0", host = "r0", volume = "$PWD/r0" }, { label = "r1", host = "r1", volume = "$PWD/r1" }]
[baseline]
place = "r0"
TOML
    in_namespace_wait ctl "$keepup" campaign run cells.toml --fleet fleet.toml >campaign.out 2>campaign.log ||
        wrong "exit code $? of campaign"
    find_line campaign.out '4 of 4 runs over 2 cells'
    ok "campaign run --fleet: $line"
}

part_reproduce() {
    write_fleet ''
    code=0
    in_namespace_wait ctl "$keepup" reproduce cdf-csl --fleet fleet.toml --scale 0.001 --repeats 1 --out results \
        >reproduce.out 2>reproduce.log || code=$?
    # The links are too slow for the paper's 80 MB/s.
    [ "$code" -le 1 ] || wrong "exit code $code of reproduce"
    find_line reproduce.out 'by the model +80'
    find_line reproduce.out 'by measurement +80'
    ok "reproduce cdf-csl --fleet: hosts for 80 MB/s $line"
}

### Parts

# Runs one part in namespaces and a directory of its own.
run_part() {
    part="$1"
    site="kn$$$1"
    directory="$(mktemp -d "$scratch/$1.XXXX")"
    cd "$directory"
    trap remove_namespaces EXIT
    trap 'exit 1' INT TERM
    create_namespaces
    case "$1" in
    commands | trial | qualify | record | campaign | reproduce) "part_$1" ;;
    trial-*) part_trial_faults "${1#trial-}" ;;
    *) part_recording_faults "$1" ;;
    esac
}

# Median and maximum of each measurement with a limit.
summary() {
    local key values count median over late=0
    while IFS= read -r key; do
        mapfile -t values < <(grep -F "$key"$'\t' "$figures" | cut -f 3 | sort -n)
        count="${#values[@]}"
        median="${values[$(((count - 1) / 2))]}"
        over=''
        [ "$median" -le "${key#*$'\t'}" ] || { over=', the median is over it' late=1; }
        printf '%s: %s ms in the median of %s, %s ms at most, limit %s ms%s\n' \
            "${key%$'\t'*}" "$median" "$count" "${values[$((count - 1))]}" "${key#*$'\t'}" "$over"
    done < <(cut -f 1,2 "$figures" | sort -u)
    if [ -n "$check_times" ] && [ "$late" -ne 0 ]; then echo 'WRONG: medians over their limits'; return 1; fi
}

main() {
    local alone=(commands trial qualify record campaign reproduce) beside wanted=() parts=() failed=() name
    local -A process=()
    beside=("${recording_phases[@]}" "${trial_phases[@]/#/trial-}")
    for name in "${@:-all}"; do
        case "$name" in
        all) wanted+=("${alone[@]}" "${beside[@]}") ;;
        faults) wanted+=("${beside[@]}") ;;
        *)
            case " ${alone[*]} ${beside[*]} " in
            *" $name "*) wanted+=("$name") ;;
            *) sed -n '2,/^set/s/^# \?//p' "$0"; exit 2 ;;
            esac
            ;;
        esac
    done
    # Once each, whatever was given.
    for name in "${wanted[@]}"; do
        case " ${parts[*]} " in *" $name "*) ;; *) parts+=("$name") ;; esac
    done
    [ "$(id -u)" -eq 0 ] || { echo 'error: namespaces need root'; exit 2; }
    scratch="$(mktemp -d)"
    figures="$scratch/figures"
    : >"$figures"
    # Only parts that still run.
    trap 'set +e; kill $(jobs -pr) 2>/dev/null; wait; rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM
    for name in "${parts[@]}"; do
        case "$name" in
        # These measure: alone.
        commands | trial | qualify | record | campaign | reproduce)
            run_part "$name" &
            wait "$!" || exit 1
            ;;
        # These mostly wait: side by side.
        *)
            run_part "$name" >"$scratch/$name.txt" 2>&1 &
            process["$name"]=$!
            ;;
        esac
    done
    for name in "${!process[@]}"; do
        if wait "${process[$name]}"; then cat "$scratch/$name.txt"; else failed+=("$scratch/$name.txt"); fi
    done
    # Last, where a reader looks for the cause.
    [ "${#failed[@]}" -eq 0 ] || { cat "${failed[@]}"; exit 1; }
    summary
}

main "$@"
