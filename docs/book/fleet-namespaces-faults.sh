# Faults in each phase of a recording and of a trial; read by fleet-namespaces.sh.
#
# Of a recording: `joining`, when r1 has joined and s1 has not; `preparing`, while r0 does not answer; `starting`, between the
# order to start and the start; `recording`, while events arrive; `ending`, when the recorders were asked to end.
# r1 is killed, stopped or cut off, without and with return, or the controller is killed; `restart`: and the same command is
# given again at once, while the agent of r0 does not know that its controller is gone.
# shellcheck shell=bash disable=SC2154 # variables of fleet-namespaces.sh

recording_phases=(joining preparing starting recording ending)
trial_phases=(preparing running ending)
faults=(kill stop stop-return cut cut-return controller restart)

### Faults in each phase of a recording

# Takes the recording into PHASE. `held` holds it there until `release`.
reach() { # PHASE
    held=''
    case "$1" in
    joining | preparing) ;;
    *) touch go ;;
    esac
    start_record record
    case "$1" in
    joining | preparing)
        for host in s0 r0 r1; do wait_line record.log "^$host has joined"; done
        [ "$1" = preparing ] || return 0
        hold r0
        touch go
        wait_line record.log '^preparing the recorders'
        ;;
    starting) wait_line record.log '^recording hall-run-1 on 2 recorders' ;;
    recording)
        wait_line record.log '^recording hall-run-1 on 2 recorders'
        # Of a controller that is not started again, the source notices nothing else.
        if [ "$fault" = controller ]; then start_source 60 2; else start_source 3 30; fi
        wait_until 'durable events' 20000 both_have_durable_events
        ;;
    ending)
        wait_line record.log '^recording hall-run-1 on 2 recorders'
        start_source 1 30
        end_source
        hold "$ends_last"
        down &
        downer=$!
        wait_line record.log '^ending the recording'
        ;;
    esac
}

both_have_durable_events() {
    [ "$("$keepup" fleet status fleet.toml --json 2>/dev/null | grep -c '"durable_events": [1-9]')" -eq 2 ]
}

# A host that does not answer keeps a phase from ending for the time of its lease.
hold() {
    held="$1"
    if [ "$fault" = restart ]; then unplug "$held"; else kill -STOP "$(agent "$held")"; fi
}

release() {
    touch go
    if [ -z "$held" ]; then return; fi
    if [ "$fault" = restart ]; then plug "$held"; else kill -CONT "$(agent "$held")" 2>/dev/null || true; fi
    held=''
}

part_recording_faults() { # PHASE
    local phase="$1"
    for fault in "${faults[@]}"; do
        part="$phase, $fault"
        ends_last=r1
        case "$fault" in controller | restart) ends_last=r0 ;; esac
        # A host that does not answer is lost before the time to end its part is over.
        timing='' lease="$lease_ms" finish=$((lease_ms * 3 + 200))
        case "$phase" in
        # A host is held here while another one is killed, stopped or cut off.
        preparing) lease=$((lease_ms * 2)) ;;
        starting) timing='start_delay = "1500 ms"' ;;
        esac
        # A link that was cut for a lease carries data again after up to twice that time: TCP doubles its intervals.
        orphan=$((lease * 3 + 200))
        timing="$timing"$'\n'"lease = \"$lease ms\""$'\nprepare = "10 s"\n'"finish = \"$finish ms\""$'\n'"orphan = \"$orphan ms\""
        # Time to notice that no orders come: `orphan`, and a heartbeat.
        orphan=$((orphan + 150))
        slow=s1
        if [ "$fault" = restart ]; then write_fleet "$timing" "$slow" r0; else write_fleet "$timing" "$slow"; fi
        source='' sent='' downer=''
        reach "$phase"
        case "$fault" in
        controller) controller_is_killed "$phase" ;;
        restart) controller_is_started_again "$phase" ;;
        *) recorder_fails "$phase" ;;
        esac
        plug r1
        wait_until 'end of all agents' "$((finish + orphan))" no_agents
    done
}

# A host is lost at most this long after its last heartbeat: its lease, and the time between two heartbeats.
lost_limit() { echo $((lease + 150)); }

