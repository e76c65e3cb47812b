/* Which kernel a call over a cache of 8 or 4 bits gets: one of the fewest rows where it can do the call, and the one that fills a
 * processor where each tile has one to itself, there is one of just its width, and the device has room for it. */
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/cache_forward.h"
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <string.h>

enum { PROCESSORS = 132, HEADS = 4 };

typedef struct row {
  fa_dtype element;
  int head_dim, seqlen_q, tiles; /* heads_q is twice heads_kv */
  bool unaligned, softcap;
  int kilobytes; /* of shared memory; 0: any */
  const char *kernel;
} row;

static const row rows[] = {
    {FA_E4M3, 128, 1, 132, false, false, 0, "cache_e4m3_f16_128_filling"},
    {FA_E4M3, 128, 4, 132, false, false, 227, "cache_e4m3_f16_128_filling"},
    {FA_E2M1, 128, 4, 4, false, false, 0, "cache_e2m1_f16_128_filling"},
    {FA_I8, 96, 1, 4, false, false, 0, "cache_i8_f16_128_filling"},
    {FA_E4M3, 128, 1, 136, false, false, 0, "cache_e4m3_f16_128_fewest"},
    {FA_E4M3, 128, 1, 132, false, false, 163, "cache_e4m3_f16_128_fewest"},
    {FA_E5M2, 128, 1, 132, false, false, 99, "cache_e5m2_f16_128_fewest"},
    {FA_E4M3, 64, 1, 4, false, false, 0, "cache_e4m3_f16_64_fewest"},
    {FA_E2M1, 48, 1, 4, false, false, 0, "cache_e2m1_f16_64_fewest"},
    {FA_E4M3, 256, 1, 4, false, false, 99, "cache_e4m3_f16_256_fewest"},
    {FA_E2M1, 256, 1, 4, false, false, 0, "cache_e2m1_f16_256_few"},
    {FA_E4M3, 128, 5, 4, false, false, 0, "cache_e4m3_f16_128_few"},
    {FA_E4M3, 128, 9, 4, false, false, 0, "cache_e4m3_f16_128_many"},
    {FA_E4M3, 128, 1, 4, true, false, 0, "cache_e4m3_f16_128_few"},
    {FA_E4M3, 128, 1, 4, false, true, 0, "cache_e4m3_f16_128_few"},
};

static void check_row(const row *r) {
  const fa_kernel_device device = {.max_shared_bytes = (size_t)(r->kilobytes ? r->kilobytes : 1000) * 1024, .compiles = 1};
  fa_attention a;
  fa_inference kv;
  fa_error err = {""};
  fa_attention_init(&a);
  fa_inference_init(&kv);
  a.dtype = FA_F16, a.head_dim = r->head_dim, a.seqlen_q = r->seqlen_q, a.seqlen_k = 512;
  a.batch = r->tiles / HEADS, a.heads_q = 2 * HEADS, a.heads_kv = HEADS;
  a.softcap = r->softcap ? 5 : 0;
  kv.quantized = true, kv.cache_dtype = r->element;
  const fa_call call = {.kind = FA_CALL_CACHE, .a = &a, .cache = &kv, .n_processors = PROCESSORS};
  const fa_cache_kernel *k = fa_cache_kernel_of(&a, &kv, !r->unaligned, &device, &err);
  REQUIRE(k);
  k = fa_cache_filling(&call, k, !r->unaligned, &device);
  CHECK_MSG(strcmp(k->name, r->kernel) == 0, "head_dim %d, %d rows, %d tiles: %s, not %s", r->head_dim,
            2 * r->seqlen_q, r->tiles, k->name, r->kernel);
  CHECK_MSG(k->shared_bytes <= device.max_shared_bytes, "%s", k->name);
}

int main(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) check_row(&rows[i]);
  return check_done();
}
