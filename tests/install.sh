#!/bin/sh
# What make install puts where, and what make uninstall leaves. Runs in the
# folder of the build; prints TAP.

unset MAKEFLAGS MFLAGS MAKELEVEL
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
number=0

result() { # STATUS DESCRIPTION
    number=$((number + 1))
    if test "$1" -eq 0; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        find "$root" -type f | sed 's/^/# /'
    fi
}

run() { # TARGET
    make -s "$1" DESTDIR="$root" >"$root.log" 2>&1 || {
        sed 's/^/# /' "$root.log"
        rm -f "$root.log"
        return 1
    }
    rm -f "$root.log"
}

installed() { # the names of the installed files
    find "$root" -type f | sed 's|.*/||' | LC_ALL=C sort | tr '\n' ' '
}

echo 1..8

run install
result $? 'make install'

case $(installed) in
'hayate hayate.8 hayate.conf hayate.conf hayate.conf.5 hayate.service ') unit=yes ;;
'hayate hayate.8 hayate.conf hayate.conf.5 ') unit=no ;;
*) unit= ;;
esac
test -n "$unit"
result $? 'installs the program, its config, its manual pages and, for systemd, unit and account'

if test "$unit" = yes; then
    unit=$(find "$root" -name hayate.service)
    program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
    test -x "$root$program" && ! grep '@[a-z]*@' "$unit"
    result $? "the unit starts the installed program"
else
    echo "ok $((number += 1)) # SKIP configured without systemd"
fi

config=$(find "$root" -path '*/hayate/hayate.conf')
test -f "$config"
result $? 'the config is in a folder hayate'

echo '# edited' >>"$config"
cp "$config" "$root/edited"
run install && cmp "$config" "$root/edited"
result $? 'make install keeps an edited config'

rm "$root/edited"
run uninstall && test "$(installed)" = 'hayate.conf '
result $? 'make uninstall leaves an edited config, and nothing else'

rm "$config"
run install && run uninstall && test -z "$(installed)"
result $? 'make uninstall leaves nothing of ours'

test ! -d "$(dirname "$config")"
result $? 'make uninstall removes the folder of the config'
