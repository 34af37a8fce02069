# Sourced by each subject's `start`: what it takes to build once and share the result.
#
# Rule: a build goes into a cache folder named by the hash of its sources, wherever they stand: a
# checkout and an installed package share it, and nothing is written beside the sources, which may be
# read-only. It is made beside that folder and renamed into place, under a lock, so a half-made build is never run and two starts
# never build at once. Talk goes to stderr; stdout belongs to the protocol.

# A start may run without any environment but a PATH (IOP-8): the home is that of the user then.
HOME=${HOME:-$(eval echo "~$(id -un)")}
export HOME

# need TOOL WHAT: when a tool is not here, end with exit code 3, and say on the last line what it needs.
need() {
  command -v "$1" >/dev/null 2>&1 && return
  echo "needs $2: \`$1\` is not on the PATH" >&2
  exit 3
}

# again COMMAND...: run it, and run it again with back-off when it fails (registries get busy).
again() {
  for pause in 5 15 45 90; do
    "$@" >&2 && return
    echo "\`$1\` failed; trying again in ${pause}s" >&2
    sleep "$pause"
  done
  "$@" >&2
}

hash_text() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum; else shasum -a 256; fi | cut -c1-64
}

# build_once FILE...: set $built to the folder of this build, calling `build FOLDER` if it is new.
build_once() {
  sum=$(for file in "$@"; do echo "${file##*/}"; cat "$file"; done | hash_text | cut -c1-16)
  cache="${XDG_CACHE_HOME:-$HOME/.cache}/tallystick/subjects"
  built="$cache/$name-$sum"
  test -d "$built" && return
  mkdir -p "$cache"
  exec 9>"$built.lock"
  if command -v flock >/dev/null 2>&1; then flock 9; fi
  if ! test -d "$built"; then
    echo "building (once) into $built" >&2
    began=$(date +%s)
    fresh=$(mktemp -d "$built.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    build "$fresh" >&2 || { echo "the build failed" >&2; exit 1; }
    chmod 755 "$fresh"
    mv "$fresh" "$built"
    trap - EXIT
    echo "built in $(($(date +%s) - began)) s" >&2
  fi
  exec 9>&-
}
