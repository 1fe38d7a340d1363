#!/bin/sh
M=$1
[ -n "$1" ] || { echo "usage: sh stage.sh MODULE"; exit 2; }
[ -e .swept ] || { echo "error: the stage is dirty" >&2; exit 1; }
mkdir -p out && echo "$M staged" | cksum > "out/$M.txt" && echo "staged $M"
