/* What of a call decides how much there is to compile for it: whether it is short, and what it does not have. */
#include "gpu/plan/flex_parts.h"

bool fa_flex_is_short(const fa_attention *a) {
  return a->seqlen_q <= FA_FLEX_SHORT && a->seqlen_k <= FA_FLEX_SHORT;
}

static unsigned lacks_unless(bool has, fa_trait what) {
  return has ? 0 : what;
}

/* Without expressions all calls have the same kernels: those know nothing of them. */
void fa_flex_compile_in(const fa_flex_builder *b, fa_mods mods, const fa_attention_params *p,
                        const void *dbias, fa_launch *l) {
  const bool windows = p->window_left >= 0 || p->window_right >= 0 || p->chunk > 0;
  const bool lengths = p->cu_seqlens_q || p->cu_seqlens_k || p->seqused_k || p->leftpad_k;
  l->mods = mods;
  if (!b->call->a->flex->program) return;
  l->lacks = lacks_unless(p->softcap > 0, FA_HAS_SOFTCAP) | lacks_unless(p->alibi_slopes, FA_HAS_ALIBI) |
             lacks_unless(p->bias, FA_HAS_BIAS) | lacks_unless(dbias, FA_HAS_DBIAS) |
             lacks_unless(windows, FA_HAS_WINDOW) | lacks_unless(lengths, FA_HAS_LENGTHS) |
             lacks_unless(p->aligned, FA_HAS_ALIGNED) | lacks_unless(!p->aligned, FA_HAS_UNALIGNED);
}
