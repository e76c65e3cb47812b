/* fa_case_build: shapes, strides and views of every family, the same logical values under every layout, and
 * NaN or garbage wherever the contract says that nothing reads. */
#include "cases/data/build.h"
#include "tests/support/build_common.h"

#include <math.h>

/* Checks that the bytes of the buffer's payload that belong to no element of any tensor have the input
 * pattern. Returns their number in elements, or -1. */
static int64_t input_gaps(const fa_tensors *set, fa_tensor_id owner) {
  const fa_buffer *b = &set->buffer[owner];
  const int64_t size = (int64_t)fa_dtype_size(set->t[owner].dtype), n = (int64_t)b->bytes / size;
  char *used = calloc((size_t)n + 1, 1);
  REQUIRE(used);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *t = &set->t[id];
    if (t->data == NULL || set->owner[id] != (int)owner) continue;
    for (int64_t at = 0; at < fa_tensor_count(t); ++at) {
      int64_t i[FA_MAX_RANK];
      fa_tensor_unravel(t, at, i);
      used[(t->data - fa_buffer_payload(b) + fa_tensor_offset(t, i)) / size] = 1;
    }
  }
  const fa_tensor flat = {set->t[owner].dtype, 1, {n}, {1}, fa_buffer_payload(b)};
  int64_t gaps = 0;
  for (int64_t i = 0; i < n && gaps >= 0; ++i) {
    if (used[i]) continue;
    gaps = fa_tensor_has_pattern(&flat, &i, FA_PATTERN_INPUT_GAP) ? gaps + 1 : -1;
  }
  free(used);
  return gaps;
}

/* ---- shapes ---- */

static void test_flash(void) {
  char where[512];
  fa_case c = base_case(FA_FLASH);
  c.problem.grad_lse = c.problem.return_softmax = c.problem.alibi.present = c.problem.alibi.standard = true;
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  fa_tensors s = build(&c);
  static const fa_tensor_id like_q[] = {FA_T_Q, FA_T_O, FA_T_DO, FA_T_DQ},
                            like_k[] = {FA_T_K, FA_T_V, FA_T_DK, FA_T_DV};
  for (int i = 0; i < 4; ++i) CHECK(has_shape(&s.t[like_q[i]], FA_F16, 4, 2, 5, 4, 8));
  for (int i = 0; i < 4; ++i) CHECK(has_shape(&s.t[like_k[i]], FA_F16, 4, 2, 7, 2, 8));
  CHECK(has_shape(&s.t[FA_T_LSE], FA_F32, 3, 2, 4, 5, 0) &&
        has_shape(&s.t[FA_T_DLSE], FA_F32, 3, 2, 4, 5, 0));
  CHECK(has_shape(&s.t[FA_T_P_DEBUG], FA_F16, 4, 2, 4, 128, 128));
  CHECK(has_shape(&s.t[FA_T_ALIBI_SLOPES], FA_F32, 1, 4, 0, 0, 0));
  CHECK(fa_tensor_get(&s.t[FA_T_ALIBI_SLOPES], (int64_t[]){1}) == 0.0625);
  for (int id = FA_T_O; id < FA_T_COUNT; ++id)
    for (int64_t at = 0; at < fa_tensor_count(&s.t[id]); ++at) {
      int64_t i[FA_MAX_RANK];
      fa_tensor_unravel(&s.t[id], at, i);
      CHECK(fa_tensor_is_poison(&s.t[id], i, FA_POISON_A));
    }
  CHECK(s.t[FA_T_BIAS].data == NULL && s.t[FA_T_CU_SEQLENS_Q].data == NULL &&
        s.t[FA_T_DROPOUT_KEEP].data == NULL);
  fa_tensors again = build(&c);
  CHECK(fa_tensors_inputs_equal(&s, &again, where, sizeof where));
  fa_tensors_free(&again);
  c.data_seed = 8;
  again = build(&c);
  CHECK(!fa_tensors_inputs_equal(&s, &again, where, sizeof where));
  fa_tensors_free(&again);
  fa_tensors_free(&s);
  c.problem.backward = c.problem.grad_lse = false;
  s = build(&c);
  CHECK(s.t[FA_T_DO].data == NULL && s.t[FA_T_DQ].data == NULL && s.t[FA_T_DLSE].data == NULL);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

/* A padded dLSE has the packed one's numbers, and NaN behind each sequence's last row. */
static void check_padded(const fa_case *c, const fa_tensors *packed) {
  fa_case other;
  const int32_t *cu = c->problem.cu_seqlens_q.v;
  REQUIRE(fa_case_copy(&other, c) == FA_OK);
  other.problem.lse_padded = true;
  fa_tensors s = build(&other);
  const fa_tensor *t = &s.t[FA_T_DLSE];
  CHECK(has_shape(&s.t[FA_T_LSE], FA_F32, 3, 3, 4, 6, 0) && has_shape(t, FA_F32, 3, 3, 4, 6, 0));
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < 6; ++i) {
        const int64_t at[] = {b, h, i};
        const bool padding = i >= cu[b + 1] - cu[b];
        CHECK(fa_tensor_is_padding(&other.problem, FA_T_DLSE, at) == padding);
        CHECK(!fa_tensor_is_padding(&other.problem, FA_T_Q, at) &&
              !fa_tensor_is_padding(&c->problem, FA_T_LSE, at));
        if (padding)
          CHECK(isnan(fa_tensor_get(t, at)));
        else
          CHECK(bits_equal(t, at, &packed->t[FA_T_DLSE], (int64_t[]){h, cu[b] + i}));
      }
  fa_tensors_free(&s);
  fa_case_free(&other);
}

