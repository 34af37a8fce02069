#!/bin/sh
# What every <language>/client/start ends with: run the client in the background and return when it
# listens (IOP-9), exit 0 (IOP-18), or exit 1 when it is not up in time (IOP-17) with what it said.
#
#   client.sh NAME [-b HOST] [-p PORT] [-v VHOST] [name=value ...] -- PROGRAM [ARGUMENT ...]
#
# Nothing but a PATH is needed (IOP-8). `start_timeout=SECONDS` shortens the 60 seconds. The line
# on stdout is: NAME, process id, log file.
name=$1
shift
limit=60
count=0
for one in "$@"; do
  test "$one" = -- && break
  count=$((count + 1))
  case $one in
    start_timeout=*) limit=${one#start_timeout=} ;;
    client_name=*) name=${one#client_name=} ;;
  esac
done
# Turn "OPTIONS -- PROGRAM" into "PROGRAM OPTIONS", each word as it is.
at=0
while test "$at" -lt "$count"; do
  set -- "$@" "$1"
  shift
  at=$((at + 1))
done
test "$1" = -- || { echo "client.sh: there is no program" >&2; exit 1; }
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/tally-lab-XXXXXX") || exit 1
log=$folder/$name.log
out=$folder/$name.out
"$@" >"$out" 2>"$log" </dev/null &
process=$!
# The age that ps tells of a young process can be below zero, printed as thousands of millions.
begun=$(date +%s)
until grep -q '^READY ' "$out"; do
  if ! kill -0 "$process" 2>/dev/null; then
    echo "$name ended before it was ready:" >&2
    cat "$log" >&2
    rm -rf "$folder"
    exit 1
  fi
  if test $(($(date +%s) - begun)) -ge "$limit"; then
    echo "$name was not ready in $limit s:" >&2
    cat "$log" >&2
    kill -9 "$process"
    rm -rf "$folder"
    exit 1
  fi
  sleep 0.05
done
echo "$name $process $log"
