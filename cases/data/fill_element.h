/* One element of a fill: a function of its position, its draws and a few numbers of its tensor, which the CPU and a device
 * share. Only correctly rounded operations and no libm, so that both make the same bits. What else shapes a tensor - rows of
 * one_hot and staircases, biases, sinks, parts - is made on the CPU alone (cases/data/fill_values.c). */
#ifndef FA_CASES_DATA_FILL_ELEMENT_H
#define FA_CASES_DATA_FILL_ELEMENT_H

#include "cases/base/rng_normal.h"
#include "cases/tensors/table.h"
#include "cases/vocabulary/fill.h"

/* Of a tensor, whatever the row. */
typedef struct fa_fill_numbers {
  fa_fill fill;
  fa_tensor_data data; /* the tensor's role */
  int64_t width;       /* elements of a row */
  bool eight_bits, i8; /* how it is stored */
  double clip;         /* the largest number of the problem's type */
  double max, least;   /* of the stored type: the largest number, the smallest above 0 */
  int64_t subnormals;  /* of the stored type, 0 included, of one sign */
  int64_t outlier;     /* channel of that fill */
  double spread, last; /* constant logits: factor of the draws, and what the last element is instead */
  int64_t group, heads_kv;
  const double *v_mean; /* [batch, KV head, width]: do_aligned; else NULL */
} fa_fill_numbers;

/* A row of it. */
typedef struct fa_fill_place {
  uint64_t key;        /* of its sequence and head */
  const double *drawn; /* the normal numbers of lane 0, if all were drawn at once; or NULL */
  int64_t b, h, s;
  int64_t sq; /* rows of the sequence: for do_one_hot */
} fa_fill_place;

/* Lanes 0..3 are independent. */
FA_BOTH uint64_t fa_fill_index(int64_t s, int64_t d, int lane) {
  return (uint64_t)s << 34 | (uint64_t)d << 2 | (uint64_t)lane;
}

FA_BOTH uint64_t fa_fill_word(const fa_fill_place *at, int64_t d, int lane) {
  return fa_rng_draw_u64(at->key, fa_fill_index(at->s, d, lane));
}

FA_BOTH double fa_fill_draw(const fa_fill_place *at, int64_t d, int lane) {
  if (lane == 0 && at->drawn) return at->drawn[d];
  return fa_rng_draw_normal(at->key, fa_fill_index(at->s, d, lane));
}

/* The same row at slot s, to reuse that slot's random numbers. */
FA_BOTH fa_fill_place fa_fill_at_slot(const fa_fill_place *at, int64_t s) {
  fa_fill_place other = *at;
  other.s = s;
  other.drawn = NULL;
  return other;
}

FA_BOTH double fa_fill_draw_at_slot(const fa_fill_place *at, int64_t s, int64_t d) {
  const fa_fill_place other = fa_fill_at_slot(at, s);
  return fa_fill_draw(&other, d, 0);
}

/* Integer in [-limit, limit]. */
FA_BOTH double fa_fill_small_integer(const fa_fill_place *at, int64_t d, int64_t limit) {
  return (double)(int64_t)(fa_fill_word(at, d, 0) >> 32) * (double)(2 * limit + 1) * 0x1p-32 - (double)limit;
}

/* Clipped to the range of its values, not of what is stored in 8 bits. */
FA_BOTH double fa_fill_student_t3(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  double sum = 0;
  for (int lane = 1; lane <= 3; ++lane) {
    const double draw = fa_fill_draw(at, d, lane);
    sum += draw * draw;
  }
  const double t = fa_fill_draw(at, d, 0) / sqrt(sum / 3);
  return t > x->clip ? x->clip : t < -x->clip ? -x->clip : t;
}

/* Any subnormal of the stored type but 0, either sign; 1 and -1 of i8. */
FA_BOTH double fa_fill_subnormal(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  const uint64_t u = fa_fill_word(at, d, 0);
  if (x->i8) return u & 1 ? -1 : 1;
  const double magnitude = (double)(1 + (int64_t)((u >> 32) % (uint64_t)(x->subnormals - 1))) * x->least;
  return u & 1 ? -magnitude : magnitude;
}

/* The last numbers before the type's largest, all of one sign in a head: from 57344 to 63232, all exact in bf16, which
 * leaves 3 % for roundings of the mean. */
FA_BOTH double fa_fill_near_max(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  const fa_fill_place head = fa_fill_at_slot(at, 0);
  const double sign = fa_fill_word(&head, 0, 1) & 1 ? -1.0 : 1.0;
  const uint64_t u = fa_fill_word(at, d, 0) >> 32;
  if (x->eight_bits) return sign * x->max * (1 - (double)(u % 3) / 16);
  return sign * (57344 + 256 * (double)(u % 24));
}

/* What is stored in 8 bits, and where a conversion may go wrong. */
FA_BOTH double fa_fill_edge(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  const uint64_t u = fa_fill_word(at, d, 1);
  const double sign = u & 1 ? -1.0 : 1.0;
  switch (u >> 32 & 15) {
  case 0:
    return sign * x->max;
  case 1:
    return sign * x->max * 4; /* saturates */
  case 2:
    return sign * x->least;
  case 3:
    return sign * x->least / 2; /* a tie with 0 */
  case 4:
    return sign * 0.0;
  case 5:
    return fa_fill_subnormal(x, at, d);
  default:
    return 16 * fa_fill_draw(at, d, 0);
  }
}