recorder_fails() { # PHASE
    local phase="$1" victim what='' expected=1
    victim="$(agent r1)"
    case "$fault" in
    kill)
        kill -9 "$victim"
        wait_line record.log 'r1: the connection is closed' 700
        within 'killed host noticed' "$took" 700
        what="closed after $took ms, "
        ;;
    stop | stop-return) kill -STOP "$victim" ;;
    cut | cut-return) unplug r1 ;;
    esac
    # A host that was stopped before it ended its part is resumed without its link.
    if [ "$held" = r1 ] && [ "${fault%-return}" = cut ]; then kill -CONT "$victim"; held=''; fi
    if [ "$held" = r0 ]; then release; fi
    wait_line record.log 'r1 is lost' "$(lost_limit)"
    [ "$fault" = kill ] || within 'silent host lost' "$took" "$(lost_limit)"
    what="${what}lost after $took ms"
    case "$fault" in
    stop-return) kill -CONT "$victim" && held='' ;;
    cut-return) plug r1 ;;
    esac
    if [ "$phase" = joining ]; then
        case "$fault" in
        *-return)
            wait_until 'return of r1' 5000 said_twice record.log '^r1 has joined'
            what="$what, back after $took ms" expected=0
            ;;
        esac
    fi
    [ "$held" = r1 ] || release
    end_recording "$phase"
    case "$phase" in
    starting | recording) said record.log 'the streams of r1 move to the other recorders' || wrong 'the streams do not move' ;;
    esac
    expect 'exit code of record' "$code" "$expected"
    local ended="record ended with $code after $took ms"
    check_sets 1
    ok "$what; $ledger; $ended"
}

# Sends events, if nothing was sent yet, and ends the recording: sets `code` and `took` of record.
end_recording() { # PHASE
    if [ -z "$sent" ]; then
        wait_line "${2:-record}.log" '^recording hall-run-. on '
        start_source 1 30
    fi
    if [ -z "$downer" ]; then
        end_source
        down &
        downer=$!
    fi
    wait_for "$controller"
    local ended="$code" after="$took"
    # Agents have 2 s to leave; then standard input is closed; `finish` and 5 s later they are killed.
    within 'end of record' "$after" "$((lease + 2000 + finish + 5000))"
    wait "$downer" || true
    downer=''
    code="$ended" took="$after"
}

# Recovers the runs, and compares their events with those that were acknowledged: sets `ledger`.
check_sets() { # RUN...
    local run acknowledged found
    for run in "$@"; do
        code=0
        "$keepup" recover "runs/run-$run" >recover.out 2>recover.log || code=$?
        # A recorder that is lost before its first event, and is still there, removes its empty recording.
        if [ "$code" -eq 1 ] && said recover.out 'NOT HERE  r1' && [ -z "$(ls r1)" ]; then code=0; fi
        expect "exit code of recover of run $run" "$code" 0
    done
    acknowledged="$(count durable)"
    found="$(union "$@")"
    expect 'acknowledged events' "$acknowledged" "$(count sent)"
    expect 'events in the set' "$found" "$acknowledged"
    ledger="$acknowledged events acknowledged = $found in the set"
}

controller_is_killed() { # PHASE
    local found
    kill_controller
    release
    wait_until 'end of all agents' "$((orphan + finish))" no_agents
    within 'agents of a killed controller ended' "$took" "$((orphan + finish))"
    local after="$took"
    ledger="nothing was sent"
    if [ -n "$source" ]; then
        signal INT "$source"
        wait_for "$source"
        source=''
    fi
    if [ -n "$sent" ]; then
        [ -z "$downer" ] || wait "$downer" || true
        downer=''
        "$keepup" recover runs/run-1 >recover.out 2>recover.log || wrong "exit code $? of recover"
        found="$(union 1)"
        # Events may be on the disk whose acknowledgement did not arrive.
        [ "$found" -ge "$(count durable)" ] || wrong "$(count durable) events were acknowledged, $found are in the set"
        ledger="$(count durable) events acknowledged, $found in the set"
    fi
    ok "all agents had ended after $after ms; $ledger"
}

# The same command again, at once, while the agent of r0 does not know that its controller is gone.
controller_is_started_again() { # PHASE
    local since earlier='' runs=(2)
    kill_controller
    [ -z "$downer" ] || { wait "$downer" || true; downer=''; }
    since="$(now)"
    start_record again
    release
    wait_line again.log '^recording hall-run-2 on 2 recorders' "$((orphan + finish))"
    took=$(($(now) - since))
    within 'recording on all recorders again' "$took" "$((orphan + finish))"
    said again.log 'r0: waiting until the agent of an earlier controller has ended' || wrong 'r0 does not say why it waits'
    local what="2 recorders again after $took ms"
    case "$1" in
    # The source continues in the second run.
    recording) runs=(1 2) ;;
    ending) earlier="$(count durable)" sent='' ;;
    esac
    end_recording "$1" again
    expect 'exit code of record' "$code" 0
    check_sets "${runs[@]}"
    if [ -n "$earlier" ]; then
        "$keepup" recover runs/run-1 >recover.out 2>recover.log || wrong "exit code $? of recover"
        expect 'events in the set of the first run' "$(union 1)" "$earlier"
    fi
    ok "$what; $ledger"
}

