#!/bin/bash
# What a hayate does under load: undisturbed, reloaded, its workers killed; then idle, and its stop. See README.md.
# Exit: 0 all as it should be, 1 not, 2 usage, 77 a tool is missing.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
seconds=10
connections=200
workers=auto
reloads=10
kills=5
idle=0
counted=64      # connections of lost.py; every second one pauses up to this many ms between requests
pause=20

usage() {
    cat <<EOF
Usage: load.sh [OPTION]... [HAYATE]

Starts the binary HAYATE (\$HAYATE, else ./hayate) on a free loopback port and loads it with wrk three times:
undisturbed, while it is reloaded, and while its workers are killed. In the last two lost.py counts what became of
every request.

  --seconds N       length of a load ($seconds)
  --connections N   of wrk ($connections)
  --workers N       of hayate ($workers)
  --reloads N       over the second load ($reloads)
  --kills N         over the third load ($kills)
  --idle N          then count context switches over N seconds of idleness ($idle: do not)
  --help            this text

Exit: 0 all as it should be, 1 not, 2 usage, 77 something is not installed.
EOF
}

die() { printf 'load.sh: %s\n' "$2" >&2; exit "$1"; }

number() {  # OPTION VALUE MIN MAX
    if ! [[ $2 =~ ^(0|[1-9][0-9]{0,4})$ ]] || (( $2 < $3 || $2 > $4 )); then
        die 2 "$1 $2: expected a number from $3 to $4"
    fi
}

fault() {
    printf '             FAULT: %s\n' "$*"
    faults=$((faults + 1))
}

control() { timeout 20 "$hayate" "$@" --control "$dir/control"; }

# MASTER and all below it.
tree() {
    local children pid
    echo "$1"
    children=$(pgrep -P "$1") || return 0
    for pid in $children; do
        tree "$pid"
    done
}

is_running() { [[ -r /proc/$1/stat && $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) != [ZX]* ]]; }

await() {  # TENTHS COMMAND...
    local left=$1
    shift
    until "$@"; do
        (( left-- > 0 )) || return 1
        sleep 0.1
    done
}

# Ready workers, a pid a line: as the status says, else as the log does.
worker_pids() {
    local pid pids
    pids=$(control status --json 2>/dev/null | python3 -c '
import json, sys
for child in json.load(sys.stdin)["children"]:
    if child["role"] == "worker" and child["state"] == "ready":
        print(child["pid"])' 2>/dev/null) ||
        pids=$(sed -n 's/.*worker [0-9]* (pid \([0-9]*\)) ready.*/\1/p' "$dir/log")
    # A number may have passed to somebody else's process: only a child of our master is ours.
    for pid in $pids; do
        if [[ $(ps -o ppid= -p "$pid" | tr -d ' ') == "$master" ]]; then
            echo "$pid"
        fi
    done
}

is_complete() { (( $(worker_pids | wc -l) == count )); }
has_started() { grep -q ' started in ' "$dir/log" || ! is_running "$master"; }

pss() {  # LABEL
    local pid kb name line='' total=0
    for pid in $(tree "$master"); do
        kb=$(awk '$1 == "Pss:" { print $2 }' "/proc/$pid/smaps_rollup" 2>/dev/null) || continue
        name=worker
        [[ $pid != "$master" ]] || name=master
        line+=", $name $kb"
        total=$((total + kb))
    done
    printf '%-12s PSS %d kB%s\n' "$1" "$total" "${line/,/:}"
}

# In hundredths of a second, also of the children that are gone.
cpu() {
    local pid sum=0 n
    for pid in $(tree "$master"); do
        n=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | awk -v own="$([[ $pid == "$master" ]] && echo 1 || echo 0)" \
            '{ print $12 + $13 + (own ? $14 + $15 : 0) }') || continue
        sum=$((sum + n))
    done
    echo "$sum"
}

