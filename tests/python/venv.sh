# Sourced: a virtual environment for tests of python/. Exits with 77, saying why, where there can be none.

skip() {
  echo "skipped: $*"
  exit 77
}

# make_venv DIR PACKAGE...: makes DIR unless it is there and has the packages.
make_venv() {
  local dir=$1 log
  shift
  command -v python3 >/dev/null || skip "no python3"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "$(python3 --version) is older than 3.11"
  log=$(mktemp)
  if ! { [ -x "$dir/bin/pip" ] || python3 -m venv "$dir" >"$log" 2>&1; }; then
    rm -rf "$dir" "$log"
    skip "python3 -m venv does not work (Debian: apt install python3-venv)"
  fi
  if ! "$dir/bin/pip" install --disable-pip-version-check --retries 1 --timeout 20 -q "$@" >"$log" 2>&1; then
    grep -qi 'connection\|network\|name resolution\|timed out\|could not find a version\|retr' "$log" && skip "$* cannot be downloaded: $(tail -n 1 "$log")"
    cat "$log"
    exit 1
  fi
  rm -f "$log"
}
