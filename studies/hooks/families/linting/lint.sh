#!/bin/sh
[ "$1" = scan ] && [ -n "$2" ] || { echo "usage: sh lint.sh scan NAME"; exit 2; }
M=${2#@}
[ "$M" != "$2" ] || { echo "error: the name is not qualified" >&2; exit 1; }
mkdir -p out && echo "$M scanned" | cksum > "out/$M.txt" && echo "scanned $M"