static void test_varlen_shapes(void) {
  fa_case c = base_case(FA_FLASH);
  c.problem.grad_lse = true;
  set_array(&c.problem.cu_seqlens_q, (int32_t[]){0, 3, 3, 9}, 4);
  set_array(&c.problem.cu_seqlens_k, (int32_t[]){0, 0, 5, 12}, 4);
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  fa_tensors s = build(&c);
  CHECK(has_shape(&s.t[FA_T_Q], FA_F16, 3, 9, 4, 8, 0) && has_shape(&s.t[FA_T_DV], FA_F16, 3, 12, 2, 8, 0));
  CHECK(has_shape(&s.t[FA_T_LSE], FA_F32, 2, 4, 9, 0, 0));
  CHECK(has_shape(&s.t[FA_T_CU_SEQLENS_K], FA_I32, 1, 4, 0, 0, 0));
  CHECK(fa_tensor_get(&s.t[FA_T_CU_SEQLENS_K], (int64_t[]){3}) == 12);
  check_padded(&c, &s);
  /* The same sequences as in a dense call, at the same (b, s, h, d). */
  fa_case d = base_case(FA_FLASH);
  d.problem.batch = 3;
  fa_tensors dense = build(&d);
  for (int64_t t = 3; t < 8; ++t)
    for (int64_t h = 0; h < 4; ++h)
      CHECK(bits_equal(&s.t[FA_T_Q], (int64_t[]){t, h, 3}, &dense.t[FA_T_Q], (int64_t[]){2, t - 3, h, 3}));
  CHECK(bits_equal(&s.t[FA_T_K], (int64_t[]){2, 1, 3}, &dense.t[FA_T_K], (int64_t[]){1, 2, 1, 3}));
  fa_tensors_free(&dense);
  fa_tensors_free(&s);
  set_array(&c.problem.cu_seqlens_q, (int32_t[]){0, 0, 0, 0}, 4); /* no query at all */
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  s = build(&c);
  CHECK(s.t[FA_T_Q].data != NULL && fa_tensor_count(&s.t[FA_T_Q]) == 0 && s.t[FA_T_LSE].data != NULL);
  fa_tensors_free(&s);
  fa_case_free(&c);
  fa_case_free(&d);
}

static void test_flex_shapes(void) {
  fa_case c = base_case(FA_FLEX);
  c.problem.dtype = FA_BF16;
  c.problem.head_dim_v = 3;
  c.problem.bias = (fa_bias){true, true, false, true, false};
  fa_tensors s = build(&c);
  CHECK(has_shape(&s.t[FA_T_V], FA_BF16, 4, 2, 7, 2, 3) && has_shape(&s.t[FA_T_DO], FA_BF16, 4, 2, 5, 4, 3));
  CHECK(has_shape(&s.t[FA_T_DQ], FA_BF16, 4, 2, 5, 4, 8) && has_shape(&s.t[FA_T_DV], FA_BF16, 4, 2, 7, 2, 3));
  CHECK(has_shape(&s.t[FA_T_BIAS], FA_BF16, 4, 1, 4, 1, 7) &&
        has_shape(&s.t[FA_T_DBIAS], FA_BF16, 4, 1, 4, 1, 7));
  fa_tensors_free(&s);
  fa_case_free(&c);
}

