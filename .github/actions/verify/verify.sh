#!/usr/bin/env bash
# What the action does: installs the program, runs a tier with annotations, writes the page and JUnit XML, and ends with
# the run's exit code. Its inputs are environment variables INPUT_*, as action.yml sets them. $FA_VERIFY_BINARY is a
# program that is there already: nothing is installed then.
set -euo pipefail

python=${INPUT_PYTHON:-python3}
folder=${INPUT_FOLDER:-fa-verify-report}
program=fa-verify

output() { # NAME VALUE
  if [ -n "${GITHUB_OUTPUT:-}" ]; then printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; fi
}

# The source of this action is the program's, two folders above .github.
install_from_source() {
  local source
  source=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
  if command -v apt-get >/dev/null; then
    local -a as_root=()
    if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
    ${as_root[@]+"${as_root[@]}"} apt-get update -q
    ${as_root[@]+"${as_root[@]}"} apt-get install -q -y --no-install-recommends g++ libopenblas-dev libcjson-dev
  fi
  "$python" -m pip install "$source/python"
}

install_program() {
  if [ -n "${FA_VERIFY_BINARY:-}" ]; then
    program=$FA_VERIFY_BINARY
    return
  fi
  echo "::group::install fa-verify"
  if [ -n "${INPUT_VERSION:-}" ]; then
    "$python" -m pip install "fa-verify==$INPUT_VERSION"
  else
    install_from_source
  fi
  echo "::endgroup::"
}

words=(run --report "$folder/report.json" --annotations github --no-progress)

# add OPTION VALUE: unless the value is empty
add() {
  if [ -n "$2" ]; then words+=("$1" "$2"); fi
}

# add_lines OPTION TEXT: once for each line that is not empty
add_lines() {
  local line
  while IFS= read -r line; do add "$1" "$line"; done <<<"$2"
}

if [ -z "${INPUT_BACKEND:-}" ]; then
  echo "::error title=fa-verify::the input backend is needed: plugin:PATH.so, exec:COMMAND or py:NAME"
  exit 2
fi
add_lines --backend "$INPUT_BACKEND"
add_lines --cases "${INPUT_CASES:-}"
add --tier "${INPUT_TIER:-}"
if [ -n "${INPUT_TIER:-}" ]; then
  add --seconds "${INPUT_SECONDS:-}"
  add --seed "${INPUT_SEED:-}"
fi
add --filter "${INPUT_FILTER:-}"
add --require "${INPUT_REQUIRE:-}"
add --waivers "${INPUT_WAIVERS:-}"
if [ -n "${INPUT_BASELINE:-}" ] && [ ! -f "$INPUT_BASELINE" ]; then
  echo "::warning title=fa-verify::there is no baseline $INPUT_BASELINE: every failure counts"
elif [ -n "${INPUT_BASELINE:-}" ]; then
  add --baseline "$INPUT_BASELINE"
  add --slower "${INPUT_SLOWER:-}"
fi

mkdir -p "$folder"
install_program
export FA_PYTHON=${FA_PYTHON:-$python}
code=0
"$program" "${words[@]}" || code=$?
output code "$code"
if [ "$code" != 2 ] && [ -f "$folder/report.json" ]; then # 2: the report that lies there is another run's
  "$program" report "$folder/report.json" --junit "$folder/report.xml" --html "$folder/report.html" || code=3
  output report "$folder/report.json"
  output junit "$folder/report.xml"
  output html "$folder/report.html"
fi
exit "$code"
