#!/usr/bin/env bash
# fuzz/corpus.py: what is added to an archive can be extracted, the same inputs make the same bytes, and a rejected
# command changes nothing.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
python=$(python3 -c 'import sys; print(sys.executable)') # a version manager's stand-in takes ten times as long to start
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failed=0
fail() { echo "failed: $*" >&2; failed=1; }

# A copy of the tool, with its own targets.
mkdir -p "$work/fuzz/targets" "$work/in" "$work/other"
cp -- "$root/fuzz/corpus.py" "$work/fuzz/"
: >"$work/fuzz/targets/toy_fuzzer.c"
: >"$work/fuzz/tin_fuzzer.c"
toy=$work/fuzz/corpus/toy.zip
corpus() { "$python" "$work/fuzz/corpus.py" "$@"; }
hash_of() { sha1sum <"$1" | cut -d' ' -f1; }
does() { corpus "$@" >"$work/out" 2>&1 || fail "$*: exit $?: $(cat "$work/out")"; }
# refuses REGEX ARGUMENT...: exit 2, a matching message, and every archive unchanged
refuses() {
  local regex=$1 code=0 before
  shift
  before=$(cksum "$work"/fuzz/corpus/*)
  corpus "$@" >"$work/out" 2>&1 || code=$?
  if [ $code != 2 ]; then fail "$*: exit $code, not 2: $(cat "$work/out")"; fi
  if ! grep -qE -- "$regex" "$work/out"; then fail "$*: no line like '$regex': $(cat "$work/out")"; fi
  if [ "$before" != "$(cksum "$work"/fuzz/corpus/*)" ]; then fail "$*: refused, yet something changed"; fi
}
holds() { # NAME...: all that is in toy's archive
  local got
  got=$(corpus list toy | tr '\n' ' ')
  if [ "$got" != "$*${1:+ }" ]; then fail "toy holds '$got', not '$*'"; fi
}

echo first >"$work/in/b"
: >"$work/in/a"
printf 'bytes \0\xff\n' >"$work/in/C-1.json"
does add toy "$work/in/b"
does add toy "$work/in/a" "$work/in/C-1.json"
holds C-1.json a b
does extract toy "$work/out.d"
if ! diff -r "$work/in" "$work/out.d"; then fail "what comes out is not what went in"; fi

# The same bytes in any order, at any time, with any umask, and after a detour.
cp -- "$toy" "$work/before.zip"
same() { cmp -- "$work/before.zip" "$toy" || fail "$*: other bytes for the same inputs"; }
rm "$toy"
touch -d 2001-02-03 "$work/in/a"
(umask 077 && corpus add toy "$work/in/C-1.json" "$work/in/a" "$work/in/b" >/dev/null) || fail "cannot be made again"
same 'another order'
echo more >"$work/other/d"
does add toy "$work/other/d"
if cmp -s -- "$work/before.zip" "$toy"; then fail "an input more makes no other bytes"; fi
does remove toy d
same 'added and removed'
"$python" - "$toy" <<'CHECK' || fail "an archive does not look as it should"
import sys, zipfile
entries = zipfile.ZipFile(sys.argv[1]).infolist()
names = [e.filename for e in entries]
assert len(names) == 3 and names == sorted(names), names
for e in entries:
    assert e.date_time == (1980, 1, 1, 0, 0, 0) and e.compress_type == zipfile.ZIP_DEFLATED, e
CHECK

# Duplicates by name, by content, within one call; if one of several files is rejected, none is
# added.
echo other >"$work/other/b"
cp -- "$work/in/b" "$work/other/b_again"
echo fresh >"$work/other/fresh"
refuses 'other/b: toy has an input b; remove' add toy "$work/other/b"
refuses 'other/b_again: toy has the same bytes as b;' add toy "$work/other/b_again"
refuses 'has an input fresh' add toy "$work/other/fresh" "$work/other/fresh"
cp -- "$work/other/fresh" "$work/other/fresh_again"
refuses 'fresh_again: toy has the same bytes as fresh;' add toy "$work/other/fresh" "$work/other/fresh_again"
refuses 'other/b: toy has' add toy "$work/other/fresh" "$work/other/b"
holds C-1.json a b

# Invalid names, sizes, files and targets.
echo odd >"$work/other/.hidden"
echo odd >"$work/other/a name"
truncate -s 1048577 "$work/other/long"
refuses "other/.hidden: the name '.hidden' cannot be an input's: 1 to 200 letters" add toy "$work/other/.hidden"
refuses "a name: the name 'a name' cannot be" add toy "$work/other/a name"
refuses 'other/long: 1048577 bytes; an input has at most 1048576' add toy "$work/other/long"
refuses 'other/nowhere is no file' add toy "$work/other/nowhere"
refuses 'other is no file' add toy "$work/other"
refuses 'there is no target top; those are: tin, toy' add top "$work/other/fresh"
refuses 'there is no target ../toy' list ../toy
refuses 'tin has no inputs yet' list tin
refuses 'toy has no input z; .*list toy' remove toy z
refuses 'toy has no input a;' remove toy a a
refuses 'would have no input left' remove toy C-1.json a b
refuses 'in is not empty' extract toy "$work/in"
for arguments in '' list 'list toy more' 'add toy' 'remove toy' 'extract toy' 'merge toy a b' 'drop toy'; do
  # shellcheck disable=SC2086 # words
  refuses '^usage: corpus.py' $arguments
done

# New inputs of a grown corpus are added under their hash; an input that is there under another name
# is not new.
mkdir -p "$work/grown/folder"
cp -- "$work/in/b" "$work/grown/x"
echo grown >"$work/grown/y"
echo grown >"$work/grown/z"
echo hidden >"$work/grown/.z"
grown=$(hash_of "$work/grown/y")
refuses 'grown/folder is no file' merge toy "$work/grown"
rmdir "$work/grown/folder"
does merge toy "$work/grown"
if ! grep -qx 'toy: 1 added, 4 in .*toy.zip' "$work/out"; then fail "merge: $(cat "$work/out")"; fi
# shellcheck disable=SC2046 # names
holds $(printf '%s\n' C-1.json a b "$grown" | LC_ALL=C sort)
does remove toy "$grown"
same 'merged and removed'
echo stranger >"$work/other/$grown"
does add toy "$work/other/$grown"
refuses "grown/y: toy has other bytes under the name $grown" merge toy "$work/grown"
does remove toy "$grown"
mkdir "$work/none"
refuses 'none holds no input, and tin has none yet' merge tin "$work/none"
does merge tin "$work/grown"
if [ "$(corpus list tin | wc -l)" != 2 ]; then fail "a new target's archive holds: $(corpus list tin)"; fi

# Invalid archives, or not ours. breaks WHAT, python on stdin that makes "path" from the valid archive "data"
breaks() {
  { echo 'import sys, warnings, zipfile; path = sys.argv[2]; data = open(sys.argv[1], "rb").read(); warnings.simplefilter("ignore")' && cat; } |
    "$python" - "$work/before.zip" "$toy"
  refuses "$1" list toy
  refuses "$1" add toy "$work/other/fresh"
  refuses "$1" extract toy "$work/broken.d"
  if [ -e "$work/broken.d" ]; then fail "$1: something was unpacked: $(ls -- "$work/broken.d")"; fi
}
breaks 'toy.zip cannot be read as a zip archive' <<<'open(path, "wb").write(data[:-30])'
breaks 'toy.zip cannot be read as a zip archive' <<<'open(path, "wb").write(b"no archive")'
# A directory of the archive that would start before the file does.
breaks 'toy.zip cannot be read as a zip archive' <<<'open(path, "wb").write(data[:-10] + bytes([255, 255, 255, 15]) + data[-6:])'
# The checksum of b, the last entry, in the directory at the archive's end.
breaks "Bad CRC-32 for file 'b'" <<<'k = data.rindex(b"PK\1\2") + 16; open(path, "wb").write(data[:k] + bytes([data[k] ^ 1]) + data[k + 1:])'
breaks 'is encrypted' <<<'open(path, "wb").write(data.replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1").replace(b"PK\3\4\x14\0\0", b"PK\3\4\x14\0\1"))'
breaks "the name '../b' cannot be" <<<'zipfile.ZipFile(path, "w").writestr("../b", "out")'
breaks "the name 'folder/' cannot be" <<<'zipfile.ZipFile(path, "w").writestr("folder/", "")'
breaks 'toy.zip: b is in it twice' <<<'z = zipfile.ZipFile(path, "w"); z.writestr("b", "1"); z.writestr("b", "2"); z.close()'
breaks 'toy.zip: zeros: 1048577 bytes; an input has at most' <<<'zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED).writestr("zeros", bytes(1048577))'

# A rewrite that cannot finish leaves the old archive and nothing beside it.
cp -- "$work/before.zip" "$toy"
code=0
"$python" - "$work/fuzz" "$work/other/fresh" >"$work/out" 2>&1 <<'FULL' || code=$?
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import corpus
def full(file, inputs):
    file.write(b"half")
    raise OSError("no space left")
corpus.write_entries = full
sys.exit(corpus.main(["add", "toy", sys.argv[2]]))
FULL
if [ $code != 2 ] || ! grep -q 'no space left' "$work/out"; then fail "a full disk: exit $code: $(cat "$work/out")"; fi
same 'a full disk'
if [ "$(ls -- "$work/fuzz/corpus")" != $'tin.zip\ntoy.zip' ]; then fail "beside the archives: $(ls -- "$work/fuzz/corpus")"; fi

# The fuzz targets' own archives pass the same checks.
for archive in "$root"/fuzz/corpus/*.zip; do
  name=$(basename -- "$archive" .zip)
  if [ "$("$python" "$root/fuzz/corpus.py" list "$name" | wc -l)" -lt 1 ]; then fail "$name: its archive cannot be listed"; fi
done
exit $failed
