/* What conditions of FA_PLANTED may ask about a call. */
#include "tests/explain/planted/mistakes.h"

#include <string.h>

bool pl_feature_word(const fa_plugin_problem *p, const char *key, const char **out) {
  static const char *const types[] = {"f16", "bf16", "f32"};
  if (strcmp(key, "mask") == 0)
    *out = p->mask;
  else if (strcmp(key, "family") == 0)
    *out = p->family;
  else if (strcmp(key, "dtype") == 0)
    *out = types[p->dtype];
  else
    return false;
  return true;
}

bool pl_feature(const fa_plugin_problem *p, const char *key, int64_t *out) {
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {
      {"batch", p->batch},
      {"heads_q", p->heads_q},
      {"heads_kv", p->heads_kv},
      {"group", p->heads_q / p->heads_kv},
      {"seqlen_q", p->seqlen_q},
      {"seqlen_k", p->seqlen_k},
      {"head_dim", p->head_dim},
      {"head_dim_v", p->head_dim_v},
      {"left", p->window_left},
      {"right", p->window_right},
      {"top_left", p->align_top_left},
      {"varlen", p->cu_seqlens_k != NULL},
      {"alibi", p->alibi},
      {"bias", p->bias},
      {"softcap", p->softcap > 0},
      {"dropout", p->dropout_p > 0},
      {"backward", p->backward},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (strcmp(numbers[i].name, key) != 0) continue;
    *out = numbers[i].value;
    return true;
  }
  return false;
}
