#!/bin/sh
# What every <broker>/broker/{start,stop} does: `tally broker VERB NAME`, exit 0 done, else 1.
#
# Nothing but a PATH is needed (IOP-8). The 60 seconds are those of the broker; the first start
# fetches it before they begin. Options (--fresh, --port N, --limit S, --json) are passed on.
verb=$1 name=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
. "$root/subjects/own.sh"
run_tally broker "$verb" "$name" --limit 60 "$@" || exit 1