switches() {  # voluntary|nonvoluntary
    local pid files=()
    for pid in $(tree "$master"); do
        files+=(/proc/"$pid"/task/*/status)
    done
    awk -v name="$1_ctxt_switches:" '$1 == name { sum += $2 } END { print sum + 0 }' "${files[@]}"
}

start_wrk() {
    timeout $((seconds + 15)) wrk -t2 -c"$connections" -d"${seconds}s" "http://127.0.0.1:$port/hello" \
        >"$dir/wrk" 2>&1 &
    wrk=$!
}

# Sets requests, and errors as "connect 0, read 0, write 0, timeout 0, not 2xx 0".
finish_wrk() {  # LABEL
    local status=0 rate line socket='connect 0, read 0, write 0, timeout 0' refused=0
    wait "$wrk" || status=$?
    wrk=''
    requests=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' "$dir/wrk")
    rate=$(sed -n 's/^Requests\/sec: *//p' "$dir/wrk")
    if (( status != 0 )) || [[ -z $requests || -z $rate ]]; then
        cat "$dir/wrk" >&2
        die 1 "wrk ended with status $status and no result"
    fi
    line=$(sed -n 's/^ *Socket errors: //p' "$dir/wrk")
    socket=${line:-$socket}
    line=$(sed -n 's/^ *Non-2xx or 3xx responses: //p' "$dir/wrk")
    refused=${line:-$refused}
    errors="$socket, not 2xx $refused"
    printf '%-12s wrk: %d requests, %s/s, errors: %s\n' "$1" "$requests" "$rate" "$errors"
}

start_counter() {
    timeout $((seconds + 25)) "$here/lost.py" "$port" --connections "$counted" --pause "$pause" --seconds "$seconds" \
        >"$dir/lost" 2>&1 &
    counter=$!
}

finish_counter() {
    local status=0
    wait "$counter" || status=$?
    counter=''
    if (( status > 1 )) || ! grep -q '^longest_ms' "$dir/lost"; then
        cat "$dir/lost" >&2
        die 1 "lost.py ended with status $status and no result"
    fi
    printf '             counter: sent %d, answered %d, requests lost %d (%d partly answered, %d first of a connection)\n' \
        "$(of sent)" "$(of answered)" "$(of lost)" "$(of lost_partly)" "$(of lost_first)"
    printf '             wrong %d, overdue %d; connects: %d, refused %d, otherwise failed %d; longest answer %d ms\n' \
        "$(of wrong)" "$(of overdue)" "$(of opened)" "$(of refused)" "$(of unconnected)" "$(of longest_ms)"
    printf '             closed between requests: %d announced, %d unannounced, %d reset\n' \
        "$(of closed_announced)" "$(of closed_idle)" "$(of reset_idle)"
}

of() { awk -v name="$1" '$1 == name { print $2 }' "$dir/lost"; }

expect_none() {  # WHAT NAME... of the counter
    local name
    for name in "${@:2}"; do
        (( $(of "$name") == 0 )) || fault "$1: $name $(of "$name")"
    done
}

# Runs COMMAND I for I from 1 to N, evenly spread over the load, or as many as find the time.
spread() {  # N COMMAND
    local i begin now due
    begin=$(date +%s%N)
    for (( i = 1; i <= $1; i++ )); do
        due=$((begin + seconds * 1000000000 * i / ($1 + 1)))
        now=$(date +%s%N)
        (( now < begin + seconds * 1000000000 )) || return 0
        if (( due > now )); then
            sleep "$(awk -v n=$((due - now)) 'BEGIN { printf "%.3f", n / 1e9 }')"
        fi
        "$2" "$i"
    done
}

reload_once() {  # I
    local begin took status=0
    begin=$(date +%s%N)
    control reload >"$dir/reload" 2>&1 || status=$?
    took=$((($(date +%s%N) - begin) / 1000000))
    if (( status == 0 )); then
        reloaded=$((reloaded + 1))
    else
        fault "reload $1 ended with status $status: $(head -c 500 "$dir/reload")"
    fi
    (( took <= slowest )) || slowest=$took
}

kill_once() {  # I
    local pids
    mapfile -t pids < <(worker_pids)
    if (( ${#pids[@]} == 0 )); then
        fault "kill $1: no worker is ready"
        return
    fi
    if kill -KILL "${pids[$1 % ${#pids[@]}]}"; then
        killed=$((killed + 1))
    fi
}

await_whole() {  # LABEL
    await 100 is_complete || fault "$1: $(worker_pids | wc -l) of $count workers are ready 10 s later"
}

load_plain() {
    local before after
    before=$(cpu)
    start_wrk
    finish_wrk undisturbed
    after=$(cpu)
    printf '             CPU %s us a request, master and workers\n' \
        "$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$requests" \
            'BEGIN { printf "%.1f", n ? t * 1e6 / hz / n : 0 }')"
    [[ $errors == "connect 0, read 0, write 0, timeout 0, not 2xx 0" ]] || fault "undisturbed: errors"
}

load_reload() {
    reloaded=0 slowest=0
    start_counter
    start_wrk
    spread "$reloads" reload_once
    finish_wrk reload
    finish_counter
    printf '             reloads: %d of %d done, the slowest in %d ms\n' "$reloaded" "$reloads" "$slowest"
    (( reloaded == reloads )) || fault "reload: $reloaded of $reloads done while there was load"
    [[ $errors == "connect 0, read 0, write 0, timeout 0, not 2xx 0" ]] || fault "reload: wrk had errors"
    expect_none reload lost wrong overdue refused unconnected
    await_whole reload
}

load_kill() {
    killed=0
    start_counter
    start_wrk
    spread "$kills" kill_once
    finish_wrk "kill -9"
    finish_counter
    printf '             workers killed: %d of %d\n' "$killed" "$kills"
    (( killed == kills )) || fault "kill: $killed of $kills done while there was load"
    # What the killed worker had in hand is lost; nobody may be turned away, left waiting or told nonsense.
    [[ $errors == "connect 0, "*", write 0, timeout 0, not 2xx 0" ]] || fault "kill: wrk had more than read errors"
    expect_none kill wrong overdue refused unconnected
    await_whole kill
}

# True if nothing in the tree ran for 5 s. A look in between would not wake it, but there is no need for one.
is_quiet() {
    local before
    before=$(switches voluntary)
    sleep 5
    (( $(switches voluntary) == before ))
}

measure_idle() {
    local pids voluntary other before
    # A watchdog may still look once or twice after the last connection has gone.
    await 6 is_quiet || fault "idle: not quiet for 5 s within half a minute after the load"
    pids=$(tree "$master" | sort)
    voluntary=$(switches voluntary)
    other=$(switches nonvoluntary)
    before=$(cpu)
    sleep "$idle"
    voluntary=$(($(switches voluntary) - voluntary))
    other=$(($(switches nonvoluntary) - other))
    printf 'idle %-7s context switches of all %d processes: %d voluntary, %d involuntary; CPU %d ms\n' "${idle}s" \
        "$(wc -w <<<"$pids")" "$voluntary" "$other" $((($(cpu) - before) * 1000 / $(getconf CLK_TCK)))
    [[ $(tree "$master" | sort) == "$pids" ]] || fault "idle: processes came or went"
}

stop() {
    local begin status=0
    begin=$(date +%s%N)
    kill -TERM "$master"
    if ! await 400 is_gone; then
        fault "stop: still running after 40 s"
        return
    fi
    wait "$master" || status=$?
    printf 'stop         TERM: exit status %d after %d ms\n' "$status" $((($(date +%s%N) - begin) / 1000000))
    (( status == 0 )) || fault "stop: exit status $status"
    master=''
}

is_gone() { ! is_running "$master"; }

clean_up() {
    local pid
    for pid in $wrk $counter; do
        kill "$pid" 2>/dev/null || true
    done
    if [[ -n $master ]] && is_running "$master"; then
        kill -TERM "$master" 2>/dev/null || true
        await 50 is_gone || kill -KILL "$master" 2>/dev/null || true
    fi
    rm -rf "$dir"
}

hayate=
while (( $# > 0 )); do
    case $1 in
        -h|--help) usage; exit 0 ;;
        --seconds|--connections|--workers|--reloads|--kills|--idle)
            (( $# > 1 )) || die 2 "$1 needs a value (--help shows the usage)" ;;
        -*) die 2 "unknown option: $1 (--help shows the usage)" ;;
        *) [[ -z $hayate ]] || die 2 "more than one binary: $hayate, $1"; hayate=$1; shift; continue ;;
    esac
    case $1 in
        --seconds) number "$1" "$2" 1 60; seconds=$2 ;;
        --connections) number "$1" "$2" 2 1000; connections=$2 ;;
        --workers) [[ $2 == auto ]] || number "$1" "$2" 1 64; workers=$2 ;;
        --reloads) number "$1" "$2" 0 100; reloads=$2 ;;
        --kills) number "$1" "$2" 0 100; kills=$2 ;;
        --idle) number "$1" "$2" 0 600; idle=$2 ;;
    esac
    shift 2
