# Sourced by the scripts that run Tallystick itself, with $root the folder of `interop` and `subjects`.
#
# own_python: set $python to the Python of the Tallystick that these files belong to, or fail. That
# is the one that started the script (TALLY_PYTHON), that of the checkout, or that of the
# environment in which the package is installed.
own_python() {
  installed=
  case $root in
    */tallystick/_shipped) installed=$root/../../../../../bin/python ;;
  esac
  for python in "${TALLY_PYTHON:-}" "$root/.venv/bin/python" "$installed"; do
    test -x "$python" && return
  done
  return 1
}

# run_tally WORD...: run that Tallystick, or the one on the PATH.
run_tally() {
  if own_python; then
    "$python" -m tallystick "$@"
  elif command -v tally >/dev/null 2>&1; then
    tally "$@"
  else
    echo "there is no tally here: run \`make setup\` in $root, or put it on the PATH" >&2
    return 1
  fi
}
