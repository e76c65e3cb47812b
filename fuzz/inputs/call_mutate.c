/* The mutator of calls. */
#include "cases/base/rng.h"
#include "fuzz/inputs/call_input.h"

#include <string.h>

static uint16_t any_value(fa_rng *r) {
  static const uint16_t values[] = {0,   1,   2,   3,   7,    8,    63,   64,    65,    127,  128,
                                    129, 255, 256, 257, 1023, 1024, 1025, 32767, 32768, 65535};
  const int64_t n = (int64_t)(sizeof values / sizeof *values);
  return fa_rng_chance(r, 0.6) ? values[fa_rng_below(r, n)] : (uint16_t)fa_rng_next(r);
}

static void write_change(uint8_t *at, fa_rng *r) {
  const uint16_t v = any_value(r);
  at[0] = (uint8_t)fa_rng_below(r, fa_call_input_arguments());
  at[1] = (uint8_t)(fa_rng_chance(r, 0.5) ? 0 : fa_rng_below(r, 8));
  at[2] = (uint8_t)v, at[3] = (uint8_t)(v >> 8);
}

static void change_head(uint8_t *head, fa_rng *r) {
  const int64_t bit = fa_rng_below(r, 24);
  if (bit < 16)
    head[2 + bit / 8] ^= (uint8_t)(1 << bit % 8);
  else if (bit < 20)
    head[1] = (uint8_t)fa_rng_next(r);
  else
    head[0] = (uint8_t)fa_rng_below(r, FA_CALL_INPUT_KINDS);
}

/* Returns the new number of changes. */
static size_t change_changes(uint8_t *changes, size_t n, size_t most, fa_rng *r) {
  const size_t at = n ? (size_t)fa_rng_below(r, (int64_t)n) : 0;
  uint8_t *one = changes + at * FA_CALL_INPUT_CHANGE;
  const int64_t what = fa_rng_below(r, 4);
  if (n == 0 || (what < 2 && n < most)) {
    write_change(changes + n * FA_CALL_INPUT_CHANGE, r);
    return n + 1;
  }
  if (what == 2) {
    memmove(one, one + FA_CALL_INPUT_CHANGE, (n - at - 1) * FA_CALL_INPUT_CHANGE);
    return n - 1;
  }
  const uint8_t argument = one[0];
  write_change(one, r);
  one[0] = argument;
  return n;
}

size_t fa_call_input_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, fa_mutate_fn raw) {
  fa_rng r = fa_rng_make(seed, 0x63616c6c);
  if (max_size < FA_CALL_INPUT_HEAD + FA_CALL_INPUT_CHANGE || fa_rng_chance(&r, 0.1))
    return raw(data, size, max_size);
  if (size < FA_CALL_INPUT_HEAD) memset(data + size, 0, FA_CALL_INPUT_HEAD - size), size = FA_CALL_INPUT_HEAD;
  const size_t most = (max_size - FA_CALL_INPUT_HEAD) / FA_CALL_INPUT_CHANGE;
  size_t n = (size - FA_CALL_INPUT_HEAD) / FA_CALL_INPUT_CHANGE;
  do
    if (fa_rng_chance(&r, 0.2))
      change_head(data, &r);
    else
      n = change_changes(data + FA_CALL_INPUT_HEAD, n, most, &r);
  while (fa_rng_chance(&r, 0.4));
  return FA_CALL_INPUT_HEAD + n * FA_CALL_INPUT_CHANGE;
}
