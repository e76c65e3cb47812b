#!/usr/bin/env bash
# The packages in a bare Debian system, which has nothing of a build: made by debootstrap, entered by chroot.
#   try_bare.sh deb   SUITE FA-VERIFY.deb    installs it with apt, judges by name from /, builds and judges a C plugin, removes it, looks for
#                                            what is left
#   try_bare.sh wheel SUITE FA_VERIFY.whl    in a new virtual environment, without a compiler: judges, from the shell and from Python
#   try_bare.sh source SUITE [verify|test]   a clone of this repository: ./bootstrap.sh verify, or test
# Works on a copy of the tree, which is kept in $FA_BARE (default: fa-bare in the cache folder) for the next time.
# From where packages come: FA_MIRROR and FA_COMPONENTS (for Ubuntu main,universe; default: as this machine, main), FA_PIP_INDEX.
# Exit status 77: skipped, with the reason. Each command and what it says is printed.
set -euo pipefail

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
skip() { echo "skipped: $*"; exit 77; }
[ $# -ge 2 ] || usage
what=$1 suite=$2 package=${3:-}
case $what in deb | wheel) [ -e "$package" ] || usage ;; source) ;; *) usage ;; esac
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
[ "$(id -u)" = 0 ] || skip "only root may make and enter a tree"
command -v debootstrap >/dev/null || skip "no debootstrap (apt-get install debootstrap)"
# Mounts are this script's own, and end with it.
if [ "${FA_BARE_INSIDE:-}" != yes ]; then
  unshare --mount true 2>/dev/null || skip "no mount namespaces here"
  FA_BARE_INSIDE=yes exec unshare --mount --propagation private "$0" "$@"
fi

kept=${FA_BARE:-${XDG_CACHE_HOME:-$HOME/.cache}/fa-bare}
# The first source of Debian packages of this machine, in either form of apt's lists.
first_source() { cat /etc/apt/sources.list /etc/apt/sources.list.d/*debian* 2>/dev/null | sed -nE 's/^URIs: *(\S+).*/\1/p; s/^deb +(\[[^]]*\] +)?(\S+) .*/\2/p' || true; }
mirror=${FA_MIRROR:-$(first_source | sed -n 1p)}
base=$kept/$suite tree=$kept/$suite.$what
if [ ! -e "$base/made" ]; then
  rm -rf --one-file-system "$base"
  mkdir -p "$base"
  echo "+ debootstrap --variant=minbase $suite"
  debootstrap --variant=minbase ${FA_COMPONENTS:+"--components=$FA_COMPONENTS"} "$suite" "$base" "$mirror" >"$base.log" 2>&1 || { tail -n 3 "$base.log"; rm -rf --one-file-system "$base"; skip "debootstrap could not make $suite"; }
  rm -f "$base"/var/cache/apt/archives/*.deb
  touch "$base/made"
fi
# Nothing is removed while something is mounted in it, and nothing of another file system.
clean() {
  local place
  for place in proc dev/pts dev/shm; do
    if mountpoint -q "$tree/$place" && ! umount "$tree/$place"; then
      echo "$tree is left: $place cannot be unmounted" >&2
      return
    fi
  done
  rm -rf --one-file-system "$tree" "$tree.before" "$tree.after"
}
clean
cp -a "$base" "$tree"
trap clean EXIT
cp /etc/resolv.conf "$tree/etc/resolv.conf"
mount -t proc proc "$tree/proc"
mount -t devpts devpts "$tree/dev/pts"
mount -t tmpfs tmpfs "$tree/dev/shm"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
in_tree() { # COMMAND...: in the bare system, from /, with nothing of our environment but what is exported above
  printf '+ %s\n' "$*" >&2
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=$DEBIAN_FRONTEND LC_ALL=$LC_ALL \
    chroot "$tree" "$@"
}
said() { sed -n "$1"; } # reads all of what it is given: under pipefail a reader that stops early is an error
get() { # PACKAGE...
  in_tree apt-get install -qq -y --no-install-recommends "$@" | said '/^Setting up/p'
}
files() { (cd "$tree" && find . -xdev \( -path ./proc -o -path ./dev \) -prune -o -print | sort); }
in_tree apt-get update -qq

try_deb() {
  local name=/root/${package##*/} fault
  in_tree apt-get install -qq -y --no-install-recommends libcjson1 >/dev/null # stays, so that what is left afterwards is ours alone
  cp "$package" "$tree$name"
  files >"$tree.before"
  get "$name"
  in_tree dpkg -s fa-verify | sed -n '/^Package\|^Version\|^Depends\|^Status/p'
  in_tree fa-verify --version
  in_tree fa-verify --cases causal | tail -n 3
  in_tree fa-verify list cases | said 1,4p
  in_tree dpkg -L fa-verify | grep -v 'docs/\|cases/'
  in_tree apt-get purge -qq -y fa-verify | sed -n '/^Removing\|^Purging/p'
  files >"$tree.after"
  echo "+ what is left of it"
  # apt's and dpkg's own records change, and the linker's cache
  if diff "$tree.before" "$tree.after" | grep '^[<>]' | grep -vE '\./(var/lib/(dpkg|apt)|var/cache|var/log|etc/ld.so.cache)'; then exit 1; fi
  echo "nothing"
  echo "+ once more, with a compiler"
  get "$name" gcc libc6-dev pkgconf >/dev/null
  # shellcheck disable=SC2016 # expanded in there
  for fault in 0 1; do
    in_tree sh -c 'cc -shared -fPIC -O2 $(pkg-config --cflags fa-verify) -DEXAMPLE_FAULT='"$fault"' -o /root/example.so "$(pkg-config --variable=examples fa-verify)/example_plugin.c" -lm'
    in_tree fa-verify --backend plugin:/root/example.so --case '{"dtype":"f32","seqlen_q":65,"mask":{"type":"causal"}}' || [ $? = "$fault" ]
  done
}

try_wheel() {
  local pip=(pip install -q --disable-pip-version-check --root-user-action=ignore)
  [ -z "${FA_PIP_INDEX:-}" ] || pip+=(--index-url "$FA_PIP_INDEX")
  if [ -n "${PIP_CERT:-}" ]; then # whom this machine trusts, the bare one cannot know
    cp "$PIP_CERT" "$tree/root/certificates.pem"
    pip+=(--cert /root/certificates.pem)
  fi
  get python3 python3-venv
  in_tree sh -c '! command -v cc gcc clang'
  cp "$package" "$tree/root/"
  in_tree python3 -m venv /root/venv
  in_tree "/root/venv/bin/${pip[0]}" "${pip[@]:1}" "/root/${package##*/}"
  in_tree /root/venv/bin/python -m fa_verify --cases causal | tail -n 3
  cp "$repository/python/tests/kernels.py" "$tree/root/"
  in_tree sh -c 'cd /root && venv/bin/python -c "
import fa_verify, kernels
print(fa_verify.check(kernels.attention, \"causal\", require=\"all\"))"'
}

try_source() {
  get git ca-certificates
  git clone -q --no-hardlinks "$repository" "$tree/root/fa-verify"
  in_tree /root/fa-verify/bootstrap.sh "${package:-verify}" | said '/^bootstrap:/p; /^tests:/p; /tests passed/p; /(Failed)/p'
}

case $what in
deb) try_deb ;;
wheel) try_wheel ;;
source) try_source ;;
esac
