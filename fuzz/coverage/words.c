#include "fuzz/coverage/words.h"

#include "cases/base/dtype.h"
#include "gpu/contract/features.h"

#include <stdio.h>
#include <string.h>

static bool is_f16(const fa_problem *p) {
  return p->dtype == FA_F16;
}
static bool is_bf16(const fa_problem *p) {
  return p->dtype == FA_BF16;
}
static bool is_f32(const fa_problem *p) {
  return p->dtype == FA_F32;
}
static bool is_flash(const fa_problem *p) {
  return p->family == FA_FLASH;
}
static bool is_memeff(const fa_problem *p) {
  return p->family == FA_MEMEFF;
}
static bool is_flex(const fa_problem *p) {
  return p->family == FA_FLEX;
}
static bool is_kvcache(const fa_problem *p) {
  return p->family == FA_KVCACHE;
}
static bool is_merge(const fa_problem *p) {
  return p->family == FA_MERGE;
}
static bool has_backward(const fa_problem *p) {
  return p->backward;
}
static bool is_wide(const fa_problem *p) {
  return p->head_dim > 128 || p->head_dim_v > 128;
}
static bool is_odd(const fa_problem *p) {
  return p->head_dim % 8 != 0 || p->head_dim_v % 8 != 0;
}

/* The words of a hello's "features" come after these. */
static const struct {
  const char *name;
  bool (*is_in)(const fa_problem *p);
} own[] = {{"f16", is_f16},         {"bf16", is_bf16},          {"f32", is_f32},
           {"flash", is_flash},     {"memeff", is_memeff},      {"flex", is_flex},
           {"kvcache", is_kvcache}, {"backward", has_backward}, {"head_dim>128", is_wide},
           {"head_dim%8", is_odd},  {"merge", is_merge}};
enum { N_OWN = sizeof own / sizeof *own };

const char *fa_word_at(int i) {
  return i < 0 ? NULL : i < N_OWN ? own[i].name : fa_feature_name(i - N_OWN);
}

fa_word_bits fa_words_of(const fa_problem *p) {
  fa_word_bits words = 0;
  for (int i = 0; fa_word_at(i); ++i) {
    FA_ASSERT(i < FA_MAX_WORDS);
    const bool has = i < N_OWN ? own[i].is_in(p) : fa_feature_at(i - N_OWN)->is_in(p);
    words |= (fa_word_bits)has << i;
  }
  return words;
}

void fa_words_text(fa_word_bits words, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; fa_word_at(i) && used < size; ++i)
    if (words >> i & 1)
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", fa_word_at(i));
}
