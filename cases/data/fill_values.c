/* The values of one row of a filled tensor. */
#include "cases/base/rng.h"
#include "cases/data/build.h"

#include <math.h>

/* Keyed by name (FNV-1a), not by number: adding a tensor must not change the data of the others. New keys get
 * the values that the cache would have in the slots they will occupy, so that appending them equals finding
 * them there. */
uint64_t fa_fill_seed(uint64_t data_seed, fa_tensor_id id) {
  uint64_t h = 0xcbf29ce484222325u;
  if (fa_tensor_describe(id)->axes == FA_AXES_NEW) id = fa_tensor_describe(id)->of;
  for (const char *s = fa_tensor_id_name(id); *s; ++s) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
  return fa_rng_u64(data_seed, h, 0);
}

static uint64_t index_of(const fa_fill_row *r, int64_t d, int lane) {
  return (uint64_t)r->s << 34 | (uint64_t)d << 2 | (uint64_t)lane;
}

uint64_t fa_fill_u64(const fa_fill_row *r, int64_t d, int lane) {
  return fa_rng_key_u64(r->key, index_of(r, d, lane));
}

double fa_fill_normal(const fa_fill_row *r, int64_t d, int lane) {
  if (lane == 0 && r->drawn) return r->drawn[d];
  return fa_rng_key_normal(r->key, index_of(r, d, lane));
}

/* The same row at slot s, to reuse that slot's random numbers. */
static fa_fill_row at_slot(const fa_fill_row *r, int64_t s) {
  fa_fill_row other = *r;
  other.s = s;
  other.drawn = NULL;
  return other;
}

/* Integer in [-limit, limit]. */
static double small_integer(const fa_fill_row *r, int64_t d, int64_t limit) {
  return (double)(int64_t)(fa_fill_u64(r, d, 0) >> 32) * (double)(2 * limit + 1) * 0x1p-32 - (double)limit;
}

static double student_t3(const fa_fill_row *r, int64_t d) {
  double sum = 0;
  for (int lane = 1; lane <= 3; ++lane) {
    const double x = fa_fill_normal(r, d, lane);
    sum += x * x;
  }
  const double t = fa_fill_normal(r, d, 0) / sqrt(sum / 3);
  const double max = fa_dtype_max(r->c->problem.dtype); /* of its values, not of what is stored in 8 bits */
  return t > max ? max : t < -max ? -max : t;
}

static fa_dtype dtype_of(const fa_fill_row *r) {
  return fa_tensor_dtype(&r->c->problem, r->id);
}

static bool is_eight_bits(const fa_fill_row *r) {
  return fa_tensor_descale_of(&r->c->problem, r->id) != FA_T_COUNT;
}

/* Any subnormal of the dtype but 0, either sign; 1 and -1 of i8. */
static double subnormal(const fa_fill_row *r, int64_t d) {
  const fa_dtype t = dtype_of(r);
  const uint64_t u = fa_fill_u64(r, d, 0);
  if (t == FA_I8) return u & 1 ? -1 : 1;
  const int64_t n = (int64_t)(0.5 / fa_dtype_unit_roundoff(t)); /* the smallest normal, in subnormals */
  const double magnitude = (double)(1 + (int64_t)((u >> 32) % (uint64_t)(n - 1))) * fa_dtype_min_subnormal(t);
  return u & 1 ? -magnitude : magnitude;
}

/* The last numbers before the type's largest, all of one sign in a head. */
static double near_max(const fa_fill_row *r, int64_t d) {
  const fa_fill_row head = at_slot(r, 0);
  const double sign = fa_fill_u64(&head, 0, 1) & 1 ? -1.0 : 1.0, max = fa_dtype_max(dtype_of(r));
  const uint64_t u = fa_fill_u64(r, d, 0) >> 32;
  if (is_eight_bits(r)) return sign * max * (1 - (double)(u % 3) / 16);
  return sign *
         (57344 +
          256 * (double)(u % 24)); /* to 63232, all exact in bf16; leaves 3 % for roundings of the mean */
}

/* What is stored in 8 bits, and where a conversion may go wrong. */
static double edge(const fa_fill_row *r, int64_t d) {
  const uint64_t u = fa_fill_u64(r, d, 1);
  const double sign = u & 1 ? -1.0 : 1.0, max = fa_dtype_max(dtype_of(r)),
               least = fa_dtype_min_subnormal(dtype_of(r));
  switch (u >> 32 & 15) {
  case 0:
    return sign * max;
  case 1:
    return sign * max * 4; /* saturates */
  case 2:
    return sign * least;
  case 3:
    return sign * least / 2; /* a tie with 0 */
  case 4:
    return sign * 0.0;
  case 5:
    return subnormal(r, d);
  default:
    return 16 * fa_fill_normal(r, d, 0);
  }
}

