#!/bin/sh
# The manual pages, README.md and the shipped config against the program and its
# sources: every example passes `hayate check`; every key, command, option,
# signal and exit status has an item, and nothing has one that does not exist;
# every default that is shown is the one in force. Prints TAP.

: "${HAYATE:?}"
srcdir=${HAYATE_SRCDIR:-$(dirname "$0")/..}
srcdir=$(cd "$srcdir" && pwd)
unset PORT WORKERS ACCESS_LOG
tab=$(printf '\t')
number=0

result() { # STATUS DESCRIPTION
    number=$((number + 1))
    if test "$1" -eq 0; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
    fi
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# What the sources say.

# Print KEY TAB TYPE TAB DEFAULT of each row of the tables NAME in FILE.
rows() { # NAME FILE...
    name=$1
    shift
    cat "$@" | awk -v start="struct schema_row ${name}[] = {" '
        { text = text $0 "\n" }
        function string() { # the C string at `at`
            value = ""
            for (at++; (c = substr(text, at, 1)) != "\""; at++) {
                if (c == "\\")
                    c = substr(text, ++at, 1)
                value = value c
            }
            at++
            return value
        }
        function table() {
            depth = 1
            parens = 0
            while (depth > 0 && at <= length(text)) {
                rest = substr(text, at)
                if (match(rest, /^[ \t\n]+/) || match(rest, /^\/\*[^*]*\*\//)) {
                    at += RLENGTH
                } else if (rest ~ /^"/) {
                    value = string()
                    if (depth == 2)
                        field[place] = field[place] value
                } else if (parens == 0 && match(rest, /^\.[a-z_]+ = /)) {
                    place = substr(rest, 2, RLENGTH - 4)
                    at += RLENGTH
                } else if (match(rest, /^SCHEMA_[A-Z]+/)) {
                    field["type"] = substr(rest, 1, RLENGTH)
                    at += RLENGTH
                } else {
                    c = substr(rest, 1, 1)
                    if (c == "{" && ++depth == 2) {
                        split("", field)
                        position = 1
                        place = "key"
                    } else if (c == "}" && --depth == 1) {
                        print field["key"] "\t" field["type"] "\t" field["fallback"]
                    } else if (c == "(") {
                        parens++
                    } else if (c == ")") {
                        parens--
                    } else if (c == "," && depth == 2 && parens == 0) {
                        position++
                        place = position == 3 ? "fallback" : "none"
                    }
                    at++
                }
            }
        }
        END {
            for (from = 1; (found = index(substr(text, from), start)) > 0; from = at) {
                at = from + found + length(start) - 1
                table()
            }
        }'
}

all_rows() { # TREE
    rows schema_rows "$1/src/conf/schema.c"
    rows schema_route_rows "$1/src/conf/schema.c"
    rows schema_listen_rows "$1/src/conf/schema.c"
    rows rows "$1"/src/answer/*.c
}

commands() { # TREE
    sed -n '/ commands\[\] = {/,/^};/p' "$1/src/command/usage.c" | grep -o '{ "[a-z]*"' | tr -d '{ "'
}

options() { # TREE
    sed -n '/ long_options\[\] = {/,/^};/s/.*{ "\([a-z]*\)",.*NULL, \(.*\) },/-\1 \2/p' \
        "$1/src/command/usage.c" | sed "s/ '\(.\)'/ \1/; s/ OPTION_.*//" | tr ' ' '\n'
}

signals() { # TREE
    awk '/ ours\[\] = \{/ { is_on = 1 } is_on { print } is_on && /};/ { exit }' \
        "$1/src/master/master.c" | grep -o 'SIG[A-Z0-9]*' | grep -vx SIGCHLD
}

statuses() { # TREE
    sed -n '/^enum command_exit {/,/^};/s/.* = \([0-9]*\),.*/\1/p' "$1/src/command/command.h"
}

# What the pages say.

# The words that stand after the macro $1 in the page $2, and those of its items.
words() { # MACRO PAGE
    awk -v macro="$1" '
        /^\.[A-Z]/ && !/^\.\\"/ {
            is_on = 0
            for (i = 1; i <= NF; i++) {
                word = $i
                if (i == 1)
                    sub(/^\./, "", word)
                if (word == macro)
                    is_on = 1
                else if (word ~ /^[A-Z][a-z]$/ || word ~ /^"/)
                    is_on = 0
                else if (is_on && word ~ /^[-A-Za-z0-9]/)
                    print word
            }
        }' "$2"
}

items() { # MACRO PAGE
    grep '^\.It ' "$2" | words "$1" -
}

# Print KEY TAB TEXT of each item of a key: its tag and all up to the next one.
key_items() { # PAGE
    awk '
        function flush() {
            if (key != "") {
                gsub(/[ \t]+/, " ", text)
                print key "\t" text
            }
            key = ""
        }
        /^\.\\"/ { next }
        /^\.(Sh|Ss) / { flush() }
        /^\.It Cm / {
            flush()
            key = $3
            text = ""
        }
        {
            if (/^\./)
                gsub(/"/, "")
            gsub(/\\\(dq/, "\"")
            gsub(/\\&/, "")
            gsub(/\\e/, "\\")
            text = text " " $0
        }
        END { flush() }' "$1"
}

# Write the examples of FILE to the folders FOLDER/1, FOLDER/2, ...
extract() { # FILE FOLDER
    awk -v folder="$2" -v root="$work/root" '
        /^\.\\" example: / || /^<!-- example: .* -->$/ {
            name = $3
            if (name == "hayate.conf")
                number++
            file = folder "/" number "/" name
            directory = file
            sub(/\/[^\/]*$/, "", directory)
            system("mkdir -p " directory)
            is_wanted = 1
            next
        }
        is_wanted && (/^\.Bd/ || /^```/) {
            is_wanted = 0
            is_inside = 1
            is_page = /^\./
            next
        }
        is_inside && (/^\.Ed/ || /^```/) {
            is_inside = 0
            close(file)
        }
        is_inside {
            if (is_page) {
                gsub(/\\&/, "")
                gsub(/\\\(dq/, "\"")
                gsub(/\\e/, "\\")
            }
            # What the example has on its machine is below the root here.
            while (match($0, /["\/:]\/(var|run)\//) && substr($0, RSTART, 1) ~ /[":]/)
                $0 = substr($0, 1, RSTART) root substr($0, RSTART + 1, RLENGTH - 2) "//" \
                    substr($0, RSTART + RLENGTH)
            print >file
        }' "$1"
}

# The judges: each prints what is wrong in the tree $1, one a line.

missing() { # WHAT PAGE: of the names read, those that are not in the file "known"
    while read -r name; do
        grep -Fqx -e "$name" "$work/known" || echo "$2: $1 $name"
    done
}

judge_examples() {
    rm -rf "$work/examples" "$work/root"
    mkdir -p "$work/root/var/log/hayate" "$work/root/run/hayate"
    for file in man/hayate.conf.5 man/hayate.8 README.md; do
        extract "$1/$file" "$work/examples/$(basename "$file")"
        for config in "$work/examples/$(basename "$file")"/*/hayate.conf; do
            test -f "$config" || {
                echo "$file: no example is marked"
                continue
            }
            "$HAYATE" check -c "$config" >"$work/output" 2>&1 || sed "s|^|$file: |" "$work/output"
        done
    done
}

judge_config() {
    cat "$1/conf/hayate.conf" >"$work/shipped.conf"
    "$HAYATE" check -c "$work/shipped.conf" >"$work/output" 2>&1 || cat "$work/output"
    # What stands there as a default is the default, of all keys.
    sed 's/^\( *\)#\([a-z]\)/\1\2/' "$1/conf/hayate.conf" >"$work/all.conf"
    : >"$work/empty.conf"
    for name in all empty; do
        "$HAYATE" config -c "$work/$name.conf" -o user=0 -o control=off 2>&1 |
            grep -v '^warning: ' >"$work/$name"
    done
    diff "$work/empty" "$work/all"
    rows schema_rows "$1/src/conf/schema.c" | grep -v -e "${tab}SCHEMA_LATER$tab" \
        -e "${tab}SCHEMA_GROUP$tab" | cut -f 1 | sed 's/.*\.//' | while read -r key; do
        grep -q "^ *$key = " "$work/all.conf" || echo "conf/hayate.conf: lacks $key"
    done
}

# The rows that are read above are those that the program has.
judge_schema() {
    rows schema_rows "$1/src/conf/schema.c" | grep -v -e "${tab}SCHEMA_LATER$tab" \
        -e "${tab}SCHEMA_GROUP$tab" | cut -f 1 | grep -vx user | LC_ALL=C sort >"$work/read"
    "$HAYATE" config -c "$work/empty.conf" 2>/dev/null | awk '
        /^}/ { group = "" }
        /^[a-z_]+ = \{$/ { group = $1 "."; next }
        group != "" && /^    [a-z_]+ = / || /^[a-z_]+ = / { print group $1 }' |
        grep -vx user | LC_ALL=C sort >"$work/printed"
    diff "$work/printed" "$work/read"
}

judge_keys() {
    page=$1/man/hayate.conf.5
    all_rows "$1" >"$work/rows"
    key_items "$page" >"$work/items"
    cut -f 1 "$work/items" >"$work/known"
    grep -v -e "${tab}SCHEMA_LATER$tab" -e "${tab}SCHEMA_GROUP$tab" "$work/rows" | cut -f 1 |
        missing 'no item for the key' hayate.conf.5
    grep -v "${tab}SCHEMA_LATER$tab" "$work/rows" | cut -f 1 >"$work/known"
    items Cm "$page" | missing 'an item for the unknown key' hayate.conf.5
    cut -f 1 "$work/rows" >"$work/known"
    words Cm "$page" | missing 'names the unknown key' hayate.conf.5
    words Cm "$page" >"$work/known"
    grep "${tab}SCHEMA_LATER$tab" "$work/rows" | cut -f 1 |
        missing 'does not name the later key' hayate.conf.5
    awk -F '\t' '
        FNR == NR { text[$1] = $2 " "; next }
        $3 != "" {
            gsub(/ +/, " ", $3)
            if (index(text[$1], "= " $3 " ") == 0)
                print "hayate.conf.5: " $1 ": does not show the default " $3
        }' "$work/items" "$work/rows"
}

judge_command() {
    page=$1/man/hayate.8
    items Cm "$page" >"$work/known"
    commands "$1" | missing 'no item for the command' hayate.8
    { commands "$1"; all_rows "$1" | cut -f 1; } >"$work/known"
    words Cm "$page" | missing 'names the unknown command or key' hayate.8
    commands "$1" >"$work/known"
    items Cm "$page" | missing 'an item for the unknown command' hayate.8

    items Fl "$page" >"$work/known"
    options "$1" | missing 'no item for the option' hayate.8
    options "$1" >"$work/known"
    words Fl "$page" | missing 'names the unknown option' hayate.8

    items Dv "$page" >"$work/known"
    signals "$1" | missing 'no item for the signal' hayate.8
    { signals "$1"; printf 'SIG%s\n' WINCH TTIN TTOU PIPE ALRM; } >"$work/known"
    items Dv "$page" | missing 'an item for the unknown signal' hayate.8

    sed -n 's/^\.It \([0-9]*\)$/\1/p' "$page" >"$work/known"
    statuses "$1" | missing 'no item for the exit status' hayate.8
    statuses "$1" >"$work/known"
    sed -n 's/^\.It \([0-9]*\)$/\1/p' "$page" | missing 'an item for the unknown exit status' hayate.8
}

judge() { # JUDGE DESCRIPTION
    found=$("$1" "$srcdir")
    test -z "$found" || printf '%s\n' "$found" | sed 's/^/# /'
    test -z "$found"
    result $? "$2"
}

# A copy of the tree in which the file is changed is found to be wrong, for that.
must_fail() { # JUDGE FILE SED-SCRIPT PATTERN
    rm -rf "$work/copy"
    mkdir "$work/copy"
    (cd "$srcdir" && tar cf - man conf README.md src/conf src/answer src/command src/master) |
        (cd "$work/copy" && tar xf -)
    chmod -R u+w "$work/copy"
    sed "$3" "$srcdir/$2" >"$work/copy/$2"
    if cmp -s "$srcdir/$2" "$work/copy/$2"; then
        found="the script changes nothing"
    else
        found=$("$1" "$work/copy")
    fi
    printf '%s\n' "$found" | grep -q -e "$4"
    status=$?
    test $status -eq 0 || printf '%s\n' "$found" | sed 's/^/# /'
    result $status "$1 fails on $2 with $3"
}

judge judge_examples 'every example passes hayate check'
must_fail judge_examples man/hayate.conf.5 's/^workers  /wrokers  /' 'unknown key "wrokers"'
must_fail judge_examples man/hayate.conf.5 '/^\.\\" example: local.conf/d' 'local.conf.*No such file'
must_fail judge_examples man/hayate.8 's/log_level = "debug"/log_level = "debugger"/' 'log_level'
must_fail judge_examples README.md 's/redirect = /redirekt = /' 'redirekt'
must_fail judge_examples README.md '/example: /d' 'no example'

judge judge_config 'the shipped config is valid and shows every key with its default'
must_fail judge_config conf/hayate.conf 's/^listen = /lsten = /' 'unknown key "lsten"'
must_fail judge_config conf/hayate.conf 's/#idle = "60s"/#idle = "61s"/' 'idle = "61s"'
must_fail judge_config conf/hayate.conf '/#backlog/d' 'lacks backlog'

judge judge_schema 'the keys of the schema are those that hayate config prints'
must_fail judge_schema src/conf/schema.c 's/"timeouts.idle"/"timeouts.sleep"/' 'timeouts.sleep'

judge judge_keys 'hayate.conf(5) has every key with its default, and no other'
must_fail judge_keys man/hayate.conf.5 '/^\.It Cm timeouts.send/d' 'no item for the key timeouts.send'
must_fail judge_keys man/hayate.conf.5 's/^\.It Cm redirect/.It Cm rewrite/' 'no item for the key redirect'
must_fail judge_keys man/hayate.conf.5 's/^\.It Cm delay/.It Cm dela/' 'the unknown key dela$'
must_fail judge_keys man/hayate.conf.5 '/^\.Cm timeouts.idle/s/idle/idel/' 'names the unknown key timeouts.idel'
must_fail judge_keys man/hayate.conf.5 's/pidfile//' 'later key pidfile'
must_fail judge_keys man/hayate.conf.5 's/= 4096"/= 512"/' 'limits.backlog: does not show the default 4096'
must_fail judge_keys src/conf/schema.c 's/"{ path = .*readyz.*/" )",/; s/text = \\"Hello\\"/text = \\"Hi\\"/' \
    'routes: does not show the default'
must_fail judge_keys src/conf/schema.c 's/{ "admin.listen", SCHEMA_LISTEN, "\[ \]"/{ "admin.bind", SCHEMA_LISTEN, "[ ]"/' \
    'no item for the key admin.bind'
must_fail judge_keys src/answer/text.c 's/\.key = "text"/.key = "words"/' 'no item for the key words'

judge judge_command 'hayate(8) has every command, option, signal and exit status, and no other'
must_fail judge_command man/hayate.8 's/^\.It Cm reopen/.It Cm rotate/' 'no item for the command reopen'
must_fail judge_command man/hayate.8 's/^\.It Cm reopen/.It Cm rotate/' 'the unknown command rotate'
must_fail judge_command man/hayate.8 '/^\.It Fl -running/d' 'no item for the option -running'
must_fail judge_command man/hayate.8 's/Fl t , Fl -test/Fl T , Fl -test/' 'no item for the option t'
must_fail judge_command man/hayate.8 '/^\.It Dv SIGUSR2/d' 'no item for the signal SIGUSR2'
must_fail judge_command man/hayate.8 's/^\.It Dv SIGHUP/.It Dv SIGHUP , SIGIO/' 'the unknown signal SIGIO'
must_fail judge_command man/hayate.8 's/^\.It 78/.It 77/' 'no item for the exit status 78'
must_fail judge_command man/hayate.8 's/^\.It 78/.It 77/' 'the unknown exit status 77'
must_fail judge_command src/command/usage.c 's/{ "json", no_argument/{ "yaml", no_argument/' 'option -yaml'
must_fail judge_command src/command/usage.c 's/{ "probe", /{ "ask", /' 'no item for the command ask'

echo "1..$number"
