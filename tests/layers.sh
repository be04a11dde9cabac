#!/bin/sh
# A file of src includes headers of its own layer and of those below it, never
# above; and only one place knows http_parser.h, and one libconfig.h.
# Prints TAP.

tree=$(cd "${HAYATE_SRCDIR:-$(dirname "$0")/..}" && pwd)/src
number=0

result() { # STATUS DESCRIPTION
    number=$((number + 1))
    if test "$1" -eq 0; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
    fi
}

# Print every breach in the tree $1, one a line.
# shellcheck disable=SC2016 # the program of awk
breaches() {
    (cd "$1" && find . -name '*.[ch]' -print | LC_ALL=C sort |
        xargs awk '
        BEGIN {
            count = split("main command master worker answer http conf base", layers, " ")
            for (i = 1; i <= count; i++)
                level[layers[i]] = count - i
        }
        function say(what) {
            print substr(FILENAME, 3) ":" FNR ": " what
        }
        FNR == 1 {
            count = split(FILENAME, parts, "/")
            own = count == 2 ? "main" : parts[2]
            if (FILENAME != "./main.c" && (count == 2 || !(own in level)))
                say("belongs to no layer")
        }
        /^[ \t]*#[ \t]*include/ {
            name = $0
            sub(/^[^"<]*["<]/, "", name)
            sub(/[">].*/, "", name)
            if (name == "http_parser.h" && FILENAME != "./http/request.c")
                say(name " belongs to http/request.c")
            if (name == "libconfig.h" && FILENAME !~ /^\.\/conf\/(load|value)[a-z0-9_]*\.c$/)
                say(name " belongs to conf/load*.c and conf/value*.c")
            if ($0 !~ /"/ || name == "config.h")
                next
            if (name !~ /^[a-z]+\/[a-z0-9_]+\.h$/ ) {
                say(name " is not named as LAYER/FILE.h")
                next
            }
            split(name, parts, "/")
            if (!(parts[1] in level))
                say(name " belongs to no layer")
            else if (level[parts[1]] > level[own])
                say(name " is above " own)
        }')
}

# A copy of the tree with the line $2 added to the file $1 has a breach.
must_fail() {
    rm -rf "$copy/src"
    cp -R "$tree" "$copy/src" && chmod -R u+w "$copy/src"
    mkdir -p "$(dirname "$copy/src/$1")"
    printf '%s\n' "$2" >>"$copy/src/$1"
    breaches "$copy/src" | grep -q "^$1:"
    result $? "a breach is found: $1 with $2"
}

copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT

echo 1..10

test -f "$tree/main.c"
result $? "the sources are in $tree"

found=$(breaches "$tree")
test -z "$found" || printf '%s\n' "$found" | sed 's/^/# /'
test -z "$found"
result $? 'every file includes its own layer and those below it'

must_fail base/slice.h '#include "conf/conf.h"'
must_fail conf/print.c '#include "http/status.h"'
must_fail http/route.c '# include "answer/answer.h"'
must_fail answer/text.c '#include "worker/conn.h"'
must_fail worker/conn.c '#include <http_parser.h>'
must_fail master/master.c '#include <libconfig.h>'
must_fail worker/conn.c '#include "../master/master.h"'
must_fail stray/stray.c 'int stray;'
