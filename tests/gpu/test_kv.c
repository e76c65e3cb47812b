/* fa_forward_kvcache of gpu/fa.h: bad arguments one by one, the status and a message that names the field;
 * what is planned for good ones; and contents, as check_device_data sees them. None of it needs a GPU. */
#include "gpu/call/check_cache.h"
#include "gpu/kernels/params/cache.h"
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* Addresses that nobody follows. */
static char memory[1 << 16] __attribute__((aligned(256)));
static int32_t ints[16];
static float slopes[4];

static void valid(fa_attention *a, fa_inference *kv) {
  fa_attention_init(a);
  a->batch = 2, a->heads_q = 4, a->heads_kv = 2, a->seqlen_q = 3, a->seqlen_k = 20, a->head_dim = 64;
  a->scale = 0.125;
  a->q = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = a->o_stride = fa_strides_dense(3, 4, 64);
  a->lse_stride = (fa_strides){12, 1, 3};
  fa_inference_init(kv);
  kv->k_cache = kv->v_cache = memory;
  kv->k_cache_stride = kv->v_cache_stride = fa_strides_dense(20, 2, 64);
  kv->cache_rows = 2;
  kv->cache_seqlens = ints;
}

static void append(fa_inference *kv, int64_t n) {
  kv->k_new = kv->v_new = memory;
  kv->n_new = n;
  kv->k_new_stride = kv->v_new_stride = fa_strides_dense(n, 2, 64);
}

static void paged(fa_inference *kv) {
  kv->block_table = ints;
  kv->page_size = 8, kv->max_pages = 3, kv->block_table_stride = 3, kv->cache_rows = 6;
  kv->k_cache_stride = kv->v_cache_stride = fa_strides_dense(8, 2, 64);
}

static void rotary(fa_inference *kv) {
  kv->rotary_cos = kv->rotary_sin = memory;
  kv->rotary_dim = 32, kv->rotary_rows = 40;
}

/* The three calls must say the same; nothing may run, whatever driver there is. */
static void expect(const fa_attention *a, const fa_inference *kv, fa_status want, const char *text,
                   int line) {
  size_t bytes = 77;
  fa_error err[3] = {{""}};
  const fa_status got[3] = {fa_forward_kvcache_check(a, kv, &err[0]),
                            fa_forward_kvcache_workspace(a, kv, &bytes, &err[1]),
                            fa_forward_kvcache(a, kv, memory, sizeof memory, NULL, &err[2])};
  for (int i = 0; i < 3; ++i)
    CHECK_MSG(got[i] == want && strstr(err[i].text, text),
              "line %d, call %d: status %d, \"%s\" is not \"%s\"", line, i, (int)got[i], err[i].text, text);
  CHECK(bytes == 0);
  CHECK(fa_forward_kvcache_check(a, kv, NULL) == want); /* the message is optional */
}

#define BAD(change, status, text)                                                                            \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_inference kv;                                                                                         \
    valid(&a, &kv);                                                                                          \
    change;                                                                                                  \
    expect(&a, &kv, status, text, __LINE__);                                                                 \
  } while (0)
#define INPUT FA_ERR_INPUT
#define UNSUPPORTED FA_ERR_UNSUPPORTED

static void test_features(void) {
  BAD((a.cu_seqlens_q = a.cu_seqlens_k = ints), INPUT, "cu_seqlens_k: over a cache only queries are packed");
  BAD(a.cu_seqlens_k = ints, INPUT, "cu_seqlens_k: over a cache only queries are packed");
  BAD(a.cu_seqlens_q = ints, INPUT, "seqlen_q = 3, the longest entry, is more than all total_q = 0 tokens");
  BAD((a.bias = memory, kv.splits = 4), UNSUPPORTED, "splits = 4: not together with a bias");
  BAD((a.dropout_p = 0.5, kv.splits = 2), UNSUPPORTED, "splits = 2: not together with dropout");
  BAD(a.p_debug = memory, UNSUPPORTED, "p_debug: not together with a cache");
  BAD((kv.v_in_k = true, a.head_dim_v = 128), INPUT, "v_in_k: head_dim_v = 128 columns are more than K has");
  BAD(a.seqused_k = ints, INPUT, "seqused_k: of a cache, cache_seqlens says");
}

