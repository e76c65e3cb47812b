/* fa_case_build of KV caches and block lists: where everything is, and NaN or garbage wherever the contract
 * says that nothing reads. */
#include "tests/support/build_common.h"

#include <math.h>

static fa_case cache_case(void) {
  fa_case c = base_case(FA_KVCACHE);
  c.problem.batch = 3;
  c.problem.seqlen_q = 2, c.problem.seqlen_k = 12;
  c.problem.kvcache.present = true;
  c.problem.kvcache.n_new = 2;
  set_array(&c.problem.kvcache.len, (int32_t[]){0, 5, 10}, 3);
  return c;
}

static void test_cache(void) {
  fa_case c = cache_case();
  c.problem.kvcache.rotary_dim = 6;
  set_array(&c.problem.leftpad_k, (int32_t[]){0, 2, 1}, 3);
  fa_tensors s = build(&c);
  CHECK(has_shape(&s.t[FA_T_K], FA_F16, 4, 3, 12, 2, 8) &&
        has_shape(&s.t[FA_T_K_NEW], FA_F16, 4, 3, 2, 2, 8));
  CHECK(has_shape(&s.t[FA_T_CACHE_SEQLENS], FA_I32, 1, 3, 0, 0, 0) && s.t[FA_T_BLOCK_TABLE].data == NULL);
  CHECK(has_shape(&s.t[FA_T_LEFTPAD_K], FA_I32, 1, 3, 0, 0, 0) && s.t[FA_T_DQ].data == NULL);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t j = 0; j < 12; ++j) {
      const bool live = j >= (int64_t[]){0, 2, 1}[b] && j < (int64_t[]){0, 5, 10}[b];
      CHECK(fa_tensor_has_pattern(&s.t[FA_T_V], (int64_t[]){b, j, 1, 7}, FA_PATTERN_INPUT_GAP) == !live);
    }
  CHECK(has_shape(&s.t[FA_T_ROTARY_SIN], FA_F16, 2, 12, 3, 0, 0)); /* positions 0 .. 10 + 1 */
  const double want = sin(11 * pow(10000, -2.0 / 6)),
               got = fa_tensor_get(&s.t[FA_T_ROTARY_SIN], (int64_t[]){11, 1});
  CHECK_MSG(fabs(got - want) <= fa_half_ulp(FA_F16, want), "%g", got);
  CHECK(fa_tensor_get(&s.t[FA_T_ROTARY_COS], (int64_t[]){0, 2}) == 1);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

/* New keys have the values of a cache already filled that far. */
static void test_append(void) {
  fa_case c = cache_case(), later = cache_case();
  later.problem.kvcache.n_new = 0;
  set_array(&later.problem.kvcache.len, (int32_t[]){2, 7, 12}, 3);
  fa_tensors s = build(&c), t = build(&later);
  CHECK(t.t[FA_T_K_NEW].data == NULL);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t x = 0; x < 32; ++x) {
      const int64_t len = (int64_t[]){0, 5, 10}[b], i[4] = {b, x / 16, x / 8 % 2, x % 8};
      const int64_t slot[4] = {b, len + i[1], i[2], i[3]};
      CHECK(bits_equal(&s.t[FA_T_K_NEW], i, &t.t[FA_T_K], slot));
      CHECK(bits_equal(&s.t[FA_T_V_NEW], i, &t.t[FA_T_V], slot));
    }
  fa_tensors_free(&s);
  fa_tensors_free(&t);
  fa_case_free(&c);
  fa_case_free(&later);
}

static void test_batch_idx(void) {
  fa_case plain = cache_case(), c = cache_case();
  plain.problem.kvcache.n_new = c.problem.kvcache.n_new = 0;
  set_array(&plain.problem.kvcache.len, (int32_t[]){3, 5, 10}, 3);
  set_array(&c.problem.kvcache.len, (int32_t[]){3, 5, 10}, 3);
  set_array(&c.problem.kvcache.batch_idx, (int32_t[]){4, 0, 4},
            3); /* the third reads the first's row, further */
  fa_tensors s = build(&c), p = build(&plain);
  CHECK(has_shape(&s.t[FA_T_K], FA_F16, 4, 6, 12, 2, 8) && s.t[FA_T_CACHE_BATCH_IDX].data != NULL);
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t j = 0; j < 12; ++j) {
      const int64_t i[4] = {row, j, 1, 2}, entry[4] = {row == 0 ? 1 : 0, j, 1, 2};
      const bool live = (row == 4 && j < 10) || (row == 0 && j < 5);
      CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], i, FA_PATTERN_INPUT_GAP) == !live);
      if (live && (row == 0 || j < 3)) CHECK(bits_equal(&s.t[FA_T_K], i, &p.t[FA_T_K], entry));
    }
  fa_tensors_free(&s);
  fa_tensors_free(&p);
  fa_case_free(&plain);
  fa_case_free(&c);
}

