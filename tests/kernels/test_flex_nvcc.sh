#!/usr/bin/env bash
# test_flex_nvcc.sh NVCC: the flex kernels, which no build compiles for a device, compile with the expressions below,
# without warnings, local memory or spills, and the products of those for sm_90a are not serialised. First shows that the
# check itself can fail.
set -u
nvcc=$1
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
failed=0

cat >"$dir/none.h" <<'END'
#define FA_FLEX_SCORE 0
#define FA_FLEX_MASK 0
#define FA_FLEX_DERIVATIVE 0
#define FA_FLEX_DROPOUT 0
#define FA_FLEX_MASKS 8
#define FA_FLEX_READS 0
END
cat >"$dir/alibi_causal.h" <<'END'
#define FA_FLEX_SCORE 1
#define FA_FLEX_MASK 1
#define FA_FLEX_DERIVATIVE 1
#define FA_FLEX_DROPOUT 0
#define FA_FLEX_MASKS 8
#define FA_FLEX_READS 1
#define FA_FLEX_READ_BUFFERS 0
__device__ __forceinline__ int fa_flex_at(int i) { return i < 0 ? 0 : i > 15 ? 15 : i; }
__device__ __forceinline__ float fa_flex_score(float score, int, int h, int i, int j, int, int, const void *const *buffer) {
  return score + static_cast<const float *>(buffer[0])[fa_flex_at(h)] * static_cast<float>(j - i);
}
__device__ __forceinline__ int fa_flex_mask(int, int, int i, int j, int, int, const void *const *) { return i >= j; }
__device__ __forceinline__ float fa_flex_derivative(float, int, int h, int i, int j, int, int, const void *const *, float *slope,
                                               long long *element) {
  slope[0] = static_cast<float>(j - i);
  element[0] = fa_flex_at(h);
  return 1.0f;
}
END
cat >"$dir/document.h" <<'END'
#define FA_FLEX_SCORE 0
#define FA_FLEX_MASK 1
#define FA_FLEX_DERIVATIVE 0
#define FA_FLEX_DROPOUT 0
#define FA_FLEX_MASKS 4 /* as for one of more nodes */
#define FA_FLEX_READS 0
__device__ __forceinline__ int fa_flex_at(int i) { return i < 0 ? 0 : i > 8191 ? 8191 : i; }
__device__ __forceinline__ int fa_flex_mask(int, int, int i, int j, int, int, const void *const *buffer) {
  const int *const doc = static_cast<const int *>(buffer[0]);
  return doc[fa_flex_at(i)] == doc[fa_flex_at(j)] && i >= j;
}
END
cat >"$dir/softcap.h" <<'END'
#define FA_FLEX_SCORE 1
#define FA_FLEX_MASK 0
#define FA_FLEX_DERIVATIVE 0
#define FA_FLEX_DROPOUT 0
#define FA_FLEX_MASKS 8
#define FA_FLEX_READS 0
__device__ __forceinline__ float fa_flex_score(float score, int, int, int, int, int, int, const void *const *) {
  return 20.0f * tanhf(score / 20.0f);
}
END
# and for the backward pass of it
(sed 's/\(FA_FLEX_DERIVATIVE\) 0/\1 1/' "$dir/softcap.h" && cat <<'END') >"$dir/softcap_slope.h"
__device__ __forceinline__ float fa_flex_derivative(float score, int, int, int, int, int, int, const void *const *, float *, long long *) {
  const float t = tanhf(score / 20.0f);
  return 1.0f - t * t;
}
END
# slopes whose gradient nobody wants
sed 's/\(FA_FLEX_READS\) 1/\1 0/; /FA_FLEX_READ_BUFFERS/d; /slope\[0\] =/d; /element\[0\] =/d' "$dir/alibi_causal.h" >"$dir/alibi_fixed.h"
sed 's/\(FA_FLEX_DROPOUT\) 0/\1 1/' "$dir/alibi_causal.h" >"$dir/dropout.h"
# fa_trait: of calls that have nothing else, with rows aligned and not
(echo "#define FA_LACKS 191" && cat "$dir/alibi_causal.h") >"$dir/bare.h"
(echo "#define FA_LACKS 127" && cat "$dir/alibi_causal.h") >"$dir/unaligned.h"
# for kernels that have fewer registers than that to spare
cat >"$dir/far_too_much.h" <<'END'
#define FA_FLEX_SCORE 1
#define FA_FLEX_MASK 0
#define FA_FLEX_DERIVATIVE 0
#define FA_FLEX_DROPOUT 0
#define FA_FLEX_MASKS 8
#define FA_FLEX_READS 0
__device__ float fa_flex_score(float score, int, int, int i, int j, int, int, const void *const *) {
  volatile float x[64];
  for (int k = 0; k < 64; ++k) x[k] = score;
  return x[(i + j) & 63];
}
END

