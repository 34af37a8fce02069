#!/bin/sh
# What every <language>/client/start ends with: run the client in the background and return when it
# listens (IOP-9), exit 0 (IOP-18), or exit 1 when it is not up in time (IOP-17) with what it said.
#
#   client.sh NAME [-b HOST] [-p PORT] [-v VHOST] [name=value ...] -- PROGRAM [ARGUMENT ...]
#
# Nothing but a PATH is needed (IOP-8). `start_timeout=SECONDS` shortens the 60 seconds. The line
# on stdout is: NAME, process id, log file. The program gets every option as name=value, the defaults
# first, of which the last of a name counts; then ready-made: instance, url, capabilities, private_key.
# The capabilities are NAME/client/manifest.json, `runtime` and `library_version` of the environment, and
# the options given here. `query` of the environment ends the url.
name=$1
shift
limit=60
pairs=0
case " $* " in
  *" -- "*) ;;
  *) echo "client.sh: there is no program" >&2; exit 1 ;;
esac
here=$(cd "$(dirname "$0")" && pwd) || exit 1
about="{\"language\": \"$name\"}"
test -f "$here/$name/client/manifest.json" && about=$(tr '\n' ' ' <"$here/$name/client/manifest.json")
platform=$(uname -s | tr '[:upper:]' '[:lower:]')
export about platform

# words PAIRS WORD...: make of the last so many, name=value each, what a program gets: a line for each.
words() {
  LC_ALL=C awk 'BEGIN {
    for (at = 1; at < 256; at++) {
      byte = sprintf("%c", at)
      percent[byte] = byte ~ /[A-Za-z0-9._~-]/ ? byte : sprintf("%%%02X", at)
      json[byte] = at < 32 ? sprintf("\\u%04x", at) : byte ~ /["\\]/ ? "\\" byte : byte
    }
    for (at = ARGC - ARGV[1]; at < ARGC; at++) {
      cut = index(ARGV[at], "=")
      if (!((name = substr(ARGV[at], 1, cut - 1)) in given)) names[++count] = name
      given[name] = substr(ARGV[at], cut + 1)
    }
    if (given["port"] !~ /^[0-9]+$/ || given["host"] !~ /^[A-Za-z0-9._:-]+$/) {
      print given["host"] " port " given["port"] " is not the address of a broker" >"/dev/stderr"
      exit 1
    }
    host = given["host"] ~ /:/ ? "[" given["host"] "]" : given["host"]
    who = spell(given["username"], percent) ":" spell(given["password"], percent)
    place = host ":" given["port"] "/" spell(given["vhost"], percent)
    print "url=amqp://" who "@" place ENVIRON["query"]
    for (at = 1; at <= count; at++)
      if (names[at] != "password" && names[at] != "tests")
        pairs = pairs (pairs ? ", " : "") text(names[at]) ": " text(given[names[at]])
    tests = given["tests"]
    gsub(/ /, "\", \"", tests)
    about = ENVIRON["about"]
    sub(/[ \n]*}[ \n]*$/, "", about)
    split("runtime library_version platform", words, " ")
    for (at = 1; at <= 3; at++)
      if (ENVIRON[words[at]] != "") about = about ", " text(words[at]) ": " text(ENVIRON[words[at]])
    print "capabilities=" about ", \"protocol\": 4, \"tests\": [\"" tests "\"], \"given\": {" pairs "}}"
    print "private_key=" given["control_key"] "." given["client_name"]
  }
  function spell(value, by,   at, out) {
    for (at = 1; at <= length(value); at++) out = out by[substr(value, at, 1)]
    return out
  }
  function text(value) { return "\"" spell(value, json) "\"" }' "$@"
}

set -- host=127.0.0.1 port=5672 vhost=/ username=guest password=guest "client_name=$name" \
  control_key=iop.control control_timeout=60 \
  "tests=TC1_DummyRun TC2_BasicP2P TC3_BasicPubSub TC4_P2PMessageSize TC5_PubSubMessageSize Circuit Envelope FieldTable" \
  "$@"
# Turn "OPTIONS -- PROGRAM" into "PROGRAM name=value ...", each value as it is.
while test "$1" != --; do
  pairs=$((pairs + 1))
  case $1 in
    -b) set -- "$@" "host=$2"; shift ;;
    -p) set -- "$@" "port=$2"; shift ;;
    -v) set -- "$@" "vhost=$2"; shift ;;
    start_timeout=*) limit=${1#start_timeout=} pairs=$((pairs - 1)) ;;
    client_name=*) name=${1#client_name=}; set -- "$@" "$1" ;;
    instance=* | url=* | capabilities=* | private_key=*)
      echo "${1%%=*} is made here; use -b HOST -p PORT -v VHOST username= password=" >&2; exit 1 ;;
    [!-=]*=*) set -- "$@" "$1" ;;
    *) echo "what is $1? use -b HOST -p PORT -v VHOST name=value" >&2; exit 1 ;;
  esac
  shift
done
shift
ready=$(words "$pairs" "$@") || exit 1
set -- "$@" "instance=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')"
while IFS= read -r word; do
  set -- "$@" "$word"
done <<READY
$ready
READY
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
