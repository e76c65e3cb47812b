#include "ref/cuda/arrays.h"

void *fa_judge_take(fa_judge_arena *a, int64_t n, size_t size) {
  void *at = a->base ? a->base + a->used : NULL;
  a->used += ((size_t)n * size + 255) / 256 * 256;
  return at;
}

bool fa_judge_has_buffer_gradients(const fa_ref_call *c) {
  bool any = false;
  for (int k = 0; k < c->p->n_captures; ++k) any |= c->out->t[FA_T_DBUFFER_0 + k].n > 0;
  return any;
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

static size_t part_of(size_t bytes, int tenths) {
  const size_t part = bytes / 10 * (size_t)tenths;
  return part < MOST ? part : MOST;
}

static size_t least_of(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Of a call whose inputs are uploaded by turns, wants have most: a few heads are a turn, and a wave has what is left. */
static void divide_room(const fa_ref_call *c, size_t bytes, fa_judge_room *r) {
  r->turn_bytes = part_of(bytes, r->by_turn ? 3 : 5);
  r->wave_bytes = part_of(bytes, 5);
  if (!r->by_turn) return;
  const size_t head = (size_t)c->max_sk * r->key_bytes + (size_t)(c->p->seqlen_q * c->group) * r->query_bytes;
  if (head > r->turn_bytes && head < bytes) r->turn_bytes = head;
  r->wave_bytes = least_of(MOST, bytes - r->turn_bytes);
}

fa_judge_room fa_judge_room_of(const fa_ref_call *c, bool backward, bool by_turn, size_t bytes) {
  const size_t both = (size_t)(c->d + c->dv), wide = (size_t)(c->d > c->dv ? c->d : c->dv);
  const size_t f = sizeof(float), g = sizeof(double), element = by_turn ? fa_dtype_size(c->p->dtype) : 0;
  const bool plain = backward && (c->p->bias.grad || fa_judge_has_buffer_gradients(c));
  const bool apart = backward && fa_bound_heads_apart(c);
  const size_t turned = c->rotated.q ? 2 * (size_t)c->d * f : 0;
  const size_t stored = fa_bound_walks_scores(c) ? (size_t)c->d * (f + sizeof(int)) : 0;
  fa_judge_room r = {.by_turn = by_turn,
                     .apart = apart,
                     .query_bytes = element * (size_t)(c->d + (backward ? 2 * c->dv : 0)),
                     .key_bytes = both * (element + (backward ? OPERAND + SUMS : OPERAND)) + 6 * f + turned +
                                  stored + (apart ? both * f : 0),
                     .row_bytes = (backward ? both : (size_t)c->d) * OPERAND + wide * SUMS +
                                  sizeof(fa_judge_row) + turned + stored,
                     .pair_bytes = (backward ? 2 * g + 8 * f : g + 4 * f) + (plain ? g + 2 * f : 0) +
                                   (backward && c->p->score_mod ? 2 * g + 3 * f : 0),
                     .part_bytes = wide * g + sizeof(fa_judge_row_part)};
  divide_room(c, bytes, &r);
  return r;
}

static void lay_out_keys(const fa_ref_call *c, bool backward, int64_t n, fa_judge_arena *a, fa_judge_job *x) {
  x->k64 = doubles(a, n * c->d);
  x->v64 = doubles(a, n * c->dv);
  x->k1 = floats(a, n * c->d);
  x->k2 = floats(a, n * c->d);
  x->v1 = floats(a, n * c->dv);
  x->v2 = floats(a, n * c->dv);
  x->turned_k = c->rotated.q ? floats(a, 2 * n * c->d) : NULL;
  x->stored_k = fa_bound_walks_scores(c) ? floats(a, n * c->d) : NULL;
  x->exponent_k = fa_bound_walks_scores(c) ? fa_judge_take(a, n * c->d, sizeof *x->exponent_k) : NULL;
  x->max_k = floats(a, n);
  x->max_v = floats(a, n);
  if (!backward) return;
  x->dk = sums(a, n * c->d);
  x->dv = sums(a, n * c->dv);
  x->dk_terms = floats(a, n);
  x->dv_exact = floats(a, n);
  if (!fa_bound_heads_apart(c)) return;
  x->parts_dk = floats(a, n * c->d);
  x->parts_dv = floats(a, n * c->dv);
  x->io = (fa_bound_io){fa_dtype_unit_roundoff(c->p->dtype), fa_dtype_min_subnormal(c->p->dtype)};
}

static void lay_out_rows(const fa_ref_call *c, bool backward, const fa_judge_wave *w, fa_judge_arena *a,
                         fa_judge_job *x) {
  const int64_t n = w->rows;
  x->row = fa_judge_take(a, n, sizeof *x->row);
  x->q64 = doubles(a, n * c->d);
  x->q1 = floats(a, n * c->d);
  x->q2 = floats(a, n * c->d);
  x->turned_q = c->rotated.q ? floats(a, 2 * n * c->d) : NULL;
  x->stored_q = fa_bound_walks_scores(c) ? floats(a, n * c->d) : NULL;
  x->exponent_q = fa_bound_walks_scores(c) ? fa_judge_take(a, n * c->d, sizeof *x->exponent_q) : NULL;
  x->acc = sums(a, n * (backward ? c->d : c->dv));
  x->part = doubles(a, w->parts * (backward ? c->d : c->dv));
  if (!backward) return;
  x->row_part = fa_judge_take(a, w->parts, sizeof *x->row_part);
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
  if (c->p->bias.grad || fa_judge_has_buffer_gradients(c)) {
    x->plain_ds = doubles(a, n);
    x->plain_g = floats(a, n);
    x->plain_ge = floats(a, n);
  }
  if (c->p->score_mod) {
    x->mod.slope = doubles(a, n);
    x->mod.cap = floats(a, n);
    x->mod.cap_err = floats(a, n);
    x->mod.before = fa_judge_has_buffer_gradients(c) ? doubles(a, n) : NULL;
    x->mod.before_error = fa_judge_has_buffer_gradients(c) ? floats(a, n) : NULL;
  }
  x->key_terms = floats(a, w->keys);
  x->key_exact = floats(a, w->keys);
}

void fa_judge_lay_out(const fa_ref_call *c, bool backward, const fa_judge_lists *l, fa_judge_arena *a,
                      fa_judge_job *x, fa_judge_part *cleared) {
  lay_out_keys(c, backward, l->most_of_turn.keys, a, x);
  *cleared = backward ? fa_judge_part_from(a, x->dk.value) : (fa_judge_part){NULL, NULL};
  lay_out_rows(c, backward, &l->most, a, x);
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