static void lists(fa_inference *kv) {
  kv->topk_indices = ints;
  kv->topk = 4;
}

static void test_lists(void) {
  BAD((lists(&kv), kv.topk = 0), INPUT, "topk = 0: at least 1");
  BAD((lists(&kv), kv.topk = (int64_t)1 << 40), UNSUPPORTED,
      "topk = 1099511627776: the kernels take at most");
  BAD((lists(&kv), kv.topk_indices = (int32_t *)(void *)(memory + 2)), INPUT, "topk_indices = ");
  BAD((lists(&kv), kv.topk_length = (int32_t *)(void *)(memory + 2)), INPUT, "topk_length = ");
  BAD((lists(&kv), a.window_right = 0), UNSUPPORTED, "topk_indices: not together with a window");
  BAD((lists(&kv), a.leftpad_k = ints), UNSUPPORTED, "topk_indices: not together with leftpad_k");
  BAD((lists(&kv), a.mask_bits = (uint8_t *)memory, a.mask_indptr = ints), UNSUPPORTED, "with mask_bits");
  BAD((lists(&kv), a.alibi_slopes = slopes), UNSUPPORTED, "topk_indices: not together with alibi_slopes");
  BAD((lists(&kv), rotary(&kv)), UNSUPPORTED, "topk_indices: not together with rotary_dim");
  BAD((lists(&kv), a.bias = memory), UNSUPPORTED, "topk_indices: not together with a bias");
  BAD((lists(&kv), a.dropout_p = 0.5), UNSUPPORTED, "topk_indices: not together with dropout");
  BAD((lists(&kv), a.dtype = FA_F32), UNSUPPORTED, "topk_indices: not together with dtype f32");
  BAD((lists(&kv), a.head_dim = 584), UNSUPPORTED, "topk_indices: not together with a head_dim above 576");
  BAD((lists(&kv), a.head_dim_v = 520), UNSUPPORTED,
      "topk_indices: not together with a head_dim_v above 512");
  BAD((lists(&kv), a.head_dim = 60), UNSUPPORTED, "topk_indices: not together with a head_dim that is no");
  BAD((lists(&kv), kv.cache_batch_idx = ints), UNSUPPORTED,
      "topk_indices: not together with cache_batch_idx");
}

static void eight(fa_inference *kv) {
  kv->quantized = true;
}

static void test_quantized(void) {
  BAD((eight(&kv), kv.cache_dtype = FA_BF16), INPUT, "cache_dtype: a quantized cache is of FA_E4M3");
  BAD((eight(&kv), a.e4m3 = true), UNSUPPORTED, "e4m3: not over a cache");
  BAD((eight(&kv), a.dtype = FA_F32), UNSUPPORTED, "quantized caches: not together with dtype f32");
  BAD((eight(&kv), a.head_dim = 272), UNSUPPORTED, "not together with a head_dim above 256");
  BAD((eight(&kv), a.head_dim = 72), UNSUPPORTED, "a head_dim that is no multiple of 16");
  BAD((eight(&kv), a.head_dim_v = 32), UNSUPPORTED, "a head_dim_v of its own");
  BAD((eight(&kv), kv.v_in_k = true), UNSUPPORTED, "quantized caches: not together with v_in_k");
  BAD((eight(&kv), lists(&kv)), UNSUPPORTED, "quantized caches: not together with topk_indices");
  BAD((eight(&kv), rotary(&kv)), UNSUPPORTED, "quantized caches: not together with rotary_dim");
  BAD((eight(&kv), a.bias = memory), UNSUPPORTED, "quantized caches: not together with a bias");
  BAD((eight(&kv), a.dropout_p = 0.5), UNSUPPORTED, "quantized caches: not together with dropout");
  BAD((eight(&kv), append(&kv, 1), kv.descales_of_slots = true), UNSUPPORTED,
      "descales of slots and new keys at once");
  BAD((eight(&kv), kv.descales_of_slots = true, a.k_descale = slopes), INPUT, "v_descale is NULL");
  BAD((eight(&kv), kv.descale_slot_stride = -1), INPUT, "negative strides are not supported");
  BAD((eight(&kv), a.v_descale = (float *)((char *)slopes + 1)), INPUT, "v_descale");
  BAD((eight(&kv), kv.k_cache = NULL), INPUT, "k_cache");
}

