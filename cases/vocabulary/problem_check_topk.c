/* What a case with lists of keys may say. */
#include "cases/vocabulary/problem_check.h"

/* What has no meaning beside lists, or another way to say which slots belong together. */
static const char *foreign_key(const fa_problem *p) {
  const struct {
    const char *key;
    bool given;
  } keys[] = {
      {"mask", p->mask.type != FA_MASK_NONE},
      {"mask_bits", p->mask_bits.present},
      {"score_mod", p->score_mod != NULL},
      {"mask_mod", p->mask_mod != NULL},
      {"block_sparse", p->block_sparse.present},
      {"dropout", p->dropout.p > 0},
      {"kvcache.leftpad", p->leftpad_k.n > 0},
      {"kvcache.shared_pages", p->kvcache.shared_pages > 0},
      {"kvcache.batch_idx", p->kvcache.batch_idx.n > 0},
      {"kvcache.rotary", p->kvcache.rotary_dim > 0},
  };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (keys[i].given) return keys[i].key;
  return NULL;
}

static fa_status check_share(const char *field, double x, fa_error *err) {
  if (!(x >= 0 && x <= 1)) BAD("$.topk.%s: %g is not in 0 .. 1", field, x);
  return FA_OK;
}

fa_status fa_check_topk(const fa_problem *p, fa_error *err) {
  const fa_topk *t = &p->topk;
  if (!t->present) {
    if (t->k || t->len.n || t->none != 0 || t->none_at || t->repeated != 0 || t->empty_rows != 0 ||
        t->beyond || t->seed)
      BAD("$.topk: there are no lists, but a recipe for them");
    return FA_OK;
  }
  if (p->family != FA_KVCACHE)
    BAD("$.topk: only family \"kvcache\" has lists of keys, not \"%s\"", fa_family_name(p->family));
  TRY(fa_check_range("topk.k", t->k, 1, FA_MAX_TOPK, err));
  TRY(check_share("none", t->none, err));
  TRY(check_share("repeated", t->repeated, err));
  TRY(check_share("empty_rows", t->empty_rows, err));
  if ((unsigned)t->none_at >= FA_TOPK_N_PLACES) BAD("$.topk.none_at: unknown number %d", (int)t->none_at);
  if (t->beyond && p->kvcache.page_size)
    BAD("$.topk.beyond: true, but entries name slots of pages, of which a kernel knows no end");
  const char *key = foreign_key(p);
  if (key) BAD("$.%s: not together with topk, whose lists say which keys a row sees", key);
  TRY(fa_check_array("topk.len", &t->len, p->batch, 0, t->k, err));
  const int64_t rows = fa_problem_total_q(p);
  if (rows > 0 && t->k > FA_MAX_ELEMENTS / rows)
    BAD("$.topk.k: tensor topk_indices would have more than %lld elements", (long long)FA_MAX_ELEMENTS);
  return FA_OK;
}
