/* Converts bytes to records and back; the record mutator. */
#include "cases/base/rng.h"
#include "fuzz/inputs/mutate.h"

#include <string.h>

typedef struct field_info {
  uint8_t bytes;
  uint64_t count;
} field_info;

#define EACH_ENTRY(f) [f... f + FA_RECORD_ENTRIES - 1]
enum { N_LENGTHS = FA_RECORD_LENGTH + 1, N_REACHES = FA_RECORD_LENGTH + 12 };

/* Tables in mutate_case.c may grow up to these counts. */
static const field_info info[FA_N_FIELDS] = {
    [FA_F_VERSION] = {1, 1},
    [FA_F_DTYPE] = {1, 2},
    [FA_F_BACKWARD] = {1, 2},
    [FA_F_BATCH] = {1, FA_RECORD_ENTRIES},
    [FA_F_HEADS_KV] = {1, 3},
    [FA_F_GROUP] = {1, 4},
    [FA_F_HEAD_DIM] = {1, 16},
    EACH_ENTRY(FA_F_LENGTH_Q) = {1, N_LENGTHS},
    EACH_ENTRY(FA_F_LENGTH_K) = {1, N_LENGTHS},
    [FA_F_VARLEN] = {1, 2},
    [FA_F_MASK] = {1, 3},
    [FA_F_LEFT] = {1, N_REACHES},
    [FA_F_RIGHT] = {1, N_REACHES},
    [FA_F_HAS_USED] = {1, 2},
    EACH_ENTRY(FA_F_USED) = {1, N_LENGTHS},
    [FA_F_HAS_LEFTPAD] = {1, 2},
    EACH_ENTRY(FA_F_LEFTPAD) = {1, N_LENGTHS},
    [FA_F_SCALE] = {1, 16},
    [FA_F_SOFTCAP] = {1, 16},
    [FA_F_ALIBI] = {1, 4},
    [FA_F_SLOPE] = {1, 9},
    [FA_F_DROPOUT] = {1, 17},
    [FA_F_DROPOUT_SEED] = {8, 0},
    [FA_F_DROPOUT_OFFSET] = {8, (uint64_t)1 << 63}, /* a launch never wraps the whole counter */
    [FA_F_DETERMINISTIC] = {1, 2},
    [FA_F_RETURN_SOFTMAX] = {1, 2},
    [FA_F_GRAD_LSE] = {1, 2},
    [FA_F_EMPTY_LSE] = {1, 3},
    [FA_F_FILL] = {1, FA_N_FILLS},
    [FA_F_FILL_V] = {1, FA_N_FILLS + 1},
    [FA_F_FILL_DO] = {1, FA_N_FILLS + 1},
    [FA_F_DATA_SEED] = {8, 0},
    [FA_F_SCHEDULE_SEED] = {4, (uint64_t)1 << 32},
    [FA_F_REPEAT] = {1, 2},
    [FA_F_POISON] = {1, FA_POISON_FINITE - FA_POISON_B + 1},
    [FA_F_LAYOUT] = {1, 3},
    [FA_F_PACKING] = {1, 3},
    [FA_F_GAP... FA_F_EXPAND - 1] = {1, 65},
    [FA_F_EXPAND... FA_F_OFFSET - 1] = {1, 8},
    [FA_F_OFFSET... FA_N_FIELDS - 1] = {1, 41},
};

uint64_t fa_record_field_count(fa_field f) {
  return info[f].count;
}

size_t fa_record_bytes(void) {
  size_t n = 0;
  for (int f = 0; f < FA_N_FIELDS; ++f) n += info[f].bytes;
  return n;
}

static uint64_t in_range(fa_field f, uint64_t v) {
  if (info[f].bytes < 8) v &= ((uint64_t)1 << 8 * info[f].bytes) - 1;
  return info[f].count ? v % info[f].count : v;
}

void fa_record_read(const uint8_t *data, size_t size, fa_record *out) {
  for (int f = 0; f < FA_N_FIELDS; ++f) {
    const size_t n = info[f].bytes;
    uint64_t v = 0;
    size -= size < n ? size : n;
    for (size_t i = 0; i < n; ++i) v |= (uint64_t)data[size + i] << 8 * i;
    out->v[f] = in_range((fa_field)f, v);
    if (size == 0) {
      memset(out->v + f + 1, 0, (size_t)(FA_N_FIELDS - f - 1) * sizeof *out->v);
      return;
    }
  }
}

void fa_record_write(const fa_record *r, uint8_t *bytes) {
  size_t at = fa_record_bytes();
  for (int f = 0; f < FA_N_FIELDS; ++f) {
    at -= info[f].bytes;
    for (int i = 0; i < info[f].bytes; ++i) bytes[at + (size_t)i] = (uint8_t)(r->v[f] >> 8 * i);
  }
}

/* ---- mutation ---- */

static const uint8_t boundaries[] = {0,  1,  2,  3,  7,  8,  15, 16,  17,  31,  32,  33, 47,
                                     48, 49, 63, 64, 65, 95, 96, 127, 128, 129, 139, 140};

static bool is_length(int f) {
  return (f >= FA_F_LENGTH_Q && f < FA_F_VARLEN) || f == FA_F_LEFT || f == FA_F_RIGHT ||
         (f >= FA_F_USED && f < FA_F_HAS_LEFTPAD) || (f >= FA_F_LEFTPAD && f < FA_F_SCALE);
}

/* Strides are two fifths of all fields, and the least interesting. */
static fa_field any_field(fa_rng *r) {
  return (fa_field)(fa_rng_chance(r, 0.85) ? fa_rng_range(r, FA_F_DTYPE, FA_F_PACKING)
                                           : fa_rng_range(r, FA_F_GAP, FA_N_FIELDS - 1));
}