done
hayate=${hayate:-${HAYATE:-./hayate}}
[[ -x $hayate && ! -d $hayate ]] || die 1 "$hayate is no program: build hayate first, or name its path"
hayate=$(realpath "$hayate")
for tool in wrk:wrk python3:python3 pgrep:procps; do
    command -v "${tool%%:*}" >/dev/null || die 77 "${tool%%:*} not found: install Debian's package ${tool#*:}"
done

faults=0 master='' wrk='' counter=''
dir=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo 'access_log = "off"' >"$dir/hayate.conf"
options=(-o listen=127.0.0.1:0 -o control="$dir/control")
[[ $workers == auto ]] || options+=(-o workers="$workers")
"$hayate" -c "$dir/hayate.conf" "${options[@]}" \
    2>"$dir/log" </dev/null &
master=$!
if ! await 100 has_started || ! [[ $(grep -m 1 ' started in ' "$dir/log") =~ \
        \ (hayate\ .*):\ ([0-9]+)\ workers?,.*\ http://127\.0\.0\.1:([0-9]+) ]]; then
    cat "$dir/log" >&2
    die 1 "$hayate did not start; above is its log"
fi
count=${BASH_REMATCH[2]}
port=${BASH_REMATCH[3]}
printf 'start        %s, %d workers\n' "${BASH_REMATCH[1]}" "$count"

pss "fresh"
load_plain
load_reload
load_kill
pss "after"
(( idle == 0 )) || measure_idle
stop
if (( faults > 0 )); then
    printf 'result       %d faults; the last lines of the log:\n' "$faults"
    tail -n 20 "$dir/log"
    exit 1
fi
echo 'result       as it should be'
