#!/bin/bash
# Load with JMeter: hello.jmx against a server that is already running on this machine.
# Exit: 0 every request answered as it should be, 1 not, 2 usage, 77 java or mvn is missing.
set -euo pipefail
export LC_ALL=C

version=5.6.3
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/hayate
home=$cache/jmeter-$version

host=127.0.0.1
port=8080
runs=3
threads=200
loops=300
# A run is over before the optimising compiler has earned what it takes from the server on the same cores.
jvm_args=${JVM_ARGS--XX:+UseSerialGC -XX:TieredStopAtLevel=1}

usage() {
    cat <<EOF
Usage: jmeter.sh [-H HOST] [-p PORT] [-n RUNS] [-t THREADS] [-l LOOPS]

Runs JMeter $version with THREADS clients of LOOPS requests (GET /hello) each against a running server, RUNS times,
and prints for each run: requests, failures, seconds, requests/s, and the least, mean and greatest latency in ms.

  -H HOST      numeric loopback address or localhost ($host); any other host is refused
  -p PORT      $port
  -n RUNS      $runs
  -t THREADS   $threads
  -l LOOPS     $loops
  -h, --help   this text

The first call puts JMeter together from its Maven artifacts, in \${XDG_CACHE_HOME:-\$HOME/.cache}/hayate.
JVM_ARGS in the environment replaces the options of java: $jvm_args
Exit: 0 all requests answered 200 "Hello", 1 not, 2 usage, 77 something is not installed.
EOF
}

say() { printf 'jmeter.sh: %s\n' "$*" >&2; }
die() { say "$2"; exit "$1"; }

