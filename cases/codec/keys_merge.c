/* The key "merge": partial states. */
#include "cases/codec/keys.h"

#include <stdio.h>

READER(read_parts) {
  return fa_read_int(r, v, 1, FA_MAX_PARTS, &P.merge.parts);
}
READER(read_base) {
  READ_WORD(P.merge.base_2, "e", "2");
}
READER(read_parts_dtype) {
  r->has_parts_dtype = true;
  READ_WORD(P.merge.parts_dtype, "f16", "bf16", "f32");
}
static const fa_case_key merge_keys[] = {
    {"parts", read_parts}, {"base", read_base}, {"parts_dtype", read_parts_dtype}, {0}};
fa_status fa_read_merge(fa_case_reader *r, const cJSON *v) {
  r->has_merge = true;
  return fa_read_object(r, v, merge_keys);
}

static fa_status differs(fa_case_reader *r, const char *key, const char *from, int64_t value, int64_t of) {
  if (value == of) return FA_OK;
  snprintf(r->path, sizeof r->path, ".%s", key);
  return fa_read_fail(r, false, "%lld, but family \"merge\" has no queries and keys: it is %s, %lld",
                      (long long)value, from, (long long)of);
}

fa_status fa_read_merge_finish(fa_case_reader *r) {
  if (P.family != FA_MERGE) return FA_OK; /* fa_problem_validate says if there is a merge all the same */
  if (P.merge.parts == 0) P.merge.parts = 2;
  if (!r->has_parts_dtype) P.merge.parts_dtype = P.dtype;
  if (r->has_heads_kv) TRY(differs(r, "heads_kv", "heads_q", P.heads_kv, P.heads_q));
  if (r->has_seqlen_k && P.cu_seqlens_q.n == 0)
    TRY(differs(r, "seqlen_k", "seqlen_q", P.seqlen_k, P.seqlen_q));
  if (r->has_head_dim_v) TRY(differs(r, "head_dim_v", "head_dim", P.head_dim_v, P.head_dim));
  if (!r->has_scale || P.scale == fa_default_scale(P.head_dim)) return FA_OK;
  snprintf(r->path, sizeof r->path, ".scale");
  return fa_read_fail(r, false, "family \"merge\" has no scores to scale");
}
