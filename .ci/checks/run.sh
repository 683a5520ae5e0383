# How .ci/run runs its checks: one after another or beside each other, each with its time; what was skipped or left to
# .ci/full is counted. Sourced with `set -euo pipefail`, and `scratch` and `scope` set (`gate` or `full`).

results=()
skips=()
left=()
declare -A background_pid=()
background_order=()
# What is in the foreground goes first, without waiting for the end of a time slice where the kernel permits that.
behind=(nice -n 19)
! chrt --idle 0 true 2>/dev/null || behind=(chrt --idle 0 "${behind[@]}")

# Runs a check's command: LOG COMMAND...; a process of its own, because `set -e` does not act inside a condition. Its
# processor time is written beside LOG.
step() {
    bash -euo pipefail -c 'log="$1"; trap "times >\"$log.cpu\"" EXIT; . .ci/checks/steps.sh; shift; "$@"' check "$@"
}

# The CPU seconds of the check with this log: those of all its processes that have ended; `?` where they were not kept.
cpu_of() {
    [ -e "$1.cpu" ] || { echo '?'; return; }
    sed -n 2p "$1.cpu" | tr ms '  ' | awk '{ printf "%.0f", $1 * 60 + $2 + $3 * 60 + $4 }'
}

# Where the output of a check is kept.
log_of() { printf '%s/logs/%s.txt' "$scratch" "${1//[^a-zA-Z0-9]/_}"; }

# Counts one check: NAME EXIT_CODE SECONDS, and each line of its output that reports a skip.
count() {
    local state=ok line
    [ "$2" -eq 0 ] || state=FAILED
    results+=("$3 $(cpu_of "$(log_of "$1")") $state $1")
    while IFS= read -r line; do
        skips+=("$1: ${line#*SKIPPED: }")
    done < <(grep -F 'SKIPPED: ' "$(log_of "$1")" || true)
    printf '%s: %s (%d s)\n' "$state" "$1" "$3"
}

# The commit of the last green .ci/full; empty where the history does not have it: then everything counts as changed.
export scope last_full
last_full="$(git rev-parse --verify --quiet "$(cat .ci/full.last 2>/dev/null)^{commit}" 2>/dev/null || true)"

# Whether something in one of these paths differs from the last green .ci/full: PATHS, separated by spaces. A library
# or the steps themselves can change every subject.
changed() {
    [ "$scope" = gate ] && [ -n "$last_full" ] || return 0
    local paths
    read -rd '' -a paths <<<"$1" || true
    [ "${#paths[@]}" -gt 0 ] || return 1
    ! git diff --quiet "$last_full" -- Cargo.lock .ci/checks/steps.sh "${paths[@]}"
}

check() { # NAME COMMAND...: counts it, and goes on when it fails, so that one run shows every failure.
    local name="$1" start=$SECONDS code=0
    shift
    printf '\n== %s\n' "$name"
    step "$(log_of "$name")" "$@" 2>&1 | tee "$(log_of "$name")" || code=$?
    count "$name" "$code" "$((SECONDS - start))"
}

background() { # NAME COMMAND...: the same beside what follows, until `finish NAME`.
    local name="$1" log
    shift
    log="$(log_of "$name")"
    printf '\n== %s: started\n' "$name"
    (
        start=$SECONDS code=0
        "${behind[@]}" bash -euo pipefail -c '. .ci/checks/run.sh; step "$@"' check "$log" "$@" >"$log" 2>&1 || code=$?
        printf '%d %d\n' "$code" "$((SECONDS - start))" >"$log.end"
    ) &
    background_pid["$name"]=$!
    background_order+=("$name")
}

# The same two, when something in PATHS changed since the last green .ci/full, or when this is one.
check_changed() { # PATHS NAME COMMAND...
    if changed "$1"; then check "${@:2}"; else left+=("$2"); fi
}
background_changed() { # PATHS NAME COMMAND...
    if changed "$1"; then background "${@:2}"; else left+=("$2"); fi
}

finish() { # NAME: waits for it, prints what it printed, counts it. Nothing when it was not started.
    local name="$1" log code seconds
    [ -n "${background_pid[$name]:-}" ] || return 0
    log="$(log_of "$name")"
    wait "${background_pid[$name]}" || true
    unset "background_pid[$name]"
    printf '\n== %s\n' "$name"
    cat "$log"
    read -r code seconds <"$log.end" || { code=1 seconds=0; }
    count "$name" "$code" "$seconds"
}

finish_all() { # Every check that is still in the background.
    local name
    for name in "${background_order[@]}"; do
        finish "$name"
    done
}

skip() { # NAME WHY
    skips+=("$1: $2")
    printf '\n== %s\nSKIPPED: %s\n' "$1" "$2"
}

# Why a check failed, for those who see only the end of the output: which tests, and why, or its last lines.
why() { # NAME
    local log
    log="$(log_of "$1")"
    grep -E '^test .* FAILED$' "$log" | head -20 || true
    grep -E -A 6 ' panicked at ' "$log" | head -80 || tail -20 "$log"
}

# The time of each check, slowest first, what was skipped or left out, what failed. Fails when a check did.
summary() {
    local line failed=0
    printf '\n== times, slowest first (checks in the background overlap others)\n'
    printf '%s\n' "${results[@]}" | sort -rn | while read -r seconds cpu state name; do
        printf '%6d s  %6s CPU s  %-6s  %s\n' "$seconds" "$cpu" "$state" "$name"
    done
    printf '%6d s  in all\n' "$SECONDS"
    printf '\n== the slowest end-to-end tests\n'
    sort -rn "$scratch/logs/test-times" | sed 's/^\([0-9.]*\) /  \1 s  /; 20q' || true
    printf '\nskipped: %d\n' "${#skips[@]}"
    [ "${#skips[@]}" -eq 0 ] || printf '  %s\n' "${skips[@]}"
    [ "${#left[@]}" -eq 0 ] || printf 'left to .ci/full: %s\n' "${left[@]}"
    for line in "${results[@]}"; do
        [[ "$line" == *' FAILED '* ]] || continue
        failed=$((failed + 1))
        printf '\n== failed: %s\n' "${line#* FAILED }"
        why "${line#* FAILED }"
    done
    printf 'checks: %d passed, %d failed\n' "$((${#results[@]} - failed))" "$failed"
    [ "$failed" -eq 0 ]
}