/* Fills that give every tensor the same distribution, whatever its role. */
static double plain_value(const fa_fill_row *r, int64_t d) {
  switch (r->fill) {
  case FA_FILL_SMALL:
    return 0.1 * fa_fill_normal(r, d, 0);
  case FA_FILL_HEAVY_TAIL:
    return student_t3(r, d);
  case FA_FILL_UNIFORM:
    return 2 * (((double)(fa_fill_u64(r, d, 0) >> 12) + 0.5) * 0x1p-52) - 1;
  case FA_FILL_ZERO:
    return 0;
  case FA_FILL_EDGES:
    return is_eight_bits(r) ? edge(r, d) : fa_fill_normal(r, d, 0);
  case FA_FILL_INTEGER:
    return floor(small_integer(r, d, r->data == FA_DATA_QUERY || r->data == FA_DATA_KEY ? 2 : 4));
  default:
    return fa_fill_normal(r, d, 0);
  }
}

static double query_value(const fa_fill_row *r, int64_t d, int64_t outlier) {
  switch (r->fill) {
  case FA_FILL_LOGITS_4X:
    return 4 * fa_fill_normal(r, d, 0);
  case FA_FILL_LOGITS_64X:
    return 64 * fa_fill_normal(r, d, 0);
  case FA_FILL_OUTLIER:
    return (d == outlier ? 20 : 1) * fa_fill_normal(r, d, 0);
  case FA_FILL_UNIFORM_EXACT:
    return 0;
  default:
    return plain_value(r, d);
  }
}

static double key_value(const fa_fill_row *r, int64_t d, int64_t outlier) {
  fa_fill_row same;
  switch (r->fill) {
  case FA_FILL_OUTLIER:
    return (d == outlier ? 20 : 1) * fa_fill_normal(r, d, 0);
  case FA_FILL_DUPLICATE_KEYS:
    same = at_slot(r, r->s & 3);
    return fa_fill_normal(&same, d, 0);
  case FA_FILL_TIES:
    same = at_slot(r, 0);
    return fa_fill_normal(&same, d, 0);
  default:
    return plain_value(r, d);
  }
}

static double value_value(const fa_fill_row *r, int64_t d) {
  fa_fill_row same;
  switch (r->fill) {
  case FA_FILL_V_OFFSET:
    return 8 + fa_fill_normal(r, d, 0);
  case FA_FILL_POSITIONAL_V:
  case FA_FILL_UNIFORM_EXACT:
    return (double)(int64_t)(fa_fill_u64(r, d, 0) >> 56) - 128; /* exact in bf16 */
  case FA_FILL_DUPLICATE_KEYS:
    same = at_slot(r, r->s & 3);
    return fa_fill_normal(&same, d, 0);
  case FA_FILL_DENORMAL:
    return subnormal(r, d);
  case FA_FILL_NEAR_MAX:
    return near_max(r, d);
  case FA_FILL_CANCELLATION:
    same = at_slot(r, 0);
    return (r->s & 1 ? -1 : 1) * fa_fill_normal(&same, d, 0);
  default:
    return plain_value(r, d);
  }
}

/* Under do_one_hot one row of do is nonzero: one of the last 8, because under causal masks the last rows see
 * keys if any row does. The heads of a group use different columns, so that dV does not mix them. */
static double one_hot_gradient(const fa_fill_row *r, int64_t d, int64_t n) {
  const int64_t sq = fa_case_sequence(&r->c->problem, r->b).sq;
  const fa_fill_row head = at_slot(r, 0);
  const int64_t row = sq - 1 - (int64_t)(fa_fill_u64(&head, 0, 0) % (uint64_t)(sq < 8 ? sq : 8));
  return r->s == row && d == r->h % n ? 1 : 0;
}

static double gradient_value(const fa_fill_row *r, int64_t d, int64_t n) {
  const fa_problem *p = &r->c->problem;
  const int64_t kv_head = r->h / (p->heads_q / p->heads_kv);
  switch (r->fill) {
  case FA_FILL_DENORMAL:
    return subnormal(r, d);
  case FA_FILL_NEAR_MAX:
    return 0x1p-6 * fa_fill_normal(r, d, 0); /* keeps dV and dK in f16's range */
  case FA_FILL_DO_ALIGNED:
    return r->v_mean[(r->b * p->heads_kv + kv_head) * n + d] + 0.125 * fa_fill_normal(r, d, 0);
  case FA_FILL_DO_ONE_HOT:
    return one_hot_gradient(r, d, n);
  default:
    return plain_value(r, d);
  }
}

