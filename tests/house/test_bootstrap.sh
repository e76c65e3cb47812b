#!/usr/bin/env bash
# bootstrap.sh on a machine of stubs: what it asks apt for, when it may not, what it passes on. Runs a copy in a
# folder with spaces in its name, from another folder, and sees nothing of the real toolchain.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 n=0

expect() { # WHAT CONDITION...
  local what=$1
  shift
  n=$((n + 1))
  if ! "$@"; then
    failed=$((failed + 1))
    printf 'failed: %s: %s\n--- output\n%s\n--- calls\n%s\n' "$scene" "$what" "$(cat "$work/out")" "$(cat "$state/calls")"
  fi
}
says() { grep -qF -- "$1" "$work/out"; }
called() { grep -q -- "$1" "$state/calls"; }
never_called() { ! called "$1"; }
exits() { [ "$rc" = "$1" ]; }

stub() { # NAME, body on stdin
  { echo '#!/bin/bash' && echo "echo \"\${0##*/} \$*\" >>'$state/calls'" && cat; } >"$bin/$1"
  chmod +x "$bin/$1"
}

# A fresh machine: apt, no toolchain. Installing a package makes its commands and files appear.
fresh_machine() { # SCENE
  scene=$1
  rm -rf "$work/m" && mkdir -p "$work/m/bin" "$work/m/state" "$work/m/my checkout/cases"
  bin=$work/m/bin state=$work/m/state checkout="$work/m/my checkout"
  touch "$state/calls"
  cp "$root/bootstrap.sh" "$checkout/"
  local tool
  for tool in bash cat dirname env find grep head mkdir mktemp nproc rm sed sort tail tr touch cp chmod; do
    ln -s "$(command -v $tool)" "$bin/$tool"
  done
  echo 0 >"$state/uid"
  stub id <<<"cat '$state/uid'"
  stub sleep <<<true
  stub sudo <<<"[ -e '$state/sudo' ] || exit 1; shift; \"\$@\""
  stub apt-get <<EOF
if [ -e '$state/locked' ]; then rm '$state/locked'; echo 'E: Could not get lock /var/lib/dpkg/lock-frontend'; exit 100; fi
[ ! -e '$state/offline' ] || exit 100
for a; do case \$a in
gcc) cp '$state/cc' '$bin/gcc' ;; g++) cp '$state/cc' '$bin/g++' ;;
cmake) cp '$state/cmake' '$bin/cmake'; cp '$state/ctest' '$bin/ctest' ;;
ninja-build) cp '$state/cc' '$bin/ninja' ;;
clang) cp '$state/cc' '$bin/clang' ;;
lib*) touch '$state/'\$a ;;
esac; done
EOF
  stub cc <<EOF
case "\$*" in
*-print-multiarch*) echo arch-linux-gnu ;;
*-print-file-name=libopenblas.so*) [ -e '$state/libopenblas-dev' ] && echo /lib/libopenblas.so || echo libopenblas.so ;;
*-print-file-name=libcjson.so*) [ -e '$state/libcjson-dev' ] && echo /lib/libcjson.so || echo libcjson.so ;;
*-print-file-name*) echo none ;;
*-E*) text=\$(cat); case \$text in
  *stdio*) [ -e '$state/libc6-dev' ] ;; *cblas*) [ -e '$state/libopenblas-dev' ] ;; *cJSON*) [ -e '$state/libcjson-dev' ] ;; esac ;;
esac
EOF
  mv "$bin/cc" "$state/cc"
  echo 3.25.1 >"$state/cmake_version"
  stub cmake <<EOF
case "\$*" in
--version) echo "cmake version \$(cat '$state/cmake_version')" ;;
*-S*) mkdir -p build; echo "CMAKE_HOME_DIRECTORY:INTERNAL=\$PWD" >build/CMakeCache.txt ;;
*--build*) cp '$state/fa-verify' build/fa-verify ;;
esac
EOF
  mv "$bin/cmake" "$state/cmake"
  echo 0 >"$state/verdict"
  stub fa-verify <<<"exit \$(cat '$state/verdict')"
  mv "$bin/fa-verify" "$state/fa-verify"
  echo 0 >"$state/tests"
  stub ctest <<<"exit \$(cat '$state/tests')"
  mv "$bin/ctest" "$state/ctest"
}
ready_machine() { # SCENE: everything is installed already
  fresh_machine "$1"
  cp "$state/cc" "$bin/gcc" && cp "$state/cc" "$bin/g++" && cp "$state/cc" "$bin/ninja"
  cp "$state/cmake" "$bin/cmake" && cp "$state/ctest" "$bin/ctest"
  touch "$state/libopenblas-dev" "$state/libcjson-dev" "$state/libc6-dev"
}
bootstrap() {
  rc=0
  (cd / && env -i PATH="$bin" HOME="$work" TMPDIR="$work" FA_NEED="${need:-}" FA_CONFIGURE="${configure:-}" "$checkout/bootstrap.sh" "$@") >"$work/out" 2>&1 || rc=$?
}

