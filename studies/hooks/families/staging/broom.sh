#!/bin/sh
[ "$1" = deep ] || { echo "usage: sh broom.sh ACTION"; exit 2; }
touch .swept && echo "swept"