### Faults in each phase of a trial

reach_trial() { # PHASE
    local seconds
    # A state is seen at the next heartbeat, up to 1 s later. A trial that is being ended does not take its whole time.
    case "$1" in preparing) seconds=2 ;; running) seconds=6 ;; ending) seconds=60 ;; esac
    held=''
    [ "$1" = preparing ] || touch go
    in_namespace ctl "$keepup" fleet trial fleet.toml "${trial_flags[@]}" --time "${seconds}s" --json >trial.out 2>trial.log &
    controller=$!
    case "$1" in
    preparing)
        # A recorder prepares until its source is ready.
        for host in s1 r0 r1; do wait_line trial.log "^$host has joined"; done
        held=s1
        if [ "$fault" != restart ]; then kill -STOP "$(agent s1)"; fi
        touch go
        wait_until 'preparation' 10000 has_status '^r1 *recorder *\(preparing\|ready\)'
        ;;
    running | ending)
        wait_until 'start' 20000 has_status '^r1 *recorder *running'
        [ "$1" = ending ] || return 0
        held="$ends_last"
        if [ "$fault" = restart ]; then unplug r0; else kill -STOP "$(agent "$held")"; fi
        down &
        downer=$!
        wait_line trial.log '^ending the trial'
        ;;
    esac
}

part_trial_faults() { # PHASE
    local phase="$1"
    for fault in kill controller restart; do
        part="trial $phase, $fault"
        # Time to notice that no orders come: `orphan`, and a heartbeat of a trial, 1 s.
        ends_last=r1 downer='' orphan=5000 finish=2000
        # A recorder that prepares on a busy machine ends its part after the memory of its pool is there.
        [ "$fault" = kill ] || ends_last=r0 finish=20000
        local prepare=20
        [ "$phase" != preparing ] || prepare=8
        local timing="prepare = \"$prepare s\""$'\n'"finish = \"$finish ms\""$'\norphan = "4 s"'
        if [ "$fault" = restart ]; then write_fleet "$timing" s0 r0; else write_fleet "$timing" s0; fi
        reach_trial "$phase"
        case "$fault" in
        kill) recorder_of_trial_fails "$phase" ;;
        controller | restart)
            kill_controller
            touch go
            if [ "$fault" = controller ]; then controller_of_trial_is_killed; else trial_is_started_again; fi
            expect 'recordings that are left' "$(find r0 r1 -mindepth 1 | wc -l)" 0
            ;;
        esac
        [ -z "$downer" ] || wait "$downer" || true
        downer=''
        wait_until 'end of all agents' "$((finish + orphan))" no_agents
    done
}

recorder_of_trial_fails() { # PHASE
    local expected=1 why='no heartbeat until its lease expired' noticed
    kill -9 "$(agent r1)"
    wait_line trial.log 'r1: the connection is closed' 700
    noticed="$took"
    within 'killed host noticed' "$noticed" 700
    if [ "$held" = s1 ]; then kill -CONT "$(agent s1)"; fi
    wait_for "$controller"
    # `finish` is shorter than the lease of a trial.
    [ "$1" != ending ] || expected=130 why='it timed out while ending the recording'
    expect 'exit code of trial' "$code" "$expected"
    find_line trial.out "\"failure\": \"$why\""
    expect 'lost events of r0' "$(sed -n 's/^  "lost_events": \([0-9]*\).*/\1/p' trial.out)" 0
    ok "closed after $noticed ms; ended with $code after $took ms"
}

controller_of_trial_is_killed() {
    wait_until 'end of all agents' "$((orphan + finish))" no_agents
    within 'agents of a killed controller ended' "$took" "$((orphan + 2000))"
    ok "all agents had ended after $took ms"
}

trial_is_started_again() {
    local since
    plug r0
    since="$(now)"
    in_namespace ctl "$keepup" fleet trial fleet.toml "${trial_flags[@]}" --time 1s >again.out 2>again.log &
    controller=$!
    wait_line again.log '^r0 has joined' "$((orphan + finish))"
    took=$(($(now) - since))
    within 'all hosts joined again' "$took" "$((orphan + 2000))"
    local joined="$took"
    wait_for "$controller"
    expect 'exit code of the second trial' "$code" 0
    expect 'recorders with events' "$(grep -cE '^r[01] .* [1-9][0-9]* +0 ' again.out)" 2
    find_line again.out '^all: '
    ok "r0 joined again after $joined ms; $line"
}
