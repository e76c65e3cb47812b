/* The tables of names: every row is there, and rows that refer to each other agree. */
#include "cases/tensors/table.h"
#include "cases/vocabulary/fill.h"
#include "cases/vocabulary/mask.h"
#include "tests/support/check.h"

#include <string.h>

static void test_tensors(void) {
  fa_profile all_atomic = {.dq_atomic = true,
                           .dkv_atomic = true,
                           .dbias_atomic = true,
                           .dbuffer_atomic = true,
                           .dsinks_atomic = true};
  const fa_profile ordered = {0};
  fa_tensor_bits outputs = 0;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_tensor_id id = (fa_tensor_id)i;
    const fa_tensor_info *info = fa_tensor_describe(id);
    REQUIRE(info->name && info->pass != FA_PASS_NONE);
    const bool output = info->direction == FA_TENSOR_OUTPUT;
    CHECK(output == (info->data == FA_DATA_NONE) && output == fa_tensor_id_is_output(id));
    CHECK(!fa_tensor_is_filled(id) || info->axes != FA_AXES_OWN);
    CHECK(info->gradient == (output && info->pass == FA_PASS_BACKWARD));
    CHECK(fa_tensor_sums_in_any_order(&all_atomic, id) == (info->gradient && !fa_tensor_has_parts(id)));
    CHECK(!fa_tensor_sums_in_any_order(&ordered, id));
    if (output) outputs |= FA_TENSOR_BIT(id);
    if (!info->gradient) continue;
    const fa_tensor_info *input = fa_tensor_describe(info->of);
    CHECK(fa_tensor_gradient_of(info->of) == id && input->direction != FA_TENSOR_OUTPUT);
    CHECK(info->axes == input->axes && info->on_keys == input->on_keys &&
          info->on_values == input->on_values);
    CHECK(info->name[0] == 'd' && strcmp(info->name + 1, input->name) == 0);
  }
  CHECK(fa_tensor_gradient_of(FA_T_ALIBI_SLOPES) == FA_T_COUNT);
  CHECK(fa_tensor_is_through_ds(FA_T_DQ) && fa_tensor_is_through_ds(FA_T_DBUFFER_0));
  CHECK(!fa_tensor_is_through_ds(FA_T_DV) && !fa_tensor_is_through_ds(FA_T_O));
  const fa_tensor_bits forward = fa_tensors_written_by(FA_PASS_FORWARD),
                       backward = fa_tensors_written_by(FA_PASS_BACKWARD);
  CHECK((forward & backward) == 0 && (forward | backward) == outputs);
  CHECK(forward >> FA_T_LSE & 1 && backward >> FA_T_DBIAS & 1);
}

static void test_shape_of_one(void) {
  const fa_problem p = {
      .batch = 2, .heads_q = 4, .heads_kv = 2, .seqlen_q = 3, .seqlen_k = 5, .head_dim = 8, .head_dim_v = 8};
  int64_t shape[4];
  fa_tensor_shape(&p, FA_T_AMAX_P, shape);
  for (int i = 0; i < 4; ++i) CHECK(shape[i] == 1);
}

static void test_presence(void) {
  fa_problem p;
  fa_problem_init(&p);
  CHECK(fa_tensor_is_asked_for(&p, FA_T_Q) && fa_tensor_is_asked_for(&p, FA_T_DV));
  CHECK(!fa_tensor_is_asked_for(&p, FA_T_BIAS) && !fa_tensor_is_asked_for(&p, FA_T_DROPOUT_KEEP));
  p.bias = (fa_bias){.present = true, .grad = true};
  CHECK(fa_tensor_is_asked_for(&p, FA_T_BIAS) && fa_tensor_is_asked_for(&p, FA_T_DBIAS));
  p.backward = false;
  CHECK(fa_tensor_is_asked_for(&p, FA_T_BIAS) && !fa_tensor_is_asked_for(&p, FA_T_DBIAS));
  CHECK(!fa_tensor_is_updated(&p, FA_T_K));
  p.kvcache.present = true;
  p.kvcache.n_new = 2;
  CHECK(fa_tensor_is_updated(&p, FA_T_K) && fa_tensor_is_updated(&p, FA_T_V));
  CHECK(!fa_tensor_is_updated(&p, FA_T_K_NEW) && fa_tensor_is_asked_for(&p, FA_T_K_NEW));
}

