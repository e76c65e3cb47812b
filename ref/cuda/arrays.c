#include "ref/cuda/arrays.h"

void *fa_judge_take(fa_judge_arena *a, int64_t n, size_t size) {
  void *at = a->base ? a->base + a->used : NULL;
  a->used += ((size_t)n * size + 255) / 256 * 256;
  return at;
}

fa_judge_part fa_judge_part_from(const fa_judge_arena *a, void *first) {
  return a->base ? (fa_judge_part){first, a->base + a->used} : (fa_judge_part){NULL, NULL};
}

static double *doubles(fa_judge_arena *a, int64_t n) {
  return fa_judge_take(a, n, sizeof(double));
}

static float *floats(fa_judge_arena *a, int64_t n) {
  return fa_judge_take(a, n, sizeof(float));
}

static fa_judge_sums_of sums(fa_judge_arena *a, int64_t n) {
  return (fa_judge_sums_of){doubles(a, n), floats(a, n), floats(a, n), floats(a, n)};
}

/* Of float64, magnitude and square of an operand; of sums with three bounds. */
#define MOST ((size_t)4 << 30) /* of a turn, and of a wave: more makes nothing faster */
enum { OPERAND = sizeof(double) + 2 * sizeof(float), SUMS = sizeof(double) + 3 * sizeof(float) };

fa_judge_room fa_judge_room_of(const fa_ref_call *c, bool backward, size_t bytes) {
  const size_t both = (size_t)(c->d + c->dv), wide = (size_t)(c->d > c->dv ? c->d : c->dv);
  const size_t f = sizeof(float), g = sizeof(double);
  const bool plain = backward && c->p->bias.grad;
  const size_t turned = c->rotated.q ? 2 * (size_t)c->d * f : 0;
  return (fa_judge_room){.key_bytes = both * (backward ? OPERAND + SUMS : OPERAND) + 4 * f + turned,
                         .row_bytes = (backward ? both : (size_t)c->d) * OPERAND + wide * SUMS +
                                      sizeof(fa_judge_row) + turned,
                         .pair_bytes = (backward ? 2 * g + 8 * f : g + 4 * f) + (plain ? g + 2 * f : 0),
                         .turn_bytes = bytes / 2 < MOST ? bytes / 2 : MOST,
                         .wave_bytes = bytes / 2 < MOST ? bytes / 2 : MOST};
}

static void lay_out_keys(const fa_ref_call *c, bool backward, int64_t n, fa_judge_arena *a, fa_judge_job *x) {
  x->k64 = doubles(a, n * c->d);
  x->v64 = doubles(a, n * c->dv);
  x->k1 = floats(a, n * c->d);
  x->k2 = floats(a, n * c->d);
  x->v1 = floats(a, n * c->dv);
  x->v2 = floats(a, n * c->dv);
  x->turned_k = c->rotated.q ? floats(a, 2 * n * c->d) : NULL;
  x->max_k = floats(a, n);
  x->max_v = floats(a, n);
  if (!backward) return;
  x->dk = sums(a, n * c->d);
  x->dv = sums(a, n * c->dv);
  x->dk_terms = floats(a, n);
  x->dv_exact = floats(a, n);
}

static void lay_out_rows(const fa_ref_call *c, bool backward, int64_t n, fa_judge_arena *a, fa_judge_job *x) {
  x->row = fa_judge_take(a, n, sizeof *x->row);
  x->q64 = doubles(a, n * c->d);
  x->q1 = floats(a, n * c->d);
  x->q2 = floats(a, n * c->d);
  x->turned_q = c->rotated.q ? floats(a, 2 * n * c->d) : NULL;
  x->acc = sums(a, n * (backward ? c->d : c->dv));
  if (!backward) return;
  x->do64 = doubles(a, n * c->dv);
  x->do1 = floats(a, n * c->dv);
  x->do2 = floats(a, n * c->dv);
}

static void lay_out_pairs(const fa_ref_call *c, bool backward, const fa_judge_wave *w, fa_judge_arena *a,
                          fa_judge_job *x) {
  const int64_t n = w->pairs;
  x->s = doubles(a, n);
  x->e = floats(a, n);
  x->w = floats(a, n);
  x->w2 = floats(a, n);
  x->we = floats(a, n);
  if (!backward) return;
  x->dp = doubles(a, n);
  x->d = floats(a, n);
  x->g = floats(a, n);
  x->g2 = floats(a, n);
  x->ge = floats(a, n);
  if (c->p->bias.grad) {
    x->plain_ds = doubles(a, n);
    x->plain_g = floats(a, n);
    x->plain_ge = floats(a, n);
  }
  x->key_terms = floats(a, w->keys);
  x->key_exact = floats(a, w->keys);
}

void fa_judge_lay_out(const fa_ref_call *c, bool backward, const fa_judge_lists *l, fa_judge_arena *a,
                      fa_judge_job *x, fa_judge_part *cleared) {
  lay_out_keys(c, backward, l->most_of_turn.keys, a, x);
  *cleared = backward ? fa_judge_part_from(a, x->dk.value) : (fa_judge_part){NULL, NULL};
  lay_out_rows(c, backward, l->most.rows, a, x);
  lay_out_pairs(c, backward, &l->most, a, x);
}

fa_judge_want fa_judge_lay_out_want(fa_judge_arena *a, const fa_want *like) {
  const int64_t n = like->n, rows = n > 0 ? n / like->shape[like->rank - 1] : 0;
  fa_judge_want w = {.value = doubles(a, n)};
  if (like->rest) w.rest = doubles(a, n);
  if (like->sum_error) w.sum_error = floats(a, n);
  w.quant = floats(a, n);
  w.accum = floats(a, n);
  w.noise = floats(a, n);
  w.scale = floats(a, rows);
  return w;
}
