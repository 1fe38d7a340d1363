#!/bin/sh
M=$1
[ -n "$1" ] || { echo "usage: sh pack.sh MODULE"; exit 2; }
[ -e .lease ] || { echo "error: no lease" >&2; exit 1; }
mkdir -p out && echo "$M packed" | cksum > "out/$M.txt" && echo "packed $M"