static void test_amax(void) {
  BAD(a.amax_p = a.amax_o = slopes, UNSUPPORTED, "amax_p and amax_o: only of e4m3, and over caches of 8");
  BAD((eight(&kv), a.amax_o = slopes), INPUT, "amax_p is NULL, but not amax_o");
  BAD((eight(&kv), a.amax_p = slopes, a.amax_o = (float *)(void *)((char *)slopes + 2)), INPUT, "amax_o = ");
}

static void four(fa_inference *kv) {
  kv->quantized = true;
  kv->cache_dtype = FA_E2M1;
  kv->k_scales = kv->v_scales = (const uint8_t *)(const void *)slopes;
  kv->k_scales_stride = kv->v_scales_stride = fa_strides_dense(64, 2, 4);
}

static void test_four_bits(void) {
  BAD((four(&kv), append(&kv, 1)), UNSUPPORTED, "quantized caches: not together with new keys in FA_E2M1");
  BAD((four(&kv), kv.descales_of_slots = true, a.k_descale = a.v_descale = slopes), UNSUPPORTED,
      "descales of slots in FA_E2M1");
  BAD((four(&kv), a.dtype = FA_F32), UNSUPPORTED, "quantized caches: not together with dtype f32");
  BAD((four(&kv), kv.k_scales = NULL), INPUT, "k_scales is NULL");
  BAD((four(&kv), kv.v_scales_stride.row = -8), INPUT, "v_scales: row stride -8");
}

static void test_sizes(void) {
  BAD(a.batch = -1, INPUT, "batch = -1: at least 0");
  BAD(a.heads_q = 3, INPUT, "heads_q = 3 is no multiple of heads_kv = 2");
  BAD(a.scale = NAN, INPUT, "scale is not set");
  BAD(kv.cache_rows = -1, INPUT, "cache_rows = -1: at least 0");
  BAD(kv.cache_rows = (int64_t)1 << 31, UNSUPPORTED, "cache_rows = 2147483648: the kernels take at most");
  BAD(kv.cache_rows = 1, INPUT, "cache_rows = 1: without cache_batch_idx every entry, of 2, has its own");
  BAD(kv.n_new = -1, INPUT, "n_new = -1: at least 0");
  BAD(append(&kv, 21), INPUT, "n_new = 21 keys are more than an entry may have, seqlen_k = 20");
  BAD(kv.splits = -1, INPUT, "splits = -1: at least 0");
  BAD(kv.splits = 1025, UNSUPPORTED, "splits = 1025: the kernels take at most 1024");
  BAD(kv.page_size = 4, INPUT, "page_size = 4, but block_table is NULL");
  BAD((paged(&kv), kv.page_size = 0), INPUT, "page_size = 0: at least 1");
  BAD((paged(&kv), kv.page_size = -8), INPUT, "page_size = -8");
  BAD((paged(&kv), kv.max_pages = 2), INPUT, "seqlen_k = 20: max_pages = 2 of page_size = 8 hold fewer");
  BAD((paged(&kv), kv.max_pages = -1), INPUT, "max_pages = -1: at least 0");
  BAD((paged(&kv), kv.block_table_stride = -3), INPUT, "block_table_stride = -3: negative strides");
  BAD((paged(&kv), kv.cache_batch_idx = ints), INPUT, "cache_batch_idx: not together with block_table");
  BAD((rotary(&kv), kv.rotary_dim = 3), INPUT, "rotary_dim = 3: an even number, 0 (none) .. head_dim = 64");
  BAD((rotary(&kv), kv.rotary_dim = 66), INPUT, "rotary_dim = 66");
  BAD((rotary(&kv), kv.rotary_dim = -2), INPUT, "rotary_dim = -2");
  BAD((rotary(&kv), kv.rotary_rows = -1), INPUT, "rotary_rows = -1: at least 0");
}