/* ---- layouts ---- */

static void test_strides(void) {
  fa_case c = base_case(FA_FLASH);
  c.strides[FA_T_Q] = (fa_stride_recipe){.gap = {100, 10, 1}, .offset = 3};
  static const int64_t want[3] = {330, 46, 9};
  fa_tensors s = build(&c);
  /* bshd: head 8+1, row 4*9+10, entry 5*46+100 */
  for (int a = 0; a < 3; ++a) CHECK(s.t[FA_T_Q].stride[a] == want[a]);
  CHECK(s.t[FA_T_Q].data - fa_buffer_payload(&s.buffer[FA_T_Q]) == 6);
  fa_tensors_free(&s);
  c.layout = FA_LAYOUT_BHSD; /* row 8+10, head 5*18+1, entry 4*91+100 */
  s = build(&c);
  CHECK(s.t[FA_T_Q].stride[1] == 18 && s.t[FA_T_Q].stride[2] == 91 && s.t[FA_T_Q].stride[0] == 464);
  CHECK(s.t[FA_T_K].stride[1] == 8 && s.t[FA_T_K].stride[2] == 56 && s.t[FA_T_K].stride[0] == 112);
  fa_tensors_free(&s);
  c.layout = FA_LAYOUT_SBHD; /* head 8+1, entry 4*9+100, row 2*136+10 */
  s = build(&c);
  CHECK(s.t[FA_T_Q].stride[2] == 9 && s.t[FA_T_Q].stride[0] == 136 && s.t[FA_T_Q].stride[1] == 282);
  CHECK(input_gaps(&s, FA_T_Q) > 0 && input_gaps(&s, FA_T_K) == 0);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

static void check_same_inputs(const fa_case *c, const fa_tensors *want) {
  fa_tensors got = build(c);
  for (int id = 0; id < FA_T_O; ++id) {
    CHECK_MSG(same_values(&want->t[id], &got.t[id]), "layout %d packing %d: %s", (int)c->layout,
              (int)c->packing, fa_tensor_id_name((fa_tensor_id)id));
    if (got.buffer[id].base) CHECK(input_gaps(&got, (fa_tensor_id)id) >= 0);
  }
  fa_tensors_free(&got);
}

static void test_layout_independence(bool varlen, fa_fill fill) {
  fa_case c = base_case(FA_FLEX);
  if (varlen) {
    fa_problem_set_family(&c.problem, FA_FLASH);
    set_array(&c.problem.cu_seqlens_q, (int32_t[]){0, 3, 3, 9}, 4);
    set_array(&c.problem.cu_seqlens_k, (int32_t[]){0, 3, 3, 9}, 4);
  } else {
    c.problem.seqlen_q = c.problem.seqlen_k = 6;
    c.problem.bias = (fa_bias){true, true, true, true, true};
  }
  c.problem.grad_lse = true;
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  fa_case_set_fill(&c, fill);
  fa_tensors want = build(&c);
  for (int layout = 0; layout < 3; ++layout)
    for (int packing = 0; packing < 3; ++packing)
      for (int gaps = 0; gaps < 2; ++gaps) {
        c.layout = (fa_layout)layout;
        c.packing = (fa_packing)packing;
        for (int id = 0; id < FA_T_COUNT; ++id) {
          c.strides[id] = (fa_stride_recipe){0};
          const bool follows = (packing == FA_PACK_QKV && (id == FA_T_K || id == FA_T_V)) ||
                               (packing == FA_PACK_KV && id == FA_T_V);
          if (gaps && fa_case_has_strides((fa_tensor_id)id) && fa_case_uses(&c, (fa_tensor_id)id) && !follows)
            c.strides[id] = (fa_stride_recipe){.gap = {3 + id, 2, 5}, .offset = id};
        }
        check_same_inputs(&c, &want);
      }
  fa_tensors_free(&want);
  fa_case_free(&c);
}

/* [b, h, s] with gaps after each batch index, row and head, which are checked. */
static void test_lse_gaps(void) {
  char where[200];
  fa_case c = base_case(FA_FLASH);
  c.layout = FA_LAYOUT_SBHD; /* has no effect on LSE */
  c.strides[FA_T_LSE] = (fa_stride_recipe){.gap = {7, 1, 3}, .offset = 2, .tail = 4};
  fa_tensors s = build(&c);
  const fa_tensor *t = &s.t[FA_T_LSE];
  CHECK(has_shape(t, FA_F32, 3, 2, 4, 5, 0));
  CHECK(t->stride[2] == 2 && t->stride[1] == 5 * 2 + 3 && t->stride[0] == 4 * 13 + 7);
  fa_tensors_poison(&s, FA_T_LSE, FA_POISON_A);
  CHECK(fa_tensors_gaps_intact(&s, FA_T_LSE, FA_POISON_A, where, sizeof where));
  memset(t->data + 4, 0, 4); /* like a kernel that assumes contiguous rows */
  CHECK(!fa_tensors_gaps_intact(&s, FA_T_LSE, FA_POISON_A, where, sizeof where));
  CHECK_MSG(strstr(where, "gaps of lse: 1 element") != NULL, "%s", where);
  fa_tensors_free(&s);
  const int32_t cu[] = {0, 2, 5};
  REQUIRE(fa_int32_array_set(&c.problem.cu_seqlens_q, cu, 3) == FA_OK);
  REQUIRE(fa_int32_array_set(&c.problem.cu_seqlens_k, cu, 3) == FA_OK);
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  s = build(&c);
  CHECK(has_shape(&s.t[FA_T_LSE], FA_F32, 2, 4, 5, 0, 0) && s.t[FA_T_LSE].stride[1] == 2 &&
        s.t[FA_T_LSE].stride[0] == 13);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

static void test_packing(void) {
  fa_case c = base_case(FA_FLASH);
  c.problem.seqlen_k = 5;
  c.packing = FA_PACK_QKV;
  c.strides[FA_T_Q] = (fa_stride_recipe){.gap = {0, 4, 0}};
  fa_tensors s = build(&c);
  CHECK(s.owner[FA_T_K] == FA_T_Q && s.owner[FA_T_V] == FA_T_Q && s.buffer[FA_T_K].base == NULL);
  CHECK(s.t[FA_T_K].data - s.t[FA_T_Q].data == 4 * 8 * 2 && s.t[FA_T_V].data - s.t[FA_T_Q].data == 6 * 8 * 2);
  CHECK(s.t[FA_T_Q].stride[1] == 8 * 8 + 4 && s.t[FA_T_V].stride[1] == 8 * 8 + 4);
  CHECK((int64_t)s.buffer[FA_T_Q].bytes == ((2 * 5 - 1) * 68 + 64) * 2);
  CHECK(input_gaps(&s, FA_T_Q) == 9 * 4);
  CHECK(s.owner[FA_T_DK] == FA_T_DK && s.buffer[FA_T_DK].base != NULL);
  fa_tensors_free(&s);
  c.problem.seqlen_q = c.problem.seqlen_k = 0; /* views of nothing */
  s = build(&c);
  CHECK(s.t[FA_T_V].data != NULL && fa_tensor_count(&s.t[FA_T_V]) == 0);
  fa_tensors_free(&s);
  fa_case_free(&c);
}

static void test_expand(void) {
  fa_case c = base_case(FA_FLASH);
  fa_tensors plain = build(&c);
  for (int axis = 0; axis < 3; ++axis) {
    c.strides[FA_T_K] = (fa_stride_recipe){.expand = {axis == 0, axis == 1, axis == 2}};
    fa_tensors s = build(&c);
    CHECK(s.t[FA_T_K].stride[axis] == 0 && has_shape(&s.t[FA_T_K], FA_F16, 4, 2, 7, 2, 8));
    for (int64_t at = 0; at < fa_tensor_count(&s.t[FA_T_K]); ++at) {
      int64_t i[4], first[4];
      fa_tensor_unravel(&s.t[FA_T_K], at, i);
      memcpy(first, i, sizeof first);
      first[axis] = 0;
      CHECK(bits_equal(&s.t[FA_T_K], i, &plain.t[FA_T_K], first));
    }
    CHECK(same_values(&s.t[FA_T_V], &plain.t[FA_T_V]) && input_gaps(&s, FA_T_K) == 0);
    fa_tensors_free(&s);
  }
  /* Shared memory is unused only where no sequence sees it. */
  set_array(&c.problem.seqused_k, (int32_t[]){2, 5}, 2);
  c.strides[FA_T_K] = (fa_stride_recipe){.expand = {true, false, false}};
  fa_tensors s = build(&c);
  for (int64_t j = 0; j < 7; ++j)
    CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], (int64_t[]){0, j, 1, 2}, FA_PATTERN_INPUT_GAP) == (j >= 5));
  for (int64_t j = 0; j < 7; ++j)
    CHECK(fa_tensor_has_pattern(&s.t[FA_T_V], (int64_t[]){0, j, 1, 2}, FA_PATTERN_INPUT_GAP) == (j >= 2));
  fa_tensors_free(&s);
  fa_tensors_free(&plain);
  fa_case_free(&c);
}

