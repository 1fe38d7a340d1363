#!/bin/sh
[ "$1" = borrow ] || { echo "usage: sh desk.sh ACTION"; exit 2; }
touch .lease && echo "borrowed until tonight"
