#include "fuzz/inputs/draws.h"

#include "fuzz/generate/parts.h"

#include <string.h>

enum { PROFILE = 31, WIDE = 32, HOPPER = 128, SINK_FILLS = 255, ATTEMPTS = 6 };

static uint64_t number(const uint8_t *data, size_t size, size_t at, size_t bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < bytes && at + i < size; ++i) v |= (uint64_t)data[at + i] << 8 * i;
  return v;
}

static size_t put(uint8_t *bytes, size_t at, uint64_t v, size_t n) {
  for (size_t i = 0; i < n; ++i) bytes[at + i] = (uint8_t)(v >> 8 * i);
  return at + n;
}

void fa_draws_read(const uint8_t *data, size_t size, fa_draws *out) {
  *out = (fa_draws){.head = (uint8_t)number(data, size, 0, 1), .key = number(data, size, 1, 8)};
  out->data = (uint16_t)number(data, size, 9, 2);
  for (size_t at = FA_DRAWS_HEAD; at + FA_DRAW_BYTES <= size && out->n < FA_DRAWS; at += FA_DRAW_BYTES) {
    const uint16_t stream = data[at];
    out->draw[out->n++] = (fa_rng_edit){.stream = stream == SINK_FILLS ? FA_GEN_SINK_FILLS : stream,
                                        .index = (uint16_t)number(data, size, at + 1, 2),
                                        .value = (uint16_t)number(data, size, at + 3, 2)};
  }
}

size_t fa_draws_write(const fa_draws *x, uint8_t *bytes) {
  size_t at = put(bytes, 0, x->head, 1);
  at = put(bytes, at, x->key, 8);
  at = put(bytes, at, x->data, 2);
  for (int i = 0; i < x->n; ++i) {
    const uint16_t stream = x->draw[i].stream;
    at = put(bytes, at, stream == FA_GEN_SINK_FILLS ? SINK_FILLS : stream, 1);
    at = put(bytes, at, x->draw[i].index, 2);
    at = put(bytes, at, x->draw[i].value, 2);
  }
  return at;
}

bool fa_draws_are_for_hopper(const fa_draws *x) {
  return (x->head & HOPPER) != 0;
}

static fa_status traced_case(const fa_draws *x, fa_rng_trace *trace, fa_case *out, fa_error *err) {
  const fa_generate_given given = {.profile = x->head & PROFILE,
                                   .wide = (x->head & WIDE) != 0,
                                   .key = x->key,
                                   .data = x->data,
                                   .draws = {x->draw, x->n, trace}};
  return fa_generate_given_case(&given, out, err);
}

fa_status fa_draws_to_case(const fa_draws *x, fa_case *out, fa_error *err) {
  return traced_case(x, NULL, out, err);
}

/* ---- mutation ---- */

/* The which-th draw of a stream, or the last one; NULL: there is none. */
static const fa_rng_edit *of_stream(const fa_rng_trace *t, uint16_t stream, int64_t which) {
  const fa_rng_edit *found = NULL;
  for (int i = 0; i < t->n; ++i)
    if (t->made[i].stream == stream && (!found || which-- > 0)) found = &t->made[i];
  return found;
}

/* One of those that the case makes, of any of its streams: some have one draw, some a hundred. */
static fa_rng_edit any_draw(const fa_draws *x, fa_rng *r) {
  static fa_rng_trace trace; /* large */
  fa_case c;
  trace.n = 0;
  if (traced_case(x, &trace, &c, NULL) != FA_OK) return (fa_rng_edit){.stream = FA_GEN_FILLS};
  fa_case_free(&c);
  for (;;) { /* every case draws */
    const uint16_t stream = (uint16_t)fa_rng_range(r, FA_GEN_FAMILY, FA_GEN_N_STREAMS);
    const int64_t most = (int64_t)1 << fa_rng_range(r, 0, 6);
    const fa_rng_edit *e =
        of_stream(&trace, stream < FA_GEN_N_STREAMS ? stream : FA_GEN_SINK_FILLS, fa_rng_below(r, most));
    if (e) return *e;
  }
}