static void change_field(fa_record *x, fa_rng *r) {
  const fa_field f = any_field(r);
  uint64_t *v = &x->v[f];
  const uint64_t most = info[f].count ? info[f].count - 1 : ~(uint64_t)0;
  switch (fa_rng_below(r, 4)) {
  case 0: /* a step, wrapping around at the ends */
    *v = fa_rng_chance(r, 0.5) ? (*v == most ? 0 : *v + 1) : (*v == 0 ? most : *v - 1);
    break;
  case 1:
    *v = is_length(f) ? boundaries[fa_rng_below(r, sizeof boundaries)] : fa_rng_chance(r, 0.5) ? 0 : most;
    break;
  default:
    *v = fa_rng_next(r);
  }
  *v = in_range(f, *v);
}

/* Swaps two fields of a kind; a query length and the key length; or two sequences' lengths. */
static void swap_fields(fa_record *x, fa_rng *r) {
  int f = (int)fa_rng_range(r, FA_F_LENGTH_Q, FA_F_VARLEN - 1), g;
  if (fa_rng_chance(r, 0.5))
    g = f < FA_F_LENGTH_K ? f + FA_RECORD_ENTRIES : f - FA_RECORD_ENTRIES;
  else
    g = (int)fa_rng_range(r, FA_F_LENGTH_Q, FA_F_VARLEN - 1);
  if (fa_rng_chance(r, 0.2)) f = FA_F_LEFT, g = FA_F_RIGHT;
  const uint64_t v = x->v[f];
  x->v[f] = x->v[g];
  x->v[g] = v;
}

/* Copies the per-sequence fields of sequence `from` to sequence `to`. */
static void copy_entry(fa_record *x, int to, int from) {
  static const int first[] = {FA_F_LENGTH_Q, FA_F_LENGTH_K, FA_F_USED, FA_F_LEFTPAD};
  for (size_t i = 0; i < sizeof first / sizeof *first; ++i) x->v[first[i] + to] = x->v[first[i] + from];
}

static void insert_entry(fa_record *x, fa_rng *r) {
  if (x->v[FA_F_BATCH] + 1 >= FA_RECORD_ENTRIES) return;
  const int n = (int)++x->v[FA_F_BATCH], at = (int)fa_rng_below(r, n + 1);
  x->v[FA_F_VARLEN] = 1;
  for (int i = n; i > at; --i) copy_entry(x, i, i - 1);
  x->v[FA_F_LENGTH_Q + at] = boundaries[fa_rng_below(r, sizeof boundaries)];
  if (fa_rng_chance(r, 0.5)) x->v[FA_F_LENGTH_K + at] = boundaries[fa_rng_below(r, sizeof boundaries)];
}

static void delete_entry(fa_record *x, fa_rng *r) {
  if (x->v[FA_F_BATCH] == 0) return;
  const int n = (int)x->v[FA_F_BATCH]--;
  for (int i = (int)fa_rng_below(r, n + 1); i < n; ++i) copy_entry(x, i, i + 1);
}

static void equal_lengths(fa_record *x) {
  for (int i = 0; i < FA_RECORD_ENTRIES; ++i) x->v[FA_F_LENGTH_K + i] = x->v[FA_F_LENGTH_Q + i];
}

static void mutate_record(fa_record *x, fa_rng *r) {
  switch (fa_rng_below(r, 10)) {
  case 0:
    swap_fields(x, r);
    break;
  case 1:
    x->v[FA_F_MASK] = (uint64_t)fa_rng_below(r, 3);
    break;
  case 2:
    insert_entry(x, r);
    break;
  case 3:
    delete_entry(x, r);
    break;
  case 4:
    if (fa_rng_chance(r, 0.3))
      equal_lengths(x);
    else
      x->v[FA_F_DATA_SEED] = fa_rng_next(r); /* other data with the same shape: another worst error */
    break;
  default:
    change_field(x, r);
  }
}

size_t fa_record_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, bool tape,
                        fa_mutate_fn raw) {
  const size_t n = fa_record_bytes();
  fa_rng r = fa_rng_make(seed, 0x6d757461);
  if (max_size < n || fa_rng_chance(&r, 0.1)) return raw(data, size, max_size);
  uint8_t record[512];
  FA_ASSERT(n <= sizeof record);
  fa_record x;
  fa_record_read(data, size, &x);
  size_t before = size > n && tape ? size - n : 0;
  if (tape && fa_rng_chance(&r, 0.6)) {
    before = max_size > n ? raw(data, before, max_size - n) : 0;
  } else {
    do mutate_record(&x, &r);
    while (fa_rng_chance(&r, 0.35));
  }
  fa_record_write(&x, record);
  memcpy(data + before, record, n);
  return before + n;
}

size_t fa_record_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                       size_t max_size, unsigned seed) {
  const size_t n = fa_record_bytes();
  fa_rng r = fa_rng_make(seed, 0x63726f73);
  fa_record x, y;
  if (max_size < n) return 0;
  fa_record_read(a, a_size, &x);
  fa_record_read(b, b_size, &y);
  bool second = false;
  for (int f = 0; f < FA_N_FIELDS; ++f) {
    if (fa_rng_chance(&r, 0.25)) second = !second;
    if (second) x.v[f] = y.v[f];
  }
  if (fa_rng_chance(&r, 0.5)) a = b, a_size = b_size;
  size_t before = a_size > n ? a_size - n : 0;
  if (before > max_size - n) before = max_size - n;
  if (before) memcpy(out, a, before);
  fa_record_write(&x, out + before);
  return before + n;
}