line='apt-get install -y --no-install-recommends gcc libc6-dev g++ cmake ninja-build libopenblas-dev libcjson-dev'

fresh_machine "wrong usage"
for arguments in "" "help" "verify test"; do
  # shellcheck disable=SC2086 # split on purpose
  bootstrap $arguments
  expect "exit 2" exits 2
  expect "usage" says 'usage: ./bootstrap.sh verify'
  expect "nothing done" [ ! -s "$state/calls" ]
done

fresh_machine "fresh machine, root"
bootstrap verify
expect "exit 0" exits 0
expect "asks apt for all" called 'apt-get .*install.* gcc libc6-dev g++ cmake ninja-build libopenblas-dev libcjson-dev$'
expect "configures for Ninja" called 'cmake .*-G Ninja'
expect "runs the cases" called 'fa-verify --cases cases/causal.json'
expect "no tests" never_called ctest
expect "without a GPU goes on" says 'going on with the host backend'

fresh_machine "fresh machine, nobody in particular"
echo 1000 >"$state/uid"
bootstrap verify
expect "exit 3" exits 3
expect "names the line" says "$line"
expect "apt untouched" never_called apt-get

fresh_machine "fresh machine, sudo without password"
echo 1000 >"$state/uid" && touch "$state/sudo"
bootstrap verify
expect "exit 0" exits 0
expect "through sudo" called 'sudo -n env DEBIAN_FRONTEND=noninteractive apt-get'

fresh_machine "fresh machine, no apt"
rm "$bin/apt-get"
bootstrap verify
expect "exit 3" exits 3
expect "names what is missing" says 'gcc libc6-dev g++ cmake ninja-build libopenblas-dev libcjson-dev'

fresh_machine "fresh machine, no network"
touch "$state/offline"
bootstrap verify
expect "exit 3" exits 3
expect "names the line" says "$line"

fresh_machine "another apt at work"
touch "$state/locked"
bootstrap verify
expect "waits, then exit 0" exits 0
expect "says so" says 'waiting for another apt'

ready_machine "all there"
bootstrap test
expect "exit 0" exits 0
expect "apt untouched" never_called apt-get
expect "tests run" called 'ctest --test-dir build --output-on-failure'
bootstrap test
expect "again: exit 0" exits 0

need=clang
ready_machine "an extra command"
bootstrap verify
expect "installs that alone" called 'apt-get .*install.* --no-install-recommends clang$'
need=

configure='-DFA_CUDA=OFF -DFA_WERROR=OFF'
ready_machine "options for CMake"
bootstrap verify
expect "passes them on" called 'cmake .*-DFA_CUDA=OFF -DFA_WERROR=OFF$'
configure=

ready_machine "a moved checkout"
mkdir -p "$checkout/build/CMakeFiles" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere" >"$checkout/build/CMakeCache.txt"
bootstrap verify
expect "configures anew" says 'configured for another folder'
expect "exit 0" exits 0

ready_machine "failing cases"
echo 1 >"$state/verdict"
bootstrap verify
expect "verify passes the exit code on" exits 1
bootstrap test
expect "test does too" exits 1
expect "and still runs the tests" called ctest
echo 0 >"$state/verdict" && echo 8 >"$state/tests"
bootstrap test
expect "failing tests fail" exits 1

ready_machine "old cmake"
echo 3.16.3 >"$state/cmake_version"
bootstrap verify
expect "exit 3" exits 3
expect "says which is needed" says 'cmake 3.16.3 is too old: 3.22'

ready_machine "no ninja, but make"
rm "$bin/ninja" && cp "$state/cc" "$bin/make"
bootstrap verify
expect "exit 0" exits 0
expect "leaves the generator to cmake" never_called 'cmake .*-G'

printf '%d checks, %d failed\n' "$n" "$failed"
[ "$failed" = 0 ]
