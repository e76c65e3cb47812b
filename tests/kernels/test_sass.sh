#!/usr/bin/env bash
# test_sass.sh CUBIN_DIR: the machine code of the sm_90a kernels has the instructions that it should have (wgmma, bulk
# copies, moved registers) and no local memory. Needs cuobjdump (CUOBJDUMP names another); first shows that the check
# itself can fail, on made-up code.
set -u
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
failed=0

# check DISASSEMBLY: prints what is wrong, one per line
check() {
  awk '
    function finish(  i) {
      if (name == "") return
      # those of f32 copy through registers, on both ways
      for (i in wanted) if (!seen[wanted[i]] && !(name ~ /hopper_tf32/ && wanted[i] ~ /^UTM/)) print name ": no " wanted[i]
      if (seen["LDL"] || seen["STL"]) print name ": local memory"
      if (early) print name ": waits for O before the softmax"
      if (looped) print name ": a copy in a loop over whoever is active"
      kernels++
    }
    BEGIN { split("HGMMA UTMALDG UTMASTG USETMAXREG SYNCS", wanted) }
    /Function :/ { finish(); name = $NF; delete seen; early = looped = waits = 0 }
    # the forward with two warpgroups: a row of exponentials between the wait for scores and the wait for O. Those with three,
    # most of what is for 64 columns, may have it where ptxas likes
    /DEPBAR.LE gsb0, 0x1/ { waits = 1; exponentials = 0 }
    /MUFU.EX2/ { exponentials++ }
    /DEPBAR.LE gsb0, 0x0/ {
      if (waits && name ~ /hopper_(forward|cache)/ && name !~ /_64/ && exponentials < 16) early = 1
      waits = 0
    }
    # over a cache a stage waits for its copies: an elected lane issues them without a loop (prim_sm90.cuh, elected)
    /BRA.U.ANY/ { if (copies && name ~ /hopper_cache/) looped = 1 }
    /^ *\/\*[0-9a-f]+\*\/ / { copies = /UTMALDG/ }
    # some write their results from registers, 16 bytes at a time
    { for (i = 1; i <= NF; ++i) { word = $i; if (word ~ /^STG\.E\.128/) word = "UTMASTG"; sub(/[.;].*/, "", word); seen[word] = 1 } }
    END { finish(); if (!kernels) print "no kernel" }' "$1"
}

made_up() { # made_up WITHOUT WITH
  local word
  echo "		Function : hopper_made_up"
  for word in HGMMA.64x128x16.F32.BF16 UTMALDG.4D UTMASTG.4D USETMAXREG.DEALLOC.CTAPOOL SYNCS.EXCH.64 $2; do
    [ "${word%%.*}" = "$1" ] || echo "        /*0010*/                   $word R24, gdesc[UR8], R24 ;"
  done
}
made_up none "" >"$dir/right"
[ -z "$(check "$dir/right")" ] || { echo "right code: $(check "$dir/right")"; failed=1; }
for word in HGMMA UTMALDG UTMASTG USETMAXREG SYNCS; do
  made_up $word "" >"$dir/wrong"
  check "$dir/wrong" | grep -q "no $word" || { echo "code without $word passes"; failed=1; }
done
{ made_up UTMASTG ""; echo "        /*0010*/                   STG.E.128 desc[UR8][R24.64], R24 ;"; } >"$dir/right"
[ -z "$(check "$dir/right")" ] || { echo "code that stores 16 bytes: $(check "$dir/right")"; failed=1; }
in_order() { # in_order INSTRUCTION...: a forward kernel with these behind what it has to have
  made_up none "" | sed 's/made_up/forward/'
  for word in "$@"; do echo "        /*0010*/                   $word ;"; done
}
exponentials=$(for _ in $(seq 16); do echo MUFU.EX2; done)
in_order "WARPGROUP.DEPBAR.LE gsb0, 0x1" $exponentials "WARPGROUP.DEPBAR.LE gsb0, 0x0" >"$dir/right"
[ -z "$(check "$dir/right")" ] || { echo "a wait behind the softmax: $(check "$dir/right")"; failed=1; }
in_order "WARPGROUP.DEPBAR.LE gsb0, 0x1" "WARPGROUP.DEPBAR.LE gsb0, 0x0" $exponentials >"$dir/wrong"
check "$dir/wrong" | grep -q "before the softmax" || { echo "a wait before the softmax passes"; failed=1; }
made_up none "UTMALDG.4D BRA.U.ANY" | sed 's/made_up/cache/' >"$dir/wrong"
check "$dir/wrong" | grep -q "in a loop" || { echo "copies in a loop pass"; failed=1; }
made_up none STL >"$dir/wrong"
check "$dir/wrong" | grep -q "local memory" || { echo "code with STL passes"; failed=1; }
: >"$dir/wrong"
check "$dir/wrong" | grep -q "no kernel" || { echo "no code passes"; failed=1; }
[ $failed = 0 ] || exit 1

tool=${CUOBJDUMP:-$(command -v cuobjdump || ls /usr/local/cuda/bin/cuobjdump 2>/dev/null)}
[ -n "$tool" ] || { echo "skipped: no cuobjdump"; exit 77; }
ls "$1"/hopper_*.sm_90a.cubin >/dev/null 2>&1 || { echo "skipped: no cubins for sm_90a in this build"; exit 77; }
for cubin in "$1"/hopper_*.sm_90a.cubin; do
  "$tool" -sass "$cubin" >"$dir/sass" || { echo "$tool fails on $cubin"; exit 1; }
  said=$(check "$dir/sass")
  [ -z "$said" ] || { echo "$cubin:"; echo "$said"; failed=1; }
done
exit $failed