# compile EXPRESSIONS SOURCE ARCH ENTRY [OPTION]
compile() {
  printf '#include "%s"\n#define FA_ONLY %s\n#include "gpu/kernels/%s.cu"\n' "$dir/$1.h" "$4" "$2" >"$dir/unit.cu"
  "$nvcc" -std=c++17 -I. -cubin -arch="sm_$3" -Xptxas -v --Werror all-warnings ${5:-} "$dir/unit.cu" -o "$dir/unit.cubin" \
    >"$dir/log" 2>&1 || { cat "$dir/log"; return 1; }
  ! grep "Potential Performance Loss" "$dir/log" || return 1
  grep -q "Used .* registers" "$dir/log" && ! grep "stack frame" "$dir/log" | grep -v " 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
}

[ "$(compile far_too_much flex/forward 80 "FA_ENTRY(flex_forward_f32_64,f32,64)" | grep -c "bytes stack frame")" = 1 ] ||
  { echo "local memory is not noticed"; failed=1; }
compile document hopper/forward 90a "FA_ENTRY(hopper_flex_bf16_192,fa::bf16,192,fa::flex,2,64,true,1,false)" --Ofast-compile=mid |
  grep -q "wgmma.mma_async instructions are serialized" || { echo "serialised products are not noticed"; failed=1; }
compile alibi_causal hopper/forward 90a "FA_ENTRY(hopper_flex_f16_256,fa::f16,256,fa::flex,2,80,false,0)" >/dev/null &&
  { echo "tiles that are too large are not noticed"; failed=1; }
while read -r expressions source arch entry; do
  compile "$expressions" "$source" "$arch" "$entry" || { echo "$source $entry for sm_$arch with $expressions"; failed=1; }
done <<'END'
alibi_causal flex/forward 80 FA_ENTRY(flex_forward_f32_128,f32,128)
alibi_causal flex/forward 90a FA_ENTRY(flex_forward_bf16_128,bf16,128)
none flex/forward 90a FA_ENTRY(flex_forward_f16_64,f16,64)
alibi_causal flex/backward 90a FA_ENTRY(flex_backward_bf16_keys,bf16,memeff_backward_keys,64,64)
alibi_causal flex/backward 80 FA_ENTRY(flex_backward_f32_queries,f32,memeff_backward_queries,64,64)
alibi_causal flex/backward 90a FA_ENTRY(flex_backward_f16_short_keys,f16,memeff_backward_keys,16,32)
alibi_causal flex/forward_short 90a FA_ENTRY(flex_forward_bf16_short,bf16,16,64)
dropout flex/forward_short 80 FA_ENTRY(flex_forward_f32_short,f32,16,64)
bare flex/forward 90a FA_ENTRY(flex_forward_bf16_128,bf16,128)
bare flex/backward 80 FA_ENTRY(flex_backward_f16_keys,f16,memeff_backward_keys,64,64)
unaligned flex/backward 90a FA_ENTRY(flex_backward_bf16_queries,bf16,memeff_backward_queries,64,64)
dropout flex/forward 90a FA_ENTRY(flex_forward_bf16_64,bf16,64)
dropout flex/backward 80 FA_ENTRY(flex_backward_f16_short_keys,f16,memeff_backward_keys,16,32)
dropout flex/backward 90a FA_ENTRY(flex_backward_f32_short_queries,f32,memeff_backward_queries,16,32)
END
# entries MACRO LEAST: those lines of gpu/kernels/registry/hopper.def
entries() {
  printf '#define %s(...) FA_ENTRY(__VA_ARGS__)\n#include "gpu/kernels/registry/hopper.def"\n' "$1" >"$dir/list.cu"
  "$nvcc" -I. -E "$dir/list.cu" | grep -o 'FA_ENTRY([^)]*)' | tr -d ' ' >"$dir/list"
  [ "$(wc -l <"$dir/list")" -ge "$2" ] || { echo "which kernels $1 there are for sm_90a is not known"; failed=1; }
}
# all SOURCE EXPRESSIONS...: these
all() {
  source=$1 && shift
  while read -r entry; do
    for expressions; do
      compile "$expressions" "$source" 90a "$entry" || { echo "$entry with $expressions"; failed=1; }
    done
  done <"$dir/list"
}
entries FA_FORWARD_FLEX 16
all hopper/forward none document alibi_causal softcap
entries FA_BACKWARD_FLEX 20
all hopper_backward/main document alibi_causal
entries FA_PAIR_FLEX 12
all hopper_backward/pair none document alibi_fixed softcap_slope
exit $failed