/* ---- values depend on (seed, tensor, index) only ---- */

static void test_shrinking(fa_fill fill) {
  fa_case big = base_case(FA_FLASH), small = base_case(FA_FLASH);
  small.problem.batch = 1, small.problem.heads_q = small.problem.heads_kv = 2;
  small.problem.seqlen_q = 3, small.problem.seqlen_k = 4;
  fa_case_set_fill(&big, fill);
  fa_case_set_fill(&small, fill);
  fa_tensors b = build(&big), s = build(&small);
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO};
  for (int k = 0; k < 4; ++k)
    for (int64_t at = 0; at < fa_tensor_count(&s.t[ids[k]]); ++at) {
      int64_t i[4];
      fa_tensor_unravel(&s.t[ids[k]], at, i);
      CHECK_MSG(bits_equal(&s.t[ids[k]], i, &b.t[ids[k]], i), "%s %s", fa_fill_describe(fill)->name,
                fa_tensor_id_name(ids[k]));
    }
  fa_tensors_free(&b);
  fa_tensors_free(&s);
  fa_case_free(&big);
  fa_case_free(&small);
}

/* ---- unused slots ---- */

static void test_hidden_keys(bool varlen) {
  fa_case c = base_case(FA_FLASH);
  if (varlen) {
    set_array(&c.problem.cu_seqlens_q, (int32_t[]){0, 3, 6}, 3);
    set_array(&c.problem.cu_seqlens_k, (int32_t[]){0, 7, 14}, 3);
  }
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  set_array(&c.problem.seqused_k, (int32_t[]){4, 7}, 2);
  set_array(&c.problem.leftpad_k, (int32_t[]){1, 3}, 2);
  fa_tensors s = build(&c);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t j = 0; j < 7; ++j)
      for (int64_t x = 0; x < 16; ++x) {
        const bool hidden = b == 0 ? j < 1 || j >= 4 : j < 3;
        const int64_t dense[4] = {b, j, x / 8, x % 8}, token[3] = {7 * b + j, x / 8, x % 8};
        const int64_t *i = varlen ? token : dense;
        CHECK(fa_tensor_has_pattern(&s.t[FA_T_K], i, FA_PATTERN_INPUT_GAP) == hidden);
        CHECK(fa_tensor_has_pattern(&s.t[FA_T_V], i, FA_PATTERN_INPUT_GAP) == hidden);
      }
  fa_tensors_free(&s);
  fa_case_free(&c);
}

static void test_refused(void) {
  fa_case c = base_case(FA_FLASH);
  fa_tensors s;
  fa_error err = {""};
  c.problem.heads_q = 3;
  CHECK(fa_case_build(&c, &s, &err) == FA_ERR_INPUT && strstr(err.text, "heads_q") &&
        s.t[FA_T_Q].data == NULL);
  fa_case_free(&c);
}

int main(void) {
  test_flash();
  test_varlen_shapes();
  test_flex_shapes();
  test_strides();
  for (int f = 0; f < FA_N_FILLS; ++f) {
    if (!fa_fill_is_general((fa_fill)f)) continue;
    test_layout_independence(false, (fa_fill)f);
    test_layout_independence(true, (fa_fill)f);
    if (f != FA_FILL_ONE_HOT) test_shrinking((fa_fill)f); /* its key depends on the number of keys */
  }
  test_lse_gaps();
  test_packing();
  test_expand();
  test_hidden_keys(false);
  test_hidden_keys(true);
  test_refused();
  return check_done();
}