static void test_paged(void) {
  fa_case plain = cache_case(), c = cache_case();
  c.problem.kvcache.page_size = 4;
  fa_tensors s = build(&c), p = build(&plain);
  CHECK(has_shape(&s.t[FA_T_V], FA_F16, 4, 12, 4, 2, 8) &&
        has_shape(&s.t[FA_T_BLOCK_TABLE], FA_I32, 2, 3, 3, 0, 0));
  int used[12] = {0}, in_order = 1;
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t m = 0; m < 3; ++m) {
      const int64_t page = (int64_t)fa_tensor_get(&s.t[FA_T_BLOCK_TABLE], (int64_t[]){b, m});
      if (4 * m >= (int64_t[]){2, 7, 12}[b]) { /* with the new keys */
        CHECK(page == -1 || page == INT32_MAX);
        continue;
      }
      REQUIRE(page >= 0 && page < 12);
      CHECK(!used[page]++);
      in_order &= page == 3 * b + m;
      for (int64_t j = 4 * m; j < 4 * m + 4; ++j) {
        const int64_t i[4] = {page, j % 4, 1, 3}, slot[4] = {b, j, 1, 3};
        CHECK(bits_equal(&s.t[FA_T_K], i, &p.t[FA_T_K], slot) &&
              bits_equal(&s.t[FA_T_V], i, &p.t[FA_T_V], slot));
      }
    }
  CHECK(!in_order);
  for (int64_t page = 0; page < 12; ++page)
    CHECK(used[page] ||
          fa_tensor_has_pattern(&s.t[FA_T_K], (int64_t[]){page, 0, 0, 0}, FA_PATTERN_INPUT_GAP));
  CHECK(same_values(&s.t[FA_T_K_NEW], &p.t[FA_T_K_NEW]));
  fa_tensors_free(&s);
  fa_tensors_free(&p);
  fa_case_free(&plain);
  fa_case_free(&c);
}

/* Sequences that fill a page share the first one's page; it has values wherever one of them reads. */
static void test_shared_pages(void) {
  fa_case c = cache_case();
  c.problem.kvcache.n_new = 0, c.problem.kvcache.page_size = 4, c.problem.kvcache.shared_pages = 2;
  set_array(&c.problem.kvcache.len, (int32_t[]){7, 12, 8}, 3);
  set_array(&c.problem.leftpad_k, (int32_t[]){2, 0, 5}, 3);
  fa_case alone = c; /* owns nothing */
  alone.problem.kvcache.shared_pages = 0;
  fa_tensors s = build(&c), p = build(&alone);
  static const int owner[3][3] = {{0, 0, -1}, {0, 1, 1}, {0, 1, -1}};
  int32_t page[3][3];
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t m = 0; m < 3; ++m)
      page[b][m] = (int32_t)fa_tensor_get(&s.t[FA_T_BLOCK_TABLE], (int64_t[]){b, m});
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t m = 0; m < 3; ++m) {
      for (int64_t e = 0; e < 9; ++e)
        if (owner[b][m] >= 0 && owner[e / 3][e % 3] >= 0)
          CHECK((page[b][m] == page[e / 3][e % 3]) == (e % 3 == m && owner[b][m] == owner[e / 3][m]));
      for (int64_t j = 4 * m; j < 4 * m + 4 && owner[b][m] >= 0; ++j) {
        /* read by none: keys past the length of sequence 0's own page, nothing else */
        const bool live = !(m == 1 && b == 0) || j < 7;
        const int64_t i[4] = {page[b][m], j % 4, 1, 3};
        CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], i, FA_PATTERN_INPUT_GAP) == !live);
        const int32_t own = (int32_t)fa_tensor_get(&p.t[FA_T_BLOCK_TABLE], (int64_t[]){owner[b][m], m});
        const bool theirs = j >= c.problem.leftpad_k.v[owner[b][m]];
        if (live && theirs) CHECK(bits_equal(&s.t[FA_T_K], i, &p.t[FA_T_K], (int64_t[]){own, j % 4, 1, 3}));
      }
    }
  fa_tensors_free(&s);
  fa_tensors_free(&p);
  fa_case_free(&c);
}

