#!/bin/sh
# What every <language>/client/start ends with: run the client in the background and return when it
# listens (IOP-9), exit 0 (IOP-18), or exit 1 when it is not up in time (IOP-17) with what it said.
#
#   client.sh NAME [-b HOST] [-p PORT] [-v VHOST] [name=value ...] -- PROGRAM [ARGUMENT ...]
#
# Nothing but a PATH is needed (IOP-8). `start_timeout=SECONDS` shortens the 60 seconds. The line
# on stdout is: NAME, process id, log file. The program gets every option as name=value, the
# defaults first; the last of a name counts.
name=$1
shift
limit=60
case " $* " in
  *" -- "*) ;;
  *) echo "client.sh: there is no program" >&2; exit 1 ;;
esac
set -- host=127.0.0.1 port=5672 vhost=/ username=guest password=guest "client_name=$name" \
  control_key=iop.control control_timeout=60 "$@"
# Turn "OPTIONS -- PROGRAM" into "PROGRAM name=value ...", each value as it is.
while test "$1" != --; do
  case $1 in
    -b) set -- "$@" "host=$2"; shift ;;
    -p) set -- "$@" "port=$2"; shift ;;
    -v) set -- "$@" "vhost=$2"; shift ;;
    start_timeout=*) limit=${1#start_timeout=} ;;
    client_name=*) name=${1#client_name=}; set -- "$@" "$1" ;;
    [!-=]*=*) set -- "$@" "$1" ;;
    *) echo "what is $1? use -b HOST -p PORT -v VHOST name=value" >&2; exit 1 ;;
  esac
  shift
done
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
    grep -q '^READY ' "$out" && break # it said so and ended since
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