is_loopback() {
    [[ $1 == ::1 ]] && return 0
    [[ $1 =~ ^127\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})$ ]] || return 1
    local part
    for part in "${BASH_REMATCH[@]:1}"; do
        (( 10#$part <= 255 )) || return 1
    done
}

number() {  # OPTION VALUE MAX
    if ! [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || (( $2 > $3 )); then
        die 2 "$1 $2: expected a number from 1 to $3"
    fi
}

artifacts() {  # GOAL OPTION...
    mvn -B -q -f "$building/pom.xml" "dependency:$1" "${@:2}" >>"$building/mvn.log" 2>&1 9>&-
}

# In a folder of its own, renamed when it has shown that it runs: what has the final name is whole.
build() {
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    [[ -d $home ]] && { exec 9>&-; return; }
    command -v mvn >/dev/null || die 77 "mvn not found: install Debian's package maven"
    rm -rf "$cache"/.jmeter-"$version".*    # of a build that was killed; nobody else builds, we hold the lock
    building=$(mktemp -d "$cache/.jmeter-$version.XXXXXX")
    say "putting JMeter $version together in $home (once)"

    local artifact
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>hayate</groupId><artifactId>jmeter-home</artifactId>'
        echo '<version>1</version><packaging>pom</packaging><dependencies>'
        for artifact in ApacheJMeter ApacheJMeter_{core,components,http,functions,config}; do
            # They all name a "bom" that cannot be fetched, and nothing needs it.
            echo "<dependency><groupId>org.apache.jmeter</groupId><artifactId>$artifact</artifactId>"
            echo "<version>$version</version><exclusions><exclusion><groupId>org.apache.jmeter</groupId>"
            echo '<artifactId>bom</artifactId></exclusion></exclusions></dependency>'
        done
        echo '</dependencies></project>'
    } >"$building/pom.xml"
    if ! { artifacts copy-dependencies -DincludeScope=runtime -DoutputDirectory="$building/lib" &&
           artifacts unpack-dependencies -DincludeArtifactIds=ApacheJMeter_config -DoutputDirectory="$building/config"; }; then
        tail -n 20 "$building/mvn.log" >&2
        die 1 "mvn could not fetch JMeter's artifacts"
    fi
    mkdir -p "$building/lib/ext"
    mv "$building/config/bin" "$building/bin"
    mv "$building/lib/ApacheJMeter-$version.jar" "$building/bin/ApacheJMeter.jar"
    mv "$building"/lib/ApacheJMeter_{core,components,http,functions}-"$version".jar "$building/lib/ext/"
    rm -rf "$building/lib/ApacheJMeter_config-$version.jar" "$building/config" "$building/target" "$building/mvn.log"

    # Without the functions ${__P(port)} would silently become port 80.
    [[ -s $building/bin/jmeter.properties && -s $building/lib/ext/ApacheJMeter_functions-$version.jar ]] ||
        die 1 "JMeter's artifacts are not laid out as they were in $version"
    (cd "$building" && timeout 60 java -Djava.awt.headless=true -jar bin/ApacheJMeter.jar -v -j jmeter.log) \
        >"$building/version" 2>&1 9>&- || { cat "$building/version" >&2; die 1 "the JMeter just built does not start"; }
    rm -f "$building/version" "$building/jmeter.log"
    mv -T "$building" "$home"
    building=''
    exec 9>&-
}

# One request by hand: a server that is not there should not cost 60,000 stack traces.
answers() {
    # shellcheck disable=SC2016 # the inner shell expands them
    timeout 5 bash -c '
        exec 3<>"/dev/tcp/$1/$2" || exit 1
        printf "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" >&3
        read -r line <&3 && [[ $line == HTTP/1.1\ * ]]' - "$host" "$port" 2>/dev/null
}

run() {
    local log=$work/jmeter.$1.log out=$work/out.$1 errors=$work/errors.$1.csv status=0
    # In the background, because a trap waits for a foreground command to end.
    # shellcheck disable=SC2086 # jvm_args is a list of words
    (cd "$work" && exec timeout 600 java -Xms1g -Xmx1g $jvm_args \
        -Djava.awt.headless=true -Duser.language=en -Duser.region=US \
        --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.lang.invoke=ALL-UNNAMED \
        --add-opens=java.base/java.lang.reflect=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED \
        --add-opens=java.base/java.text=ALL-UNNAMED \
        -jar "$home/bin/ApacheJMeter.jar" -n -t "$here/hello.jmx" -j "$log" \
        -Jhost="$host" -Jport="$port" -Jthreads="$threads" -Jloops="$loops" -Jerrors="$errors" \
        -Jjmeterengine.nongui.port=0 -Jjmeterengine.force.system.exit=true \
        -Jsummariser.name=summary -Jsummariser.out=true) >"$out" 2>&1 &
    child=$!
    wait "$child" || status=$?
    child=''

    # summary =  60000 in 00:00:05 = 12685.0/s Avg:    10 Min:     0 Max:   150 Err:     0 (0.00%)
    local line pattern='= +([0-9]+) in .* = +([0-9.]+)/s Avg: +([0-9]+) Min: +([0-9]+) Max: +([0-9]+) Err: +([0-9]+)'
    line=$(grep '^summary = ' "$out" | tail -n 1 || true)
    if (( status != 0 )) || ! [[ $line =~ $pattern ]]; then
        tail -n 20 "$out" "$log" >&2 || true
        die 1 "run $1: JMeter ended with status $status and no result"
    fi
    local done=${BASH_REMATCH[1]} rate=${BASH_REMATCH[2]} avg=${BASH_REMATCH[3]} min=${BASH_REMATCH[4]} \
        max=${BASH_REMATCH[5]} failed=${BASH_REMATCH[6]} seconds
    seconds=$(awk -v n="$done" -v r="$rate" 'BEGIN { printf "%.2f", (r > 0) ? n / r : 0 }')
    printf '%3d %9d %9d %8s %11s %6d %6d %6d\n' "$1" "$done" "$failed" "$seconds" "$rate" "$min" "$avg" "$max"
    if (( failed > 0 )); then
        say "run $1: $failed requests failed; the reasons, with how often:"
        awk -F, '/^[0-9]+,/ { print ($3 == 200) ? "200 with another body" : $3 " " $4 }' "$errors" |
            sort | uniq -c | sort -rn | head -n 5 >&2
        verdict=1
    fi
    if (( done != threads * loops )); then
        say "run $1: $done requests were made, $((threads * loops)) were to be"
        verdict=1
    fi
}

while (( $# > 0 )); do
    case $1 in
        -h|--help) usage; exit 0 ;;
        -H|-p|-n|-t|-l) (( $# > 1 )) || die 2 "$1 needs a value (--help shows the usage)" ;;
        *) die 2 "unknown argument: $1 (--help shows the usage)" ;;
    esac
    case $1 in
        -H) host=$2 ;;
        -p) number "$1" "$2" 65535; port=$2 ;;
        -n) number "$1" "$2" 100; runs=$2 ;;
        -t) number "$1" "$2" 1000; threads=$2 ;;
        -l) number "$1" "$2" 100000; loops=$2 ;;
    esac
    shift 2
done
[[ $host == localhost ]] && host=127.0.0.1
[[ $host == "[::1]" ]] && host=::1
is_loopback "$host" || die 2 "$host: only addresses of the loopback interface (127.0.0.0/8, ::1) are ever loaded"
command -v java >/dev/null || die 77 "java not found: install Debian's packages default-jre-headless and maven"

work='' building='' child=''
trap '[[ -z $child ]] || { kill "$child"; wait "$child"; } 2>/dev/null || true
      rm -rf ${work:+"$work"} ${building:+"$building"}' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
answers || die 1 "no HTTP server answers on $host port $port: start one first, or name its port with -p"
build
work=$(mktemp -d)

verdict=0
printf 'run  requests  failures  seconds  requests/s    min    avg    max ms\n'
for (( i = 1; i <= runs; i++ )); do
    run "$i"
done
exit "$verdict"
