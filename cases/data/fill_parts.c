/* The LSE of parts that are merged. What a row's parts have in common depends on the row alone, and which part is the
 * largest, or empty, changes from row to row: a mistake with one place of the list shows in some row. */
#include "cases/base/rng.h"
#include "cases/data/build.h"

#include <math.h>

/* Which of a row's patterns it has, and how far its parts are turned. */
static int64_t turn_of(const fa_fill_row *r) {
  return r->b * 3 + r->h * 5 + r->s;
}

/* N(0,1), the same for every part of the row. */
static double of_row(const fa_fill_row *r) {
  const uint64_t key =
      fa_rng_key(fa_fill_seed(r->c->data_seed, FA_T_LSE_PARTS), (uint64_t)r->b << 32 | (uint64_t)r->h);
  return fa_rng_key_normal(key, (uint64_t)r->s << 34 | 1);
}

/* Parts are 0, 1, ... times the distance above the row's own number, in an order that turns from row to row. */
static double apart(const fa_fill_row *r, double distance) {
  return of_row(r) + distance * (double)((r->part + turn_of(r)) % r->c->problem.merge.parts);
}

/* The patterns of lse_empty, by the row's turn: nothing is empty, one part is, all but one are, all are; with -inf,
 * +inf and both. */
static double empty_or(const fa_fill_row *r, double otherwise) {
  const int64_t n = r->c->problem.merge.parts, turn = turn_of(r), one = turn / 8 % n;
  const double either = (r->part + turn / 8) % 2 ? INFINITY : -INFINITY;
  switch (turn % 8) {
  case 0:
    return -INFINITY;
  case 1:
    return INFINITY;
  case 2:
    return either;
  case 3:
    return r->part == one ? -INFINITY : otherwise;
  case 4:
    return r->part == one ? INFINITY : otherwise;
  case 5:
    return r->part != one ? -INFINITY : otherwise;
  case 6:
    return r->part != one ? either : otherwise;
  default:
    return otherwise;
  }
}

/* log of the number of keys whose scores are all alike, and something of the row. */
static double of_keys(const fa_fill_row *r) {
  const double lse = log(r->part == 0 ? 3072 : 64) + 0.1 * of_row(r);
  return r->c->problem.merge.base_2 ? lse / log(2) : lse;
}

static double plain(const fa_fill_row *r) {
  const double x = fa_fill_normal(r, 0, 0);
  switch (r->fill) {
  case FA_FILL_SMALL:
    return 0.1 * x;
  case FA_FILL_ZERO:
    return 0;
  case FA_FILL_INTEGER:
    return floor(2 * x);
  default:
    return x;
  }
}

double fa_fill_part_lse(const fa_fill_row *r) {
  switch (r->fill) {
  case FA_FILL_LSE_EQUAL:
    return apart(r, 0);
  case FA_FILL_LSE_NEAR:
    return apart(r, 0.1);
  case FA_FILL_LSE_20:
    return apart(r, 20);
  case FA_FILL_LSE_90:
    return apart(r, 90);
  case FA_FILL_LSE_200:
    return apart(r, 200);
  case FA_FILL_LSE_KEYS:
    return of_keys(r);
  case FA_FILL_LSE_EMPTY:
    return empty_or(r, plain(r));
  default:
    return plain(r);
  }
}

/* Rows share memory: what is in it is not only this row's. */
static bool is_shared(const fa_case *c, fa_tensor_id id) {
  const bool *expand = c->strides[id].expand;
  return expand[0] || expand[1] || expand[2];
}

bool fa_fill_part_is_nan(const fa_fill_row *r) {
  if (r->id != FA_T_O_PARTS || r->c->fill[FA_T_LSE_PARTS] != FA_FILL_LSE_EMPTY) return false;
  if (is_shared(r->c, FA_T_O_PARTS) || is_shared(r->c, FA_T_LSE_PARTS)) return false;
  return isinf(empty_or(r, 0)) && (r->part + turn_of(r) / 8) % 3 != 1;
}
