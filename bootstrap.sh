#!/usr/bin/env bash
# From a fresh Debian or Ubuntu machine to a verdict: installs what is missing, builds, runs. Can be repeated;
# works from any folder. Needs no GPU, and no network when nothing is missing.
# Exit codes: those of fa-verify, and 2 for wrong usage, 3 when something missing could not be installed.
set -euo pipefail

readonly min_cmake=3.22

usage() {
  cat >&2 <<EOF
usage: ./bootstrap.sh verify   install what is missing, build into build/, run cases/causal.json
       ./bootstrap.sh test     the same, then every test
FA_NEED="clang ..." names further commands to install (Debian package names), FA_CONFIGURE="-DFA_CUDA=OFF ..." options for CMake.
EOF
  exit 2
}

say() { printf 'bootstrap: %s\n' "$*"; }
give_up() {
  printf 'bootstrap: %s\n' "$@" >&2
  exit 3
}

have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least HAVE NEEDED
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The probes ask for what CMake will look for, not for packages: a toolchain from elsewhere is as good.
compiler() {
  local name
  for name in "${CC:-cc}" gcc clang; do
    if have "$name"; then
      printf '%s\n' "$name"
      return
    fi
  done
  return 1
}
have_cxx() { have "${CXX:-c++}" || have g++ || have clang++; }
multiarch() { "$(compiler)" -print-multiarch 2>/dev/null || true; }
have_header() { # NAME [-I...]
  local name=$1
  shift
  printf '#include <%s>\n' "$name" | "$(compiler)" -E -x c "$@" - >/dev/null 2>&1
}
have_library() { # NAME: the compiler prints a path when it finds the file, else the bare name
  local cc suffix path
  cc=$(compiler)
  for suffix in so a; do
    path=$("$cc" -print-file-name="lib$1.$suffix" 2>/dev/null || true)
    case $path in */*) return 0 ;; esac
  done
  return 1
}
have_openblas() {
  local where
  where="/usr/include/$(multiarch)"
  have_library openblas && have_header cblas.h -I"$where/openblas-pthread" -I"$where/openblas-serial" -I/usr/include/openblas
}

missing_packages() {
  compiler >/dev/null && have_header stdio.h || echo gcc libc6-dev
  have_cxx || echo g++
  have cmake || echo cmake
  have ninja || have make || echo ninja-build
  if compiler >/dev/null; then
    have_openblas || echo libopenblas-dev
    have_header cjson/cJSON.h && have_library cjson || echo libcjson-dev
  else
    echo libopenblas-dev libcjson-dev
  fi
  local extra
  for extra in ${FA_NEED:-}; do
    have "$extra" || echo "$extra"
  done
}

# Runs apt-get, waiting for another apt or dpkg (unattended upgrades) for up to five minutes.
apt() {
  local log tries=60 rc
  log=$(mktemp)
  while :; do
    rc=0
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 || rc=$?
    if [ $rc = 0 ] || [ $((tries -= 1)) -le 0 ] || ! grep -q 'Could not get lock\|Unable to lock' "$log"; then break; fi
    [ $tries = 59 ] && say "waiting for another apt to finish"
    sleep 5
  done
  if [ $rc != 0 ]; then tail -n 20 "$log" >&2; fi
  rm -f "$log"
  return $rc
}

# The lists carry the archive's dates; the folder beside them says when they were fetched.
lists_are_fresh() {
  [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -print -quit 2>/dev/null)" ] &&
    [ -n "$(find /var/lib/apt/lists/partial -maxdepth 0 -mtime -2 2>/dev/null)" ]
}

install_packages() { # PACKAGE...
  local line="apt-get install -y --no-install-recommends $*" updated=no
  have apt-get || give_up "missing: $*" \
    "these are Debian package names and this machine has no apt-get: install their like, then run this again"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    as_root=(sudo -n)
    if ! have sudo || ! sudo -n true >/dev/null 2>&1; then
      give_up "missing, and this user may not install it. As root, run:" "  apt-get update && $line" "then run this again"
    fi
  fi
  say "installing $*"
  if ! lists_are_fresh; then
    apt update || say "apt-get update failed; trying with the package lists that are here"
    updated=yes
  fi
  apt install -y --no-install-recommends "$@" && return
  if [ $updated = no ] && apt update && apt install -y --no-install-recommends "$@"; then return; fi
  give_up "could not install: $*" "the line that failed, as root:" "  apt-get update && $line"
}

ensure_tools() {
  local -a missing
  mapfile -t missing < <(missing_packages | tr ' ' '\n')
  if [ ${#missing[@]} -gt 0 ]; then
    install_packages "${missing[@]}"
    mapfile -t missing < <(missing_packages | tr ' ' '\n')
    [ ${#missing[@]} = 0 ] || give_up "installed, yet still not found: ${missing[*]}"
  fi
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  version_at_least "$version" $min_cmake ||
    give_up "cmake $version is too old: $min_cmake or later is needed (Debian 12, Ubuntu 22.04, or pip install cmake)"
}

# The commands' output is read whole before it is searched: under pipefail a reader that stops early is an error.
describe_machine() {
  local toolkit="no CUDA toolkit" gpu="" nvcc=nvcc
  have nvcc || nvcc=/usr/local/cuda/bin/nvcc
  if have "$nvcc"; then toolkit="CUDA toolkit $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"; fi
  if have nvidia-smi; then gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed -n 1p) || gpu=""; fi
  if [ -n "$gpu" ]; then
    say "$toolkit, $gpu"
  else
    say "$toolkit, no GPU: going on with the host backend"
  fi
}

build() { # TARGET...
  local -a generator=() options=()
  local log
  # A checkout that was moved or copied keeps a cache that names the old place.
  if [ -e build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/CMakeCache.txt; then
    say "build/ was configured for another folder: configuring anew"
    rm -rf build/CMakeCache.txt build/CMakeFiles
  fi
  if [ ! -e build/CMakeCache.txt ] && have ninja; then generator=(-G Ninja); fi
  read -ra options <<<"${FA_CONFIGURE:-}"
  log=$(mktemp)
  if ! cmake -S . -B build ${generator[@]+"${generator[@]}"} -DCMAKE_BUILD_TYPE=Release ${options[@]+"${options[@]}"} >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    give_up "cmake could not configure build/"
  fi
  rm -f "$log"
  cmake --build build --parallel "$(nproc)" --target "$@" || give_up "the build failed"
}

main() {
  local rc=0
  [ $# = 1 ] || usage
  case $1 in verify | test) ;; *) usage ;; esac
  unset CDPATH
  cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
  ensure_tools
  describe_machine
  if [ "$1" = test ]; then build all; else build fa-verify; fi
  build/fa-verify --cases cases/causal.json || rc=$?
  if [ "$1" = test ]; then
    ctest --test-dir build --output-on-failure --parallel "${CTEST_PARALLEL_LEVEL:-$(nproc)}" || rc=$((rc ? rc : 1))
  fi
  exit $rc
}

main "$@"