/* A prefix length that crosses a tile boundary if there are enough keys: a first tile of 64 or 128 keys fully
 * masked, and some more. */
static int64_t neg_inf_prefix(int64_t n_keys) {
  return n_keys > 130 ? 130 : n_keys > 66 ? 66 : n_keys / 2;
}

static bool finfo_min_masks(const fa_fill_row *r, int64_t j, int64_t n_keys) {
  const fa_problem *p = &r->c->problem;
  if (!p->bias.per_query) return 4 * j >= 3 * n_keys; /* key padding at the end */
  if (j > r->s + n_keys - p->seqlen_q) return true;   /* causal */
  return r->h % 2 == 1 && j < neg_inf_prefix(n_keys); /* odd heads: a masked prefix too */
}

static double bias_value(const fa_fill_row *r, int64_t j, int64_t n_keys) {
  switch (r->fill) {
  case FA_FILL_NEG_INF_PREFIX:
    if (j < neg_inf_prefix(n_keys)) return -INFINITY;
    break;
  case FA_FILL_NEG_INF_ROWS:
    if ((r->b + r->h + r->s) % 4 == 1) return -INFINITY;
    break;
  case FA_FILL_FINFO_MIN:
    if (finfo_min_masks(r, j, n_keys)) return -fa_dtype_max(r->c->problem.dtype);
    break;
  default:
    return plain_value(r, j);
  }
  return fa_fill_normal(r, j, 0);
}

/* About the largest of n_keys logits N(0,1). */
static double usual_maximum(int64_t n_keys) {
  return n_keys > 1 ? sqrt(2 * log((double)n_keys)) : 0;
}

/* The sizes at which kernels have gone wrong, from head to head in turn; the seed says which is first. Every second
 * round of heads has numbers that bf16 cannot hold. */
static double sink_size(const fa_fill_row *r) {
  const double m = floor(2 * usual_maximum(r->c->problem.seqlen_k)) / 2;
  const double sizes[] = {m, -INFINITY, 20, -20, m + 1, -100, 100, m - 1};
  const uint64_t at = (r->seed >> 8) + (uint64_t)r->h;
  const double shift = at / 8 % 2 ? 0.017 + 0.01 * (double)(r->h % 7) : 0;
  return sizes[at % 8] + shift;
}

static double sink_value(const fa_fill_row *r) {
  if (r->fill == FA_FILL_SINK_NONE) return -INFINITY;
  return r->fill == FA_FILL_SINK_SIZES ? sink_size(r) : plain_value(r, 0);
}

/* By the tensor's role in the computation. */
static double value_of(const fa_fill_row *r, int64_t d, int64_t n, int64_t outlier) {
  switch (r->data) {
  case FA_DATA_QUERY:
    return query_value(r, d, outlier);
  case FA_DATA_KEY:
    return key_value(r, d, outlier);
  case FA_DATA_VALUE:
    return value_value(r, d);
  case FA_DATA_GRADIENT:
    return gradient_value(r, d, n);
  case FA_DATA_BIAS:
    return bias_value(r, d, n);
  case FA_DATA_LSE:
    return fa_fill_part_lse(r);
  case FA_DATA_SINKS:
    return sink_value(r);
  default:
    return plain_value(r, d);
  }
}

void fa_fill_row_values(const fa_fill_row *row, double *value, int64_t n) {
  fa_fill_row keyed = *row;
  keyed.data = fa_tensor_describe(row->id)->data;
  const fa_fill_row *r = &keyed;
  keyed.key = fa_rng_key(row->seed, (uint64_t)row->b << 32 | (uint64_t)row->h);
  if (fa_fill_part_is_nan(r)) {
    for (int64_t d = 0; d < n; ++d) value[d] = NAN;
    return;
  }
  if (fa_fill_logits_row(r, value, n)) return;
  fa_rng_key_normals(r->key, index_of(r, 0, 0), index_of(r, 1, 0) - index_of(r, 0, 0), n, value);
  if (r->fill == FA_FILL_NORMAL) return;
  keyed.drawn = value; /* each draw is read before its value replaces it */
  /* One channel for all heads and rows, the same for q and k; it stays the same if D shrinks to 8. */
  const int64_t channel = (int64_t)(fa_rng_u64(r->c->data_seed, 0x0471e6, 0) % 8),
                outlier = channel < n ? channel : 0;
  for (int64_t d = 0; d < n; ++d) value[d] = value_of(r, d, n, outlier);
}
