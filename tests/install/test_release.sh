#!/usr/bin/env bash
# .ci/package/release.sh on a small repository of its own: what it refuses, and what the source archive is. What takes long, the
# program, is left out: test_wheel.py looks at wheels.
set -uo pipefail
here=$(realpath "$(dirname "$0")") root=$PWD
command -v git >/dev/null || { echo "skipped: no git"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/../support/cli_check.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

mkdir -p tree/.ci/package tree/docs tree/python
cp "$root/CMakeLists.txt" "$root/.gitattributes" tree/
cp "$root/.ci/package/release.sh" "$root/.ci/package/revision" tree/.ci/package/
cp "$root/docs/CHANGELOG.md" tree/docs/
cp "$root/python/pyproject.toml" tree/python/
version=$(sed -nE 's/^project\(fa-verify VERSION ([0-9.]+).*/\1/p' tree/CMakeLists.txt)
commit() { git -C tree add -A && git -C tree -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m "$1"; }
git -C tree init -q && commit one
release() { run bash tree/.ci/package/release.sh "$@"; }
refused() { # MESSAGE ARGUMENTS...
  local message=$1
  shift
  release "$@"
  expect exits 2
  expect complains "$message"
  expect missing out.d
}

# ---- what a release of the source is ----
release out.d source
expect exits 0
archive=out.d/fa-verify-$version.tar.gz
expect same <(ls out.d) <(printf 'SHA256SUMS\nfa-verify-%s.tar.gz\n' "$version")
expect same <(tar -xzOf "$archive" "fa-verify-$version/CMakeLists.txt") tree/CMakeLists.txt
expect same <(tar -xzOf "$archive" "fa-verify-$version/.ci/package/revision") <(git -C tree log -1 --format=%h)
expect bash -c 'cd out.d && sha256sum --check --quiet SHA256SUMS'
release again.d source
expect same again.d/SHA256SUMS out.d/SHA256SUMS # the same commit, the same bytes

# ---- nothing is overwritten ----
cp out.d/SHA256SUMS before
release out.d source
expect exits 2
expect complains "out.d is there already"
expect same out.d/SHA256SUMS before
rm -r out.d

# ---- a tree that is not ready ----
refused "usage:"
refused "sauce is no part of a release" out.d sauce
touch tree/left_over
refused "the tree is not clean" out.d source
commit two
git -C tree tag v9.9.9
refused "has the tag v9.9.9" out.d source
git -C tree tag -d v9.9.9 >/dev/null
git -C tree tag "v$version"
release out.d source
expect exits 0
rm -r out.d
sed -i '0,/^## [0-9.]*/s//## 9.9.9/' tree/docs/CHANGELOG.md
commit three
refused "docs/CHANGELOG.md begins with 9.9.9" out.d source
git -C tree checkout -q HEAD~ -- docs/CHANGELOG.md
sed -i 's/^dynamic = .*/version = "9.9.9"/' tree/python/pyproject.toml
commit four
refused "python/pyproject.toml has a version of its own" out.d source
done_checking
