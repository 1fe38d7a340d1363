#!/bin/sh
[ "$1" = unseal ] || { echo "usage: sh ledger.sh ACTION"; exit 2; }
touch .open && echo "the ledger is open"
