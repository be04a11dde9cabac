#!/bin/sh
# variant.sh SOURCES DIR TARGETS [ARGUMENT...]
#
# Build the sources another way: configure them in DIR with the arguments,
# unless that is what DIR holds already, and make the targets there.
set -eu

sources=$(cd "$1" && pwd)
dir=$2
targets=$3
shift 3
make=${MAKE:-make}
unset MAKE

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# A tree that is itself configured cannot be built elsewhere: build a copy.
if test -f "$sources/config.status"; then
    (cd "$sources" && $make distdir distdir="$dir/source") >/dev/null
    sources=$dir/source
fi

cd "$dir"
printf '%s\n' "$sources" "$@" >arguments.new
if cmp -s arguments arguments.new && test -f config.status; then
    rm arguments.new
else
    "$sources/configure" --quiet "$@"
    mv arguments.new arguments
fi
for target in $targets; do
    $make "$target"
done
