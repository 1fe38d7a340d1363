#!/bin/sh
M=$2
[ "$1" = migrate ] && [ -n "$2" ] || { echo "usage: sh db.sh migrate MODULE"; exit 2; }
[ -e .open ] || { echo "error: the ledger is sealed" >&2; exit 1; }
mkdir -p out && echo "$M migrated" | cksum > "out/$M.txt" && echo "migrated $M"