static void test_tensors(void) {
  BAD(kv.cache_seqlens = NULL, INPUT, "cache_seqlens is NULL");
  BAD(kv.cache_seqlens = (int32_t *)(void *)(memory + 2), INPUT, "cache_seqlens = ");
  BAD(kv.cache_batch_idx = (int32_t *)(void *)(memory + 1), INPUT, "not aligned to 4 bytes");
  BAD((paged(&kv), kv.block_table = (int32_t *)(void *)(memory + 2)), INPUT, "block_table = ");
  BAD((rotary(&kv), kv.rotary_cos = NULL), INPUT, "rotary_cos is NULL, but rotary_dim = 32");
  BAD((rotary(&kv), kv.rotary_sin = NULL), INPUT, "rotary_sin is NULL, but rotary_dim = 32");
  BAD((rotary(&kv), kv.rotary_sin = memory + 1), INPUT, "rotary_sin = ");
  BAD(a.leftpad_k = (int32_t *)(void *)(memory + 1), INPUT, "leftpad_k = ");
  BAD(a.alibi_slopes = (float *)(void *)(memory + 1), INPUT, "alibi_slopes = ");
  BAD(a.q = NULL, INPUT, "q is NULL");
  BAD(a.o = NULL, INPUT, "o is NULL");
  BAD(a.lse = NULL, INPUT, "lse is NULL");
  BAD(a.o_stride.row = 0, INPUT, "o is written, but with strides");
  BAD(kv.k_cache = NULL, INPUT, "k_cache is NULL");
  BAD(kv.v_cache = NULL, INPUT, "v_cache is NULL");
  BAD(kv.v_cache = memory + 1, INPUT, "v_cache = ");
  BAD(kv.k_cache_stride.row = -1, INPUT, "k_cache: row stride -1: negative strides");
  BAD((paged(&kv), kv.v_cache_stride.batch = INT64_MAX), INPUT, "v_cache: its strides reach over 2^48");
  BAD((append(&kv, 2), kv.k_new = NULL), INPUT, "k_new is NULL");
  BAD((append(&kv, 2), kv.v_new = NULL), INPUT, "v_new is NULL");
  BAD((append(&kv, 2), kv.v_new_stride.head = -1), INPUT, "v_new: head stride -1");
  BAD((append(&kv, 2), kv.k_cache_stride.head = 0), INPUT, "k_cache is written, but with strides");
  BAD((append(&kv, 2), paged(&kv), kv.v_cache_stride.batch = 64), INPUT, "v_cache is written");
  fa_attention a;
  fa_inference kv;
  fa_error err = {""};
  valid(&a, &kv);
  CHECK(fa_forward_kvcache_check(NULL, &kv, &err) == INPUT && strstr(err.text, "the fa_attention is NULL"));
  CHECK(fa_forward_kvcache_check(&a, NULL, &err) == INPUT && strstr(err.text, "the fa_inference is NULL"));
#ifdef FA_TEST_CUDA_BACKEND /* otherwise nobody looks at the workspace */
  kv.splits = 2;
  CHECK(fa_forward_kvcache(&a, &kv, memory, 16, NULL, &err) == INPUT &&
        strstr(err.text, "workspace_bytes = 16: this call needs 12544 (fa_forward_kvcache_workspace)"));
  CHECK(fa_forward_kvcache(&a, &kv, NULL, 1 << 20, NULL, &err) == INPUT &&
        strstr(err.text, "workspace is NULL"));
#endif
}

