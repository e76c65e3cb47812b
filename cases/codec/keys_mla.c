/* The key "mla": multi-head latent attention, by the names that models give its dimensions. */
#include "cases/codec/keys.h"

#include <math.h>
#include <stdio.h>

READER(read_lora_rank) {
  return fa_read_int(r, v, 1, FA_MAX_HEAD_DIM, &r->mla.kv_lora_rank);
}
READER(read_rope) {
  return fa_read_int(r, v, 0, FA_MAX_HEAD_DIM, &r->mla.qk_rope_head_dim);
}
READER(read_nope) {
  return fa_read_int(r, v, 1, FA_MAX_HEAD_DIM, &r->mla.qk_nope_head_dim);
}
static const fa_case_key mla_keys[] = {
    {"kv_lora_rank", read_lora_rank}, {"qk_rope_head_dim", read_rope}, {"qk_nope_head_dim", read_nope}, {0}};
fa_status fa_read_mla(fa_case_reader *r, const cJSON *v) {
  r->mla = (fa_case_mla){true, 512, 64, FA_MLA_NOPE_DIM};
  return fa_read_object(r, v, mla_keys);
}

static fa_status agrees(fa_case_reader *r, const char *key, bool given, int64_t value, const char *of,
                        int64_t wanted) {
  if (!given || value == wanted) return FA_OK;
  snprintf(r->path, sizeof r->path, ".%s", key);
  return fa_read_fail(r, false, "%lld, but mla makes it %s, %lld; leave it out", (long long)value, of,
                      (long long)wanted);
}

fa_status fa_read_mla_finish(fa_case_reader *r) {
  const fa_case_mla *m = &r->mla;
  if (!m->present) return FA_OK;
  if (P.family != FA_KVCACHE) {
    snprintf(r->path, sizeof r->path, ".mla");
    return fa_read_fail(r, false, "only family \"kvcache\" has a latent cache, not \"%s\"",
                        fa_family_name(P.family));
  }
  const int64_t width = m->kv_lora_rank + m->qk_rope_head_dim;
  TRY(agrees(r, "head_dim", r->has_head_dim, P.head_dim, "kv_lora_rank + qk_rope_head_dim", width));
  TRY(agrees(r, "head_dim_v", r->has_head_dim_v, P.head_dim_v, "kv_lora_rank", m->kv_lora_rank));
  P.kvcache.v_in_k = true;
  P.head_dim = width;
  P.head_dim_v = m->kv_lora_rank;
  if (!r->has_heads_kv) P.heads_kv = 1;
  if (!r->has_scale) P.scale = 1 / sqrt((double)(m->qk_nope_head_dim + m->qk_rope_head_dim));
  return FA_OK;
}
