/* What reports call a kernel. */
#include "gpu/args/calls.h"

#include <stdio.h>

/* ",paged(16),append(1),rotary(64),splits(7)" */
static void name_cache(const fa_problem *p, char *out, size_t size) {
  const fa_kvcache *c = &p->kvcache;
  const struct {
    const char *name;
    int64_t n;
  } parts[] = {
      {"paged", c->page_size}, {"append", c->n_new}, {"rotary", c->rotary_dim}, {"splits", p->splits}};
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; ++i)
    if (parts[i].n > 0)
      used += (size_t)snprintf(out + used, size - used, ",%s(%lld)", parts[i].name, (long long)parts[i].n);
}

/* ",score_mod,mask_mod,blocks(64x64)" */
static void name_flex(const fa_problem *p, char *out, size_t size) {
  const fa_block_sparse *s = &p->block_sparse;
  char blocks[64] = "";
  if (s->present)
    snprintf(blocks, sizeof blocks, ",blocks(%lldx%lld)", (long long)s->q_block, (long long)s->kv_block);
  snprintf(out, size, "%s%s%s", p->score_mod ? ",score_mod" : "", p->mask_mod ? ",mask_mod" : "", blocks);
}

void fa_args_name(const fa_problem *p, const char *kernels, bool aligned, char *out, size_t size) {
  char head_dim_v[32] = "", more[96] = "";
  if (p->head_dim_v != p->head_dim)
    snprintf(head_dim_v, sizeof head_dim_v, "/%lld", (long long)p->head_dim_v);
  if (p->family == FA_MERGE) {
    snprintf(out, size, "%s<%s of %s,%lld,%lld parts%s>", kernels, fa_dtype_name(p->dtype),
             fa_dtype_name(p->merge.parts_dtype), (long long)p->head_dim, (long long)p->merge.parts,
             p->merge.base_2 ? ",base 2" : "");
    return;
  }
  if (p->family == FA_KVCACHE || (p->family == FA_FLASH && p->splits > 1)) name_cache(p, more, sizeof more);
  if (fa_args_is_flex(p)) name_flex(p, more, sizeof more);
  const bool top_left = p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
  snprintf(out, size, "%s<%s%s%s,%lld%s,%s%s%s%s%s%s%s%s%s%s>", kernels,
           p->quantized.present ? fa_dtype_name(p->quantized.dtype) : "", p->quantized.present ? ":" : "",
           fa_dtype_name(p->dtype), (long long)p->head_dim, head_dim_v, fa_mask_describe(p->mask.type)->name,
           top_left ? ",top-left" : "", p->mask_bits.present ? ",bits" : "", p->softcap > 0 ? ",softcap" : "",
           p->alibi.present ? ",alibi" : "", p->bias.present ? ",bias" : "", p->sinks.present ? ",sinks" : "",
           p->dropout.p > 0 ? ",dropout" : "", more, aligned ? "" : ",unaligned");
}
