/* The words of cases as sentences, and sentences that only the cases themselves suggest. */
#include "report/causes/features.h"

#include <stdio.h>
#include <string.h>

static const fa_cause_sentence sentences[] = {
    {"f16", "dtype is f16", "dtype is not f16"},
    {"bf16", "dtype is bf16", "dtype is not bf16"},
    {"f32", "dtype is f32", "dtype is not f32"},
    {"flash", "family is flash", "family is not flash"},
    {"memeff", "family is memeff", "family is not memeff"},
    {"flex", "family is flex", "family is not flex"},
    {"kvcache", "family is kvcache", "family is not kvcache"},
    {"head_dim>128", "head_dim or head_dim_v > 128", "head_dim and head_dim_v <= 128"},
    {"head_dim%8", "head_dim or head_dim_v % 8 != 0", "head_dim and head_dim_v % 8 == 0"},
    {"causal", "mask is causal", "mask is not causal"},
    {"window", "mask is a window", "mask is no window"},
    {"top_left", "mask is aligned top left", "no mask is aligned top left"},
    {"bottom_right", "mask is aligned bottom right, and lengths differ", NULL},
    {"varlen", "sequences are packed", "sequences are not packed"},
    {"gqa", "heads_q > heads_kv", "heads_q == heads_kv"},
    {"head_dim_v", "head_dim_v != head_dim", "head_dim_v == head_dim"},
    {"dlse", "dLSE is given", "no dLSE is given"},
    {"append", "keys are appended", "no keys are appended"},
    {"paged", "the cache has pages", "the cache has no pages"},
    {"splits", "the case says how many splits", NULL},
    {"deterministic", "deterministic gradients", NULL},
    {"captures", "expressions read buffers", NULL},
    {"flash_more", NULL, NULL}, /* other words say what it is */
    {"memeff_more", NULL, NULL},
};

const fa_cause_sentence *fa_cause_sentence_of(const char *word) {
  for (size_t i = 0; i < sizeof sentences / sizeof *sentences; ++i)
    if (*sentences[i].word == *word && strcmp(sentences[i].word, word) == 0) return &sentences[i];
  return NULL;
}

/* ---- sequences of several lengths ---- */

bool fa_cause_is_uneven(const fa_shape *s) {
  const double *n = s->number;
  return n[FA_SHAPE_SHORTEST_Q] != n[FA_SHAPE_SEQLEN_Q] || n[FA_SHAPE_SHORTEST_K] != n[FA_SHAPE_SEQLEN_K] ||
         n[FA_SHAPE_LONGEST_K] != n[FA_SHAPE_SEQLEN_K];
}

static const struct {
  const char *one, *many;
} of_many[] = {
    {"seqlen_q > seqlen_k", "some seqlen_q > its seqlen_k"},
    {"seqlen_q <= seqlen_k", "every seqlen_q <= its seqlen_k"},
    {"seqlen_q < seqlen_k", "some seqlen_q < its seqlen_k"},
    {"seqlen_q >= seqlen_k", "every seqlen_q >= its seqlen_k"},
    {"seqlen_q == seqlen_k", "every seqlen_q == its seqlen_k"},
    {"seqlen_q != seqlen_k", "some seqlen_q != its seqlen_k"},
    {"seqlen_q > 0", "some sequence has queries"},
    {"seqlen_q == 0", "no sequence has queries"},
    {"seqlen_k > 0", "some sequence has keys"},
    {"seqlen_k == 0", "no sequence has keys"},
    {"right >= seqlen_k", "right >= every seqlen_k"},
    {"left >= seqlen_k", "left >= every seqlen_k"},
    {"right >= seqlen_q", "right >= every seqlen_q"},
    {"left >= seqlen_q", "left >= every seqlen_q"},
};

/* "seqlen_k > 64" is about the keys that are used, "seqlen_k % 64 == 0" about the room for them. */
void fa_cause_say_of_many(const char *text, char *out, size_t size) {
  char which, compared[3];
  int n, end = 0;
  snprintf(out, size, "%s", text);
  for (size_t i = 0; i < sizeof of_many / sizeof *of_many; ++i)
    if (strcmp(text, of_many[i].one) == 0) {
      snprintf(out, size, "%s", of_many[i].many);
      return;
    }
  if (sscanf(text, "seqlen_%c %2[<=>] %d%n", &which, compared, &n, &end) == 3 && text[end] == 0) {
    const char *uses = which == 'k' ? "uses" : "has", *what = which == 'k' ? "keys" : "queries";
    const bool more = strcmp(compared, ">") == 0;
    snprintf(out, size, "%s sequence %s %s %d %s", more ? "some" : "every", uses,
             more ? "more than" : "at most", n, what);
  } else if (strncmp(text, "seqlen_", 7) == 0) {
    snprintf(out, size, "the longest %s", text);
  }
}

/* ---- values that occur ---- */

void fa_cause_named_features(const fa_shape *s, void (*see)(void *ctx, const char *text), void *ctx) {
  static const char *const said[FA_SHAPE_NAMES] = {
      [FA_SHAPE_LAYOUT] = "layout is %s",   [FA_SHAPE_PACKING] = "%s is one packed tensor",
      [FA_SHAPE_FILL_Q] = "q's data: %s",   [FA_SHAPE_FILL_K] = "k's data: %s",
      [FA_SHAPE_FILL_V] = "v's data: %s",   [FA_SHAPE_FILL_BIAS] = "bias' data: %s",
      [FA_SHAPE_FILL_DO] = "dO's data: %s", [FA_SHAPE_ALIBI] = "ALiBi slopes: %s",
      [FA_SHAPE_LAW] = "law is %s"};
  char text[96];
  for (int i = 0; i < FA_SHAPE_NAMES; ++i) {
    if (!said[i] || !s->name[i][0]) continue;
    snprintf(text, sizeof text, said[i], s->name[i]);
    see(ctx, text);
  }
  snprintf(text, sizeof text, "head_dim == %g", s->number[FA_SHAPE_HEAD_DIM]);
  see(ctx, text);
  snprintf(text, sizeof text, "head_dim_v == %g", s->number[FA_SHAPE_HEAD_DIM_V]);
  see(ctx, text);
  if (s->number[FA_SHAPE_HEADS_KV] > 0) {
    snprintf(text, sizeof text, "heads_q / heads_kv == %g",
             s->number[FA_SHAPE_HEADS_Q] / s->number[FA_SHAPE_HEADS_KV]);
    see(ctx, text);
  }
}
