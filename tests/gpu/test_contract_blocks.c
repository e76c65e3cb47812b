/* Block lists the other way round: the same pairs, each once, in ascending order. */
#include "gpu/contract/blocks.h"
#include "tests/support/check.h"

#include <string.h>

enum { B = 2, H = 1, NQ = 3, NK = 4 };

/* True if query block q of sequence b visits key block k. */
static int visits(int b, int q, int k) {
  return (b + q * 3 + k * 5) % 3 == 0;
}

/* Lists by query block, each in descending order. */
static void make(fa_tensors *t) {
  const int64_t counts[3] = {B, H, NQ}, indices[4] = {B, H, NQ, NK};
  fa_error err;
  REQUIRE(fa_tensors_add(t, FA_T_KV_NUM_BLOCKS, FA_I32, 3, counts, NULL, 0, &err) == FA_OK);
  REQUIRE(fa_tensors_add(t, FA_T_KV_INDICES, FA_I32, 4, indices, NULL, 0, &err) == FA_OK);
  int32_t *n = (int32_t *)t->t[FA_T_KV_NUM_BLOCKS].data, *at = (int32_t *)t->t[FA_T_KV_INDICES].data;
  for (int row = 0; row < B * NQ; ++row) {
    n[row] = 0;
    for (int k = NK - 1; k >= 0; --k)
      if (visits(row / NQ, row % NQ, k)) at[row * NK + n[row]++] = k;
  }
}

static void test_pairs(void) {
  fa_tensors call, turned;
  fa_error err = {""};
  memset(&call, 0, sizeof call);
  memset(&turned, 0, sizeof turned);
  make(&call);
  REQUIRE(fa_contract_turn_lists(&call, FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, &turned, &err) == FA_OK);
  const fa_tensor *index = &turned.t[FA_T_KV_INDICES];
  CHECK(index->rank == 4 && index->shape[2] == NK && index->shape[3] == NQ);
  const int32_t *n = (int32_t *)turned.t[FA_T_KV_NUM_BLOCKS].data, *at = (int32_t *)index->data;
  for (int b = 0; b < B; ++b)
    for (int k = 0; k < NK; ++k) {
      const int row = b * NK + k;
      int seen = 0;
      for (int q = 0; q < NQ; ++q)
        if (visits(b, q, k)) {
          CHECK(at[row * NQ + seen] == q);
          ++seen;
        }
      CHECK(n[row] == seen);
      for (int i = seen; i < NQ; ++i) CHECK(at[row * NQ + i] == 0);
    }
  fa_tensors_free(&call);
  fa_tensors_free(&turned);
}

/* A call without lists gets none. */
static void test_absent(void) {
  fa_tensors call, turned;
  fa_error err = {""};
  memset(&call, 0, sizeof call);
  memset(&turned, 0, sizeof turned);
  CHECK(fa_contract_turn_lists(&call, FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, &turned, &err) == FA_OK);
  CHECK(turned.t[FA_T_KV_INDICES].data == NULL);
}

int main(void) {
  test_pairs();
  test_absent();
  return check_done();
}