static fa_status make_plan(const fa_attention *a, const fa_inference *kv, void *workspace, fa_plan *plan,
                           fa_error *err) {
  const fa_call call = {
      .kind = FA_CALL_CACHE, .a = a, .cache = kv, .n_processors = FA_PLAN_PROCESSORS, .workspace = workspace};
  return fa_plan_make(&call, NULL, plan, err);
}

/* What must be let through, and how it is launched: "append", "forward", "combine" by their initials. */
static void test_plans(void) {
#define GOOD(change, launches)                                                                               \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_inference kv;                                                                                         \
    fa_plan plan;                                                                                            \
    fa_error err = {""};                                                                                     \
    char got[FA_PLAN_LAUNCHES + 1] = "";                                                                     \
    valid(&a, &kv);                                                                                          \
    kv.splits = 1;                                                                                           \
    change;                                                                                                  \
    CHECK_MSG(make_plan(&a, &kv, NULL, &plan, &err) == FA_OK, "%s: %s", #change, err.text);                  \
    for (int i = 0; i < plan.n_launches; ++i)                                                                \
      got[i] = strchr(plan.launch[i].kernel.name, '_')[1]; /* l: large */                                    \
    CHECK_MSG(strcmp(got, launches) == 0, "%s: %s is not %s", #change, got, launches);                       \
    for (int i = 0; i < plan.n_launches; ++i)                                                                \
      CHECK(plan.launch[i].grid[0] && plan.launch[i].grid[1] && plan.launch[i].grid[2]);                     \
  } while (0)
  GOOD((void)0, "f");
  GOOD(eight(&kv), "e");
  GOOD((eight(&kv), append(&kv, 2), kv.quantizes_new = true), "ae");
  GOOD((eight(&kv), paged(&kv), kv.splits = 3), "ec");
  GOOD(kv.splits = 3, "fc");
  GOOD(append(&kv, 2), "af");
  GOOD((append(&kv, 2), kv.splits = 1024), "afc");
  GOOD(rotary(&kv), "af"); /* queries alone */
  GOOD((rotary(&kv), append(&kv, 20)), "af");
  GOOD((append(&kv, 2), a.seqlen_q = 0, a.q = a.o = NULL, a.lse = NULL), "a"); /* nobody asks, keys are put */
  GOOD((rotary(&kv), a.seqlen_q = 0, a.q = a.o = NULL, a.lse = NULL), "");
  GOOD((a.batch = 0, kv.cache_rows = 0, kv.cache_seqlens = NULL), "");
  GOOD((paged(&kv), kv.cache_rows = 0, kv.k_cache = kv.v_cache = NULL), "f"); /* entries without keys */
  GOOD((paged(&kv), append(&kv, 2), a.leftpad_k = ints, a.alibi_slopes = slopes, a.softcap = 5), "af");
  GOOD((paged(&kv), kv.block_table_stride = 0), "f"); /* all share their pages */
  GOOD((kv.k_cache_stride.batch = 0), "f");           /* nothing is put: rows may repeat */
  GOOD((kv.cache_batch_idx = ints, kv.cache_rows = 1), "f");
  GOOD((a.seqlen_k = 0, kv.k_cache = kv.v_cache = NULL), "f");
  /* Kernels of large head dims: values of another width have an append of their own, values in K none. */
  GOOD((a.head_dim_v = 32, a.softcap = 5, a.alibi_slopes = slopes), "l");
  GOOD((a.head_dim_v = 32, append(&kv, 2), kv.splits = 2), "aalc");
  GOOD((a.head_dim_v = 32, append(&kv, 2), rotary(&kv)), "aal");
  GOOD((kv.v_in_k = true, kv.v_cache = NULL, append(&kv, 2), kv.v_new = NULL), "al");
  GOOD((lists(&kv), kv.splits = 2), "lc");
  GOOD((lists(&kv), append(&kv, 2), paged(&kv), kv.topk_length = ints), "al");
  GOOD((a.dtype = FA_BF16, a.deterministic = true, a.scale = -1), "f");
}

/* The copy of rotated queries and the partial results, one after the other, each from a multiple of 256. */
static void test_workspace(void) {
  fa_attention a;
  fa_inference kv;
  fa_plan plan;
  fa_error err = {""};
  size_t bytes = 1;
  const size_t rows = 2 * 3 * 4, splits = 7;
  valid(&a, &kv);
  kv.splits = 1;
  CHECK(fa_forward_kvcache_workspace(&a, &kv, &bytes, &err) == FA_OK && bytes == 0);
  rotary(&kv);
  CHECK(fa_forward_kvcache_workspace(&a, &kv, &bytes, &err) == FA_OK && bytes == rows * 64 * 2);
  kv.splits = (int64_t)splits;
  CHECK(fa_forward_kvcache_workspace(&a, &kv, &bytes, &err) == FA_OK &&
        bytes == rows * 64 * 2 + rows * splits * 64 * 4 + 768);
  a.q = memory + 2; /* the copy is aligned whatever q is */
  CHECK(make_plan(&a, &kv, memory, &plan, &err) == FA_OK && plan.aligned);
  const fa_cache_params *p = plan.launch[plan.n_launches - 1].params;
  CHECK((const char *)p->q == memory && (char *)p->partial_o == memory + rows * 128 &&
        (char *)p->partial_lse == (char *)p->partial_o + rows * splits * 256);
  kv.rotary_dim = 0;
  CHECK(make_plan(&a, &kv, memory, &plan, &err) == FA_OK && !plan.aligned);
  p = plan.launch[plan.n_launches - 1].params;
  CHECK((const char *)p->q == memory + 2 && (char *)p->partial_o == memory);
  /* Chosen by the sizes alone: no more than key blocks, several where there is little else to do. */
  kv.splits = 0, a.q = memory;
  CHECK(make_plan(&a, &kv, NULL, &plan, &err) == FA_OK && plan.n_splits == 1);
  a.seqlen_k = 20000, kv.k_cache_stride = kv.v_cache_stride = fa_strides_dense(20000, 2, 64);
  CHECK(make_plan(&a, &kv, NULL, &plan, &err) == FA_OK && plan.n_splits > 8);
  CHECK(fa_forward_kvcache_workspace(&a, &kv, &bytes, &err) == FA_OK && bytes >= plan.workspace_bytes);
}

static void test_contents(void) {
  fa_attention a;
  fa_inference kv;
  fa_error err = {""};
  valid(&a, &kv);
  append(&kv, 2);
  rotary(&kv);
  kv.rotary_rows = 20;
  const int32_t len[2] = {0, 17}, idx[2] = {1, 0}, pad[2] = {2, 0};
  const int32_t *cu = NULL;
#define CONTENTS(...)                                                                                        \
  fa_cache_check_contents(&a, &kv, &(fa_cache_contents){__VA_ARGS__, .cu_seqlens_q = cu}, &err)
#define BAD_CONTENTS(message, ...)                                                                           \
  CHECK_MSG(CONTENTS(__VA_ARGS__) == INPUT && strstr(err.text, message), "%s", err.text)
  CHECK_MSG(CONTENTS(len, idx, pad, NULL) == FA_OK, "%s", err.text);
  BAD_CONTENTS("cache_seqlens[1] = 19: 0 .. 18, seqlen_k less the new keys", ((int32_t[]){0, 19}), idx, pad,
               NULL);
  BAD_CONTENTS("cache_seqlens[0] = -1: 0 .. 18", ((int32_t[]){-1, 3}), idx, pad, NULL);
  BAD_CONTENTS("leftpad_k[0] = 3: 0 .. 2, the keys of the entry", len, idx, ((int32_t[]){3, 0}), NULL);
  BAD_CONTENTS("leftpad_k[1] = -1", len, idx, ((int32_t[]){0, -1}), NULL);
  BAD_CONTENTS("rotary_rows = 20: entry 1 has positions up to 20", ((int32_t[]){0, 18}), idx, pad, NULL);
  BAD_CONTENTS("cache_batch_idx[0] = 2: 0 .. 1, the rows of the cache", len, ((int32_t[]){2, 0}), pad, NULL);
  BAD_CONTENTS("cache_batch_idx[1] = -1", len, ((int32_t[]){0, -1}), pad, NULL);
  BAD_CONTENTS("cache row 1 gets new keys of entries 0 and 1", len, ((int32_t[]){1, 1}), pad, NULL);
  kv.n_new = 0; /* whoever only reads may share */
  CHECK(CONTENTS(len, ((int32_t[]){1, 1}), pad, NULL) == FA_OK || strstr(err.text, "leftpad"));
  CHECK_MSG(CONTENTS(len, ((int32_t[]){1, 1}), ((int32_t[]){0, 17}), NULL) == FA_OK, "%s", err.text);
  valid(&a, &kv);
  append(&kv, 2);
  paged(&kv);
  const int32_t table[6] = {4, -1, 99,
                            4, 5,  0}; /* entry 0: a page; entry 1: a shared one that is full, two more */
  CHECK_MSG(CONTENTS(((int32_t[]){6, 16}), .block_table = ((int32_t[]){3, -1, 99, 4, 5, 0})) == FA_OK, "%s",
            err.text);
  CHECK_MSG(CONTENTS(((int32_t[]){0, 8}), .block_table = table) == FA_OK, "%s", err.text);
  BAD_CONTENTS("block_table[0][1] = -1: 0 .. 5, the pages of the cache", ((int32_t[]){7, 8}),
               .block_table = table);
  BAD_CONTENTS("block_table[1][2] = 6", ((int32_t[]){0, 15}), .block_table = ((int32_t[]){1, 0, 0, 4, 5, 6}));
  BAD_CONTENTS("page 4 gets new keys of entries 0 and 1", ((int32_t[]){0, 5}), .block_table = table);
  valid(&a, &kv); /* lists: six rows of four entries */
  paged(&kv);
  lists(&kv);
  int32_t entries[24] = {0};
#define LISTS(length)                                                                                        \
  CONTENTS(((int32_t[]){7, 8}), .block_table = (int32_t[]){3, 0, 0, 4, 5, 0}, .topk_indices = entries,       \
           .topk_length = (length))
  entries[23] = 47, entries[22] = -5;
  CHECK_MSG(LISTS(NULL) == FA_OK, "%s", err.text);
  entries[23] = 48;
  CHECK_MSG(LISTS(NULL) == INPUT &&
                strstr(err.text, "topk_indices[5][3] = 48: below 0, or a slot of 6 pages of 8"),
            "%s", err.text);
  CHECK_MSG(LISTS(((int32_t[]){4, 3})) == FA_OK, "%s", err.text); /* behind its end */
  CHECK_MSG(LISTS(((int32_t[]){4, 5})) == INPUT && strstr(err.text, "topk_length[1] = 5: 0 .. 4"), "%s",
            err.text);
  valid(&a, &kv); /* packed queries: three rows and none */
  rotary(&kv);
  kv.rotary_rows = 20;
  a.cu_seqlens_q = cu = (int32_t[]){0, 3, 3};
  a.total_q = 3;
  CHECK_MSG(CONTENTS(((int32_t[]){17, 20}), NULL, NULL, NULL) == FA_OK, "%s", err.text);
  BAD_CONTENTS("rotary_rows = 20: entry 0 has positions up to 20", ((int32_t[]){18, 20}), NULL, NULL, NULL);
  a.total_q = 4;
  BAD_CONTENTS("cu_seqlens_q ends at 3, but there are 4 tokens", ((int32_t[]){17, 20}), NULL, NULL, NULL);
}

int main(void) {
  test_features();
  test_lists();
  test_quantized();
  test_four_bits();
  test_amax();
  test_sizes();
  test_tensors();
  test_plans();
  test_workspace();
  test_contents();
  return check_done();
}
