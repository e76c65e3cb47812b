/* What a merge of partial states may say: nothing of queries and keys. */
#include "cases/vocabulary/problem_check.h"

/* What has no meaning there, by the key that says it. */
static const char *foreign_key(const fa_problem *p) {
  const struct {
    const char *key;
    bool given;
  } keys[] = {
      {"cu_seqlens_k", p->cu_seqlens_k.n != 0},
      {"seqused_k", p->seqused_k.n != 0},
      {"leftpad_k", p->leftpad_k.n != 0},
      {"softcap", p->softcap != 0},
      {"mask", p->mask.type != FA_MASK_NONE || p->mask.align != FA_ALIGN_BOTTOM_RIGHT},
      {"alibi", p->alibi.present},
      {"bias", p->bias.present},
      {"dropout", p->dropout.p != 0 || p->dropout.seed != 0 || p->dropout.offset != 0},
      {"score_mod", p->score_mod != NULL},
      {"mask_mod", p->mask_mod != NULL},
      {"buffers", p->n_captures > 0},
      {"block_sparse", p->block_sparse.present},
      {"sinks", p->sinks.present},
      {"splits", p->splits != 0},
      {"lse_layout", p->lse_padded},
  };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (keys[i].given) return keys[i].key;
  return NULL;
}

static fa_status check_absent(const fa_problem *p, fa_error *err) {
  const fa_parts *m = &p->merge;
  if (m->parts || m->base_2 || m->parts_dtype != FA_F16)
    BAD("$.merge: only family \"merge\" has one, not \"%s\"", fa_family_name(p->family));
  return FA_OK;
}

fa_status fa_check_merge(const fa_problem *p, fa_error *err) {
  const fa_parts *m = &p->merge;
  if (p->family != FA_MERGE) return check_absent(p, err);
  TRY(fa_check_range("merge.parts", m->parts, 1, FA_MAX_PARTS, err));
  if (m->parts_dtype != FA_F16 && m->parts_dtype != FA_BF16 && m->parts_dtype != FA_F32)
    BAD("$.merge.parts_dtype: must be f16, bf16 or f32");
  const char *key = foreign_key(p);
  if (key) BAD("$.%s: family \"merge\" merges partial states and has no queries and keys", key);
  if (p->heads_kv != p->heads_q || p->seqlen_k != p->seqlen_q || p->head_dim_v != p->head_dim)
    BAD("$.merge: heads_kv, seqlen_k and head_dim_v must be heads_q, seqlen_q and head_dim");
  if (p->scale != fa_default_scale(p->head_dim)) BAD("$.scale: family \"merge\" has none");
  if (p->empty_lse != FA_EMPTY_NEG_INF)
    BAD("$.empty_lse: must be \"-inf\": what is empty is merged again, and +inf is only read");
  return FA_OK;
}
