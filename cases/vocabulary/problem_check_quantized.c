/* What a case with operands of 8 bits may say. */
#include "cases/vocabulary/problem_check.h"

/* What needs gradients, changes queries or keys on their way, or stores them in another form. */
static const char *foreign_key(const fa_problem *p) {
  const struct {
    const char *key;
    bool given;
  } keys[] = {
      {"backward", p->backward},
      {"return_softmax", p->return_softmax},
      {"kvcache.rotary", p->kvcache.rotary_dim > 0},
      {"mla", p->kvcache.v_in_k && p->quantized.per != FA_PER_TILE},
  };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (keys[i].given) return keys[i].key;
  return NULL;
}

static fa_status check_words(const fa_quantized *q, fa_error *err) {
  if (q->dtype != FA_E4M3 && q->dtype != FA_E5M2 && q->dtype != FA_I8 && q->dtype != FA_E2M1)
    BAD("$.quantized.dtype: \"%s\" is none of e4m3, e5m2, i8, e2m1",
        (unsigned)q->dtype < FA_N_DTYPES ? fa_dtype_name(q->dtype) : "?");
  if ((unsigned)q->per >= FA_N_DESCALES) BAD("$.quantized.descale: unknown number %d", (int)q->per);
  if ((unsigned)q->values >= FA_N_DESCALE_VALUES)
    BAD("$.quantized.values: unknown number %d", (int)q->values);
  if (q->queries && (q->dtype == FA_I8 || q->dtype == FA_E2M1))
    BAD("$.quantized.queries: true, but only keys and values can be %s; P would have no type to be rounded "
        "to",
        fa_dtype_name(q->dtype));
  return FA_OK;
}

/* O times a scale, in 8 bits. */
static fa_status check_o(const fa_quantized *q, fa_error *err) {
  if (!fa_quantizes_o(q)) {
    if (q->o_scale != 0)
      BAD("$.quantized.o_scale: %g, but O is not of 8 bits (quantized.o), and stored as it is", q->o_scale);
    return FA_OK;
  }
  if (!fa_dtype_is_float8(q->o))
    BAD("$.quantized.o: \"%s\" is neither io, e4m3 nor e5m2",
        (unsigned)q->o < FA_N_DTYPES ? fa_dtype_name(q->o) : "?");
  if (!q->queries)
    BAD("$.quantized.o: \"%s\", but only beside queries of 8 bits (quantized.queries) is O stored in 8",
        fa_dtype_name(q->o));
  if (q->o_scale != 0 && !(q->o_scale >= 0x1p-100 && q->o_scale <= 0x1p100))
    BAD("$.quantized.o_scale: %g is no number from 2^-100 to 2^100", q->o_scale);
  return FA_OK;
}

/* Rows of bytes, whose numbers of e4m3 are V. */
static fa_status check_tiles(const fa_problem *p, fa_error *err) {
  const fa_quantized *q = &p->quantized;
  if (!p->kvcache.v_in_k)
    BAD("$.quantized.descale: \"tile\", but only a latent cache (mla) has a descale for each 128 columns");
  if (q->dtype != FA_E4M3 || q->queries)
    BAD("$.quantized: tiles are of e4m3 (quantized.dtype), beside queries of 16 bits (quantized.queries)");
  if (p->dtype == FA_F32) BAD("$.dtype: f32, but beside tiles of e4m3 the other columns have 16 bits");
  if (p->head_dim_v % FA_MIXED_TILE != 0)
    BAD("$.mla.kv_lora_rank: %lld is no multiple of %d, the columns of a tile", (long long)p->head_dim_v,
        FA_MIXED_TILE);
  return FA_OK;
}

/* Numbers of 4 bits, in blocks that have scales of their own. */
static fa_status check_four_bits(const fa_problem *p, fa_error *err) {
  const fa_quantized *q = &p->quantized;
  if (p->family != FA_KVCACHE)
    BAD("$.quantized.dtype: \"e2m1\", but only caches (family kvcache) have numbers of 4 bits");
  if (q->per > FA_PER_HEAD)
    BAD("$.quantized.descale: \"%s\", but beside the scales of its blocks e2m1 has one a tensor or head",
        fa_descale_per_name(q->per));
  if (p->head_dim % 16 != 0 || p->head_dim_v % 16 != 0)
    BAD("$.head_dim%s: %lld is no multiple of 16, the columns of e2m1 that share a scale",
        p->head_dim % 16 ? "" : "_v", (long long)(p->head_dim % 16 ? p->head_dim : p->head_dim_v));
  if (p->kvcache.n_new > 0)
    BAD("$.kvcache.new: new keys bring no scales of their blocks with them (quantized.dtype e2m1)");
  return FA_OK;
}

fa_status fa_check_quantized(const fa_problem *p, fa_error *err) {
  const fa_quantized *q = &p->quantized;
  if (!q->present) {
    if (q->dtype || q->queries || q->per || q->values || q->quantizes_new || q->amax || q->o ||
        q->o_scale != 0)
      BAD("$.quantized: nothing is, but there are words about it");
    return FA_OK;
  }
  if (p->family != FA_FLASH && p->family != FA_KVCACHE)
    BAD("$.quantized: family \"%s\" has none (flash and kvcache have)", fa_family_name(p->family));
  TRY(check_words(q, err));
  if (q->queries && p->dtype == FA_F32)
    BAD("$.dtype: f32, but beside queries of 8 bits (quantized.queries) O has 16");
  TRY(check_o(q, err));
  const char *key = foreign_key(p);
  if (key) BAD("$.%s: not together with quantized, operands of 8 bits", key);
  if (q->per == FA_PER_TILE) TRY(check_tiles(p, err));
  if (q->dtype == FA_E2M1) TRY(check_four_bits(p, err));
  if (q->per == FA_PER_PAGE && p->kvcache.page_size == 0)
    BAD("$.quantized.descale: \"page\", but there are no pages (kvcache.page_size is 0)");
  if (q->amax && p->topk.present)
    BAD("$.quantized.amax: not together with topk: a key that a list names twice has two weights");
  if (q->quantizes_new && p->kvcache.n_new == 0)
    BAD("$.quantized.quantize_new: true, but there are no new keys (kvcache.new)");
  if (q->per >= FA_PER_TOKEN && p->kvcache.n_new > 0)
    BAD("$.quantized.descale: \"%s\", but new keys bring no descales with them (kvcache.new)",
        fa_descale_per_name(q->per));
  return FA_OK;
}