/* A merge has the outputs of attention, its parts, and nothing of queries and keys. */
static void test_merge(void) {
  const fa_tensor_id its[] = {FA_T_DO, FA_T_DLSE, FA_T_O_PARTS,  FA_T_LSE_PARTS,
                              FA_T_O,  FA_T_LSE,  FA_T_DO_PARTS, FA_T_DLSE_PARTS};
  fa_tensor_bits expected = 0;
  fa_problem p;
  fa_problem_init(&p);
  CHECK(!fa_tensor_is_asked_for(&p, FA_T_O_PARTS) && !fa_tensor_is_asked_for(&p, FA_T_DLSE_PARTS));
  fa_problem_set_family(&p, FA_MERGE);
  p.merge.parts_dtype = FA_F32;
  p.grad_lse = true;
  for (size_t i = 0; i < sizeof its / sizeof *its; ++i) expected |= FA_TENSOR_BIT(its[i]);
  for (int id = 0; id < FA_T_COUNT; ++id)
    CHECK(fa_tensor_is_asked_for(&p, (fa_tensor_id)id) == (expected >> id & 1));
  CHECK(fa_tensor_dtype(&p, FA_T_O) == FA_F16 && fa_tensor_dtype(&p, FA_T_DO_PARTS) == FA_F32);
  CHECK(fa_tensor_dtype(&p, FA_T_LSE_PARTS) == FA_F32);
}

static void test_masks(void) {
  for (int type = 0; type < FA_N_MASKS; ++type) {
    const fa_mask m = {.type = (fa_mask_type)type, .left = 3, .right = 5};
    const fa_mask_info *info = fa_mask_describe(m.type);
    const fa_window w = fa_mask_window(&m);
    REQUIRE(info->name && *info->name);
    const bool own_left = m.type == FA_MASK_WINDOW || m.type == FA_MASK_CHUNK;
    const bool at_diagonal = m.type == FA_MASK_CAUSAL || m.type == FA_MASK_CHUNK;
    CHECK(fa_mask_has_edges(&m) == (m.type == FA_MASK_WINDOW) && fa_mask_has_left(&m) == own_left);
    CHECK(w.left == (own_left ? 3 : -1));
    CHECK(w.right == (m.type == FA_MASK_WINDOW ? 5 : at_diagonal ? 0 : -1));
  }
  fa_mask m = {.type = FA_MASK_CAUSAL, .align = FA_ALIGN_TOP_LEFT, .left = -1, .right = -1};
  fa_mask_set_window(&m, 7, -1);
  CHECK(m.type == FA_MASK_WINDOW && m.align == FA_ALIGN_TOP_LEFT && m.left == 7 && m.right == -1);
}

/* Positions before key 0 are in chunks that begin before it. */
static void test_chunks(void) {
  const fa_mask m = {.type = FA_MASK_CHUNK, .left = -1, .right = -1, .size = 4},
                none = {.type = FA_MASK_CAUSAL, .size = 4};
  CHECK(fa_mask_chunk(&m) == 4 && fa_mask_chunk(&none) == 0);
  CHECK(fa_mask_chunk_begin(4, 0) == 0 && fa_mask_chunk_begin(4, 3) == 0 && fa_mask_chunk_begin(4, 4) == 4);
  CHECK(fa_mask_chunk_begin(4, -1) == -4 && fa_mask_chunk_begin(4, -4) == -4 &&
        fa_mask_chunk_begin(4, -5) == -8);
}

static void test_fills(void) {
  for (int f = 0; f < FA_N_FILLS; ++f) {
    const fa_fill_info *info = fa_fill_describe((fa_fill)f);
    REQUIRE(info->name && *info->name && info->what && *info->what);
    CHECK(info->simplicity >= 0 && info->simplicity <= FA_N_SIMPLE_FILLS);
    CHECK(info->zero_q || !info->zero);
    CHECK(!info->reads_v || info->do_only);
  }
  for (int k = 1; k <= FA_N_SIMPLE_FILLS; ++k)
    CHECK(fa_fill_describe(fa_fill_of_simplicity(k))->simplicity == k);
  CHECK(fa_fill_of_simplicity(1) == FA_FILL_ZERO &&
        fa_fill_of_simplicity(FA_N_SIMPLE_FILLS) == FA_FILL_NORMAL);
}

int main(void) {
  test_tensors();
  test_shape_of_one();
  test_presence();
  test_merge();
  test_masks();
  test_chunks();
  test_fills();
  return check_done();
}