/* Fills that give every tensor the same distribution, whatever its role. */
FA_BOTH double fa_fill_plain(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->fill) {
  case FA_FILL_SMALL:
    return 0.1 * fa_fill_draw(at, d, 0);
  case FA_FILL_HEAVY_TAIL:
    return fa_fill_student_t3(x, at, d);
  case FA_FILL_UNIFORM:
    return 2 * fa_rng_to_uniform(fa_fill_word(at, d, 0)) - 1;
  case FA_FILL_ZERO:
    return 0;
  case FA_FILL_EDGES:
    return x->eight_bits ? fa_fill_edge(x, at, d) : fa_fill_draw(at, d, 0);
  case FA_FILL_INTEGER:
    return floor(fa_fill_small_integer(at, d, x->data == FA_DATA_QUERY || x->data == FA_DATA_KEY ? 2 : 4));
  default:
    return fa_fill_draw(at, d, 0);
  }
}

/* The last element carries the logit, the others scatter it. */
FA_BOTH double fa_fill_constant_logit(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  return d == x->width - 1 ? x->last : x->spread * fa_fill_draw(at, d, 0);
}

FA_BOTH double fa_fill_query(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->fill) {
  case FA_FILL_LOGITS_4X:
    return 4 * fa_fill_draw(at, d, 0);
  case FA_FILL_LOGITS_64X:
    return 64 * fa_fill_draw(at, d, 0);
  case FA_FILL_OUTLIER:
    return (d == x->outlier ? 20 : 1) * fa_fill_draw(at, d, 0);
  case FA_FILL_UNIFORM_EXACT:
    return 0;
  case FA_FILL_NEGATIVE_LOGITS:
  case FA_FILL_SENTINEL:
    return fa_fill_constant_logit(x, at, d);
  default:
    return fa_fill_plain(x, at, d);
  }
}

FA_BOTH double fa_fill_key(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->fill) {
  case FA_FILL_OUTLIER:
    return (d == x->outlier ? 20 : 1) * fa_fill_draw(at, d, 0);
  case FA_FILL_DUPLICATE_KEYS:
    return fa_fill_draw_at_slot(at, at->s & 3, d);
  case FA_FILL_TIES:
    return fa_fill_draw_at_slot(at, 0, d);
  case FA_FILL_NEGATIVE_LOGITS:
  case FA_FILL_SENTINEL:
    return fa_fill_constant_logit(x, at, d);
  default:
    return fa_fill_plain(x, at, d);
  }
}

FA_BOTH double fa_fill_value(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->fill) {
  case FA_FILL_V_OFFSET:
    return 8 + fa_fill_draw(at, d, 0);
  case FA_FILL_POSITIONAL_V:
  case FA_FILL_UNIFORM_EXACT:
    return (double)(int64_t)(fa_fill_word(at, d, 0) >> 56) - 128; /* exact in bf16 */
  case FA_FILL_DUPLICATE_KEYS:
    return fa_fill_draw_at_slot(at, at->s & 3, d);
  case FA_FILL_DENORMAL:
    return fa_fill_subnormal(x, at, d);
  case FA_FILL_NEAR_MAX:
    return fa_fill_near_max(x, at, d);
  case FA_FILL_CANCELLATION:
    return (at->s & 1 ? -1 : 1) * fa_fill_draw_at_slot(at, 0, d);
  default:
    return fa_fill_plain(x, at, d);
  }
}

/* Under do_one_hot one row of do is nonzero: one of the last 8, because under causal masks the last rows see
 * keys if any row does. The heads of a group use different columns, so that dV does not mix them. */
FA_BOTH double fa_fill_one_hot_gradient(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  const fa_fill_place head = fa_fill_at_slot(at, 0);
  const int64_t last = at->sq - 1, of = at->sq < 8 ? at->sq : 8;
  const int64_t row = last - (int64_t)(fa_fill_word(&head, 0, 0) % (uint64_t)of);
  return at->s == row && d == at->h % x->width ? 1 : 0;
}

FA_BOTH double fa_fill_gradient(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->fill) {
  case FA_FILL_DENORMAL:
    return fa_fill_subnormal(x, at, d);
  case FA_FILL_NEAR_MAX:
    return 0x1p-6 * fa_fill_draw(at, d, 0); /* keeps dV and dK in f16's range */
  case FA_FILL_DO_ALIGNED:
    return x->v_mean[(at->b * x->heads_kv + at->h / x->group) * x->width + d] +
           0.125 * fa_fill_draw(at, d, 0);
  case FA_FILL_DO_ONE_HOT:
    return fa_fill_one_hot_gradient(x, at, d);
  default:
    return fa_fill_plain(x, at, d);
  }
}

/* Before it is rounded to the stored type. */
FA_BOTH double fa_fill_element(const fa_fill_numbers *x, const fa_fill_place *at, int64_t d) {
  switch (x->data) {
  case FA_DATA_QUERY:
    return fa_fill_query(x, at, d);
  case FA_DATA_KEY:
    return fa_fill_key(x, at, d);
  case FA_DATA_VALUE:
    return fa_fill_value(x, at, d);
  case FA_DATA_GRADIENT:
    return fa_fill_gradient(x, at, d);
  default:
    return fa_fill_plain(x, at, d);
  }
}

#endif
