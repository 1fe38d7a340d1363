#!/bin/sh
M=$2
[ "$1" = send ] && [ -n "$2" ] || { echo "usage: sh ship.sh send MODULE [OPTION VALUE]"; exit 2; }
[ "$3 $4" = "--window night" ] || { echo "error: the gate is closed" >&2; exit 1; }
mkdir -p out && echo "$M sent" | cksum > "out/$M.txt" && echo "sent $M"