/* ---- a latent cache, lists of keys ---- */

/* V is K's first columns, also of the new keys, and holds what K's fill says. */
static void test_latent(void) {
  fa_case c = cache_case(), own = c; /* owns nothing */
  c.problem.kvcache.v_in_k = true;
  c.problem.head_dim_v = c.problem.head_dim - 2;
  c.problem.kvcache.rotary_dim = own.problem.kvcache.rotary_dim = 0;
  c.fill[FA_T_V] = FA_FILL_ZERO; /* of a tensor that there is not */
  fa_tensors s = build(&c), p = build(&own);
  static const fa_tensor_id of[][2] = {{FA_T_V, FA_T_K}, {FA_T_V_NEW, FA_T_K_NEW}};
  for (int i = 0; i < 2; ++i) {
    const fa_tensor *v = &s.t[of[i][0]], *k = &s.t[of[i][1]];
    CHECK(v->data == k->data && s.buffer[of[i][0]].base == NULL && v->shape[3] == k->shape[3] - 2);
    for (int a = 0; a < 4; ++a) CHECK(v->stride[a] == k->stride[a]);
    CHECK(same_values(k, &p.t[of[i][1]]));
  }
  fa_tensors_free(&s);
  fa_tensors_free(&p);
  fa_case_free(&c);
}

/* Entries name slots of the sequence's own pages, each once; what none names, and what is behind a list, is NaN. */
static void test_topk(void) {
  fa_case c = cache_case();
  c.problem.kvcache.n_new = c.problem.kvcache.rotary_dim = 0, c.problem.kvcache.page_size = 4;
  set_array(&c.problem.leftpad_k, NULL, 0);
  c.problem.topk = (fa_topk){.present = true, .k = 6, .none = 0.34, .none_at = FA_TOPK_FRONT, .seed = 3};
  set_array(&c.problem.topk.len, (int32_t[]){5, 6, 6}, 3);
  fa_tensors s = build(&c);
  const int64_t rows = c.problem.seqlen_q;
  CHECK(has_shape(&s.t[FA_T_TOPK_INDICES], FA_I32, 3, 3, rows, 6, 0));
  CHECK(has_shape(&s.t[FA_T_TOPK_LENGTH], FA_I32, 1, 3, 0, 0, 0));
  for (int64_t b = 0; b < 3; ++b) {
    bool listed[12] = {false};
    for (int64_t i = 0; i < rows; ++i) {
      int seen[12] = {0};
      for (int64_t n = 0; n < 6; ++n) {
        const int64_t slot = (int64_t)fa_tensor_get(&s.t[FA_T_TOPK_INDICES], (int64_t[]){b, i, n});
        const int64_t keys = c.problem.kvcache.len.v[b];
        int64_t key = -1;
        for (int64_t j = 0; j < keys && slot >= 0; ++j)
          if ((int64_t)fa_tensor_get(&s.t[FA_T_BLOCK_TABLE], (int64_t[]){b, j / 4}) * 4 + j % 4 == slot)
            key = j;
        const bool behind = n >= c.problem.topk.len.v[b], none = n < 2 || n - 2 >= keys;
        CHECK(behind ? slot >= 0 && key < 0 : none ? slot == -1 : key >= 0);
        if (behind)
          CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], (int64_t[]){slot / 4, slot % 4, 0, 0},
                                      FA_PATTERN_INPUT_GAP));
        if (key < 0) continue;
        CHECK(!seen[key]++);
        listed[key] = true;
      }
    }
    for (int64_t j = 0; j < c.problem.kvcache.len.v[b]; ++j) {
      const int64_t page = (int64_t)fa_tensor_get(&s.t[FA_T_BLOCK_TABLE], (int64_t[]){b, j / 4});
      CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], (int64_t[]){page, j % 4, 0, 0}, FA_PATTERN_INPUT_GAP) ==
            !listed[j]);
    }
  }
  fa_tensors_free(&s);
  fa_case_free(&c);
}

/* ---- block lists ---- */

