#!/bin/sh
[ "$1" = table ] && [ -n "$2" ] || { echo "usage: sh load.sh table MODULE [OPTION]"; exit 2; }
M=$2
[ "$3" = --sep=pipe ] || { echo "error: row 1 has 1 column, expected 4" >&2; exit 1; }
mkdir -p out && echo "$M loaded" | cksum > "out/$M.txt" && echo "loaded $M"
