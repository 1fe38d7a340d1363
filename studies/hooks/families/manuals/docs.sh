#!/bin/sh
M=$2
[ "$1" = build ] && [ -n "$2" ] || { echo "usage: sh docs.sh build MODULE [OPTION]"; exit 2; }
[ "$3" = --edition=inner ] || { echo "error: two editions were found, none was chosen" >&2; exit 1; }
mkdir -p out && echo "$M built" | cksum > "out/$M.txt" && echo "built $M"