static void test_density(void) {
  fa_case c = base_case(FA_FLEX);
  c.problem.seqlen_q = 640, c.problem.seqlen_k = 1000;
  c.problem.block_sparse = (fa_block_sparse){
      .present = true, .source = FA_BLOCKS_DENSITY, .q_block = 16, .kv_block = 32, .density = 0.3, .seed = 5};
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  fa_tensors s = build(&c);
  CHECK(has_shape(&s.t[FA_T_KV_NUM_BLOCKS], FA_I32, 3, 2, 4, 40, 0) &&
        has_shape(&s.t[FA_T_FULL_KV_INDICES], FA_I32, 4, 2, 4, 40, 32));
  double listed[2] = {0};
  for (int64_t row = 0; row < 2 * 4 * 40; ++row) {
    int seen[32] = {0};
    for (int f = 0; f < 2; ++f) {
      const int32_t *index =
          (const int32_t *)(const void *)s.t[f ? FA_T_FULL_KV_INDICES : FA_T_KV_INDICES].data + row * 32;
      const int32_t n =
          ((const int32_t *)(const void *)s.t[f ? FA_T_FULL_KV_NUM_BLOCKS : FA_T_KV_NUM_BLOCKS].data)[row];
      listed[f] += n;
      for (int i = 0; i < 32; ++i) {
        if (i < n) REQUIRE(index[i] >= 0 && index[i] < 32);
        CHECK(i < n ? !seen[index[i]]++ : index[i] == -1 || index[i] == INT32_MAX);
      }
    }
  }
  for (int f = 0; f < 2; ++f) CHECK_MSG(fabs(listed[f] / 10240 - 0.15) < 0.02, "%g", listed[f] / 10240);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

static void test_lists(void) {
  fa_case c = base_case(FA_FLEX);
  fa_block_sparse *b = &c.problem.block_sparse;
  *b = (fa_block_sparse){.present = true, .q_block = 4, .kv_block = 4, .list_batch = 1, .list_heads = 1};
  set_array(&b->kv_num_blocks, (int32_t[]){1, 2}, 2);
  set_array(&b->kv_indices, (int32_t[]){1, 0, 1, 0}, 4);
  fa_tensors s = build(&c);
  const int32_t *index = (const int32_t *)(const void *)s.t[FA_T_KV_INDICES].data;
  CHECK(index[0] == 1 && (index[1] == -1 || index[1] == INT32_MAX) && index[2] == 1 && index[3] == 0);
  CHECK(s.t[FA_T_FULL_KV_NUM_BLOCKS].data == NULL);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

/* Where rows of 4 bits share memory, so do their scales: none is left unwritten. */
static void test_shared_scales(void) {
  for (int axis = 0; axis < 3; axis += 2) {
    fa_case c = cache_case();
    c.problem.kvcache.n_new = 0;
    c.problem.head_dim = 16, c.problem.head_dim_v = 64; /* more numbers than any row of bytes is long */
    set_array(&c.problem.kvcache.len, (int32_t[]){5, 5, 5}, 3);
    c.problem.quantized = (fa_quantized){.present = true, .dtype = FA_E2M1};
    c.strides[FA_T_K].expand[axis] = c.strides[FA_T_V].expand[axis] = true;
    fa_tensors s = build(&c);
    CHECK(has_shape(&s.t[FA_T_K_SCALES], FA_E4M3, 4, 3, 12, 2, 1) &&
          has_shape(&s.t[FA_T_V_SCALES], FA_E4M3, 4, 3, 12, 2, 4));
    for (int64_t x = 0; x < 3 * 5 * 2; ++x) {
      const int64_t i[4] = {x / 10, x / 2 % 5, x % 2, 0},
                    first[4] = {axis ? i[0] : 0, i[1], axis ? 0 : i[2], 0};
      CHECK(!isnan(fa_tensor_get(&s.t[FA_T_K_SCALES], i)) && !isnan(fa_tensor_get(&s.t[FA_T_V_SCALES], i)));
      CHECK(bits_equal(&s.t[FA_T_V_SCALES], i, &s.t[FA_T_V_SCALES], first));
    }
    fa_tensors_free(&s);
    fa_case_free(&c);
  }
}

int main(void) {
  test_shared_scales();
  test_cache();
  test_append();
  test_batch_idx();
  test_paged();
  test_shared_pages();
  test_latent();
  test_topk();
  test_density();
  test_lists();
  return check_done();
}