/* The ends say yes and no to a chance; small numbers are the places in a table. */
static uint16_t any_value(fa_rng *r) {
  switch (fa_rng_below(r, 5)) {
  case 0:
    return 0;
  case 1:
    return 0xfffe;
  case 2:
    return (uint16_t)fa_rng_below(r, 32);
  default:
    return (uint16_t)fa_rng_next(r);
  }
}

static void add(fa_draws *x, fa_rng *r) {
  fa_rng_edit e = any_draw(x, r);
  e.value = any_value(r);
  if (x->n < FA_DRAWS) ++x->n;
  memmove(x->draw + 1, x->draw,
          (size_t)(x->n - 1) * sizeof *x->draw); /* first: it counts before those of its place */
  x->draw[0] = e;
}

static void change(fa_draws *x, fa_rng *r) {
  if (x->n == 0) return add(x, r);
  fa_rng_edit *e = &x->draw[fa_rng_below(r, x->n)];
  switch (fa_rng_below(r, 4)) {
  case 0:
    ++e->value;
    break;
  case 1:
    --e->value;
    break;
  default:
    e->value = any_value(r);
  }
}

static void leave_out(fa_draws *x, fa_rng *r) {
  if (x->n == 0) return add(x, r);
  const int at = (int)fa_rng_below(r, x->n--);
  memmove(x->draw + at, x->draw + at + 1, (size_t)(x->n - at) * sizeof *x->draw);
}

static void mutate(fa_draws *x, fa_rng *r) {
  switch (fa_rng_below(r, 12)) {
  case 0:
    x->key = fa_rng_next(r);
    break;
  case 1:
    x->data = (uint16_t)fa_rng_next(r);
    break;
  case 2:
    x->head = (uint8_t)((x->head & ~PROFILE) | fa_rng_below(r, PROFILE + 1));
    break;
  case 3:
    x->head ^= fa_rng_chance(r, 0.5) ? WIDE : HOPPER;
    break;
  case 4:
  case 5:
    leave_out(x, r);
    break;
  case 6:
  case 7:
    change(x, r);
    break;
  default:
    add(x, r);
  }
}

/* Making two cases takes a thousandth of the time that running one does. */
static bool is_another_case(const fa_draws *x, const fa_draws *y) {
  fa_case a, b;
  if (fa_draws_are_for_hopper(x) != fa_draws_are_for_hopper(y)) return true;
  if (fa_draws_to_case(x, &a, NULL) != FA_OK) return true;
  if (fa_draws_to_case(y, &b, NULL) != FA_OK) {
    fa_case_free(&a);
    return true;
  }
  const bool same = fa_case_equal(&a, &b);
  fa_case_free(&a);
  fa_case_free(&b);
  return !same;
}

size_t fa_draws_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, fa_mutate_fn raw) {
  fa_rng r = fa_rng_make(seed, 0x64726177);
  if (max_size < FA_DRAWS_BYTES || fa_rng_chance(&r, 0.05)) return raw(data, size, max_size);
  fa_draws before, x;
  fa_draws_read(data, size, &before);
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    x = before;
    do mutate(&x, &r);
    while (fa_rng_chance(&r, 0.35));
    if (is_another_case(&before, &x)) break;
  }
  return fa_draws_write(&x, data);
}

size_t fa_draws_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                      size_t max_size, unsigned seed) {
  fa_rng r = fa_rng_make(seed, 0x63726f73);
  fa_draws x, y;
  if (max_size < FA_DRAWS_BYTES) return 0;
  fa_draws_read(a, a_size, &x);
  fa_draws_read(b, b_size, &y);
  if (fa_rng_chance(&r, 0.3)) x.head = y.head;
  if (fa_rng_chance(&r, 0.3)) x.key = y.key;
  int n = 0;
  fa_rng_edit both[2 * FA_DRAWS];
  for (int i = 0; i < x.n; ++i)
    if (fa_rng_chance(&r, 0.6)) both[n++] = x.draw[i];
  for (int i = 0; i < y.n; ++i)
    if (fa_rng_chance(&r, 0.6)) both[n++] = y.draw[i];
  x.n = n < FA_DRAWS ? n : FA_DRAWS;
  memcpy(x.draw, both, (size_t)x.n * sizeof *both);
  return fa_draws_write(&x, out);
}
