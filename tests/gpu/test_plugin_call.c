/* What a plugin is handed: everything that the case says, and every tensor of the call in the member that is its
 * own. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/tensors/table.h"
#include "gpu/backends/plugin_call.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static fa_tensor_bits seen; /* of the table's tensors, over all cases */

static fa_case case_of(const char *text) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s: %s", text, err.text);
  return c;
}

/* The members from q on are tensors, except the two that point to those of buffers. */
static int64_t tensors_in(const fa_plugin_call_tensors *x) {
  const fa_plugin_tensors *t = &x->tensors;
  const fa_plugin_tensor *first[] = {&t->q, &t->o, x->buffer, x->dbuffer, &t->mask_bits};
  const fa_plugin_tensor *end[] = {&t->full_q_indices + 1, &t->dbias + 1, x->buffer + FA_MAX_CAPTURES,
                                   x->dbuffer + FA_MAX_CAPTURES, &t->o_scale + 1};
  int64_t n = 0;
  for (int i = 0; i < 5; ++i)
    for (const fa_plugin_tensor *at = first[i]; at < end[i]; ++at) n += at->data != NULL;
  return n;
}

static bool is(const fa_plugin_tensor *x, const fa_tensor *t) {
  bool same = x->data == t->data && x->rank == t->rank;
  for (int a = 0; same && a < t->rank; ++a) same = x->shape[a] == t->shape[a] && x->stride[a] == t->stride[a];
  return same && t->data;
}

typedef struct made {
  fa_case c;
  fa_tensors t;
  fa_contract contract;
  fa_exec_tensors list;
  fa_plugin_call_problem problem;
  fa_plugin_call_tensors plain;
} made;

static void make(made *m, const char *text, const fa_contract *contract) {
  fa_error err = {""};
  memset(m, 0, sizeof *m);
  m->c = case_of(text);
  fa_contract_init(&m->contract);
  if (contract) m->contract = *contract;
  const fa_problem *p = &m->c.problem;
  const unsigned passes = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  REQUIRE(fa_case_build(&m->c, &m->t, &err) == FA_OK);
  REQUIRE(fa_exec_tensors_make(p, &m->t, &m->contract, passes, true, &m->list, &err) == FA_OK);
  fa_plugin_call_problem_set(&m->problem, p);
  fa_plugin_call_tensors_set(&m->plain, p, &m->list);
  CHECK_MSG(tensors_in(&m->plain) == m->list.n, "%s: %d of %d", text, (int)tensors_in(&m->plain), m->list.n);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (m->t.t[id].data) seen |= FA_TENSOR_BIT(id);
  char *json = fa_plugin_call_json(p);
  REQUIRE(json);
  fa_case again = case_of(json);
  CHECK_MSG(fa_problem_equal(&again.problem, p), "%s", json);
  fa_case_free(&again);
  free(json);
}

static void drop(made *m) {
  fa_exec_tensors_free(&m->list);
  fa_tensors_free(&m->t);
  fa_case_free(&m->c);
}

static void test_scores(void) {
  made m;
  make(&m,
       "{\"dtype\":\"bf16\",\"heads_q\":6,\"heads_kv\":3,\"seqlen_q\":8,\"seqlen_k\":9,\"softcap\":4.0,"
       "\"mask\":"
       "{\"type\":\"window\",\"left\":3,\"right\":1},\"alibi\":{\"slopes\":\"standard\"},\"dropout\":{\"p\":"
       "0.25,"
       "\"seed\":\"7\",\"offset\":\"3\"},\"grad_lse\":true,\"return_softmax\":true,\"deterministic\":true,"
       "\"splits\":0}",
       NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(p->size == sizeof *p && p->dtype == FA_PLUGIN_BF16 && p->backward && strcmp(p->family, "flash") == 0);
  CHECK(p->heads_q == 6 && p->heads_kv == 3 && p->seqlen_q == 8 && p->seqlen_k == 9 && p->head_dim == 64);
  CHECK(p->softcap == 4 && strcmp(p->mask, "window") == 0 && p->window_left == 3 && p->window_right == 1);
  CHECK(p->alibi && !p->bias && p->dropout_p == 0.25 && p->dropout_seed == 7 && p->dropout_offset == 3);
  CHECK(p->grad_lse && p->return_softmax && p->deterministic && p->empty_lse == INFINITY && !p->cache);
  CHECK(FA_PLUGIN_HAS(p, cache_batch_idx));
  fa_plugin_problem older = {.size = offsetof(fa_plugin_problem, dtype)};
  CHECK(FA_PLUGIN_HAS(&older, family) && !FA_PLUGIN_HAS(&older, dtype));
  CHECK(is(&t->q, &m.t.t[FA_T_Q]) && is(&t->d_o, &m.t.t[FA_T_DO]) && is(&t->d_lse, &m.t.t[FA_T_DLSE]));
  CHECK(is(&t->dv, &m.t.t[FA_T_DV]) && is(&t->p_debug, &m.t.t[FA_T_P_DEBUG]) && t->q.dtype == FA_PLUGIN_BF16);
  CHECK(is(&t->alibi_slopes, &m.t.t[FA_T_ALIBI_SLOPES]) && t->alibi_slopes.dtype == FA_PLUGIN_F32);
  CHECK(is(&t->lse, &m.t.t[FA_T_LSE]) && !t->bias.data && !t->dbias.data);
  drop(&m);
}

static void test_lengths(void) {
  made m;
  make(
      &m,
      "{\"family\":\"memeff\",\"cu_seqlens_q\":[0,3,8],\"cu_seqlens_k\":[0,4,9],\"seqused_k\":[2,5],\"mask\":"
      "{\"type\":\"causal\",\"align\":\"top_left\"}}",
      NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  CHECK(p->batch == 2 && p->cu_seqlens_q[1] == 3 && p->cu_seqlens_k[2] == 9 && p->seqused_k[1] == 5);
  CHECK(!p->leftpad_k && p->align_top_left && p->window_left == -1 && p->window_right == 0);
  CHECK(m.plain.tensors.q.rank == 3 && is(&m.plain.tensors.cu_seqlens_k, &m.t.t[FA_T_CU_SEQLENS_K]));
  CHECK(is(&m.plain.tensors.seqused_k, &m.t.t[FA_T_SEQUSED_K]));
  drop(&m);
  make(&m, "{\"family\":\"memeff\",\"seqlen_q\":4,\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"],\"grad\":true}}",
       NULL);
  CHECK(m.problem.problem.bias && m.problem.problem.bias_grad && !m.problem.problem.cu_seqlens_q);
  CHECK(is(&m.plain.tensors.bias, &m.t.t[FA_T_BIAS]) && is(&m.plain.tensors.dbias, &m.t.t[FA_T_DBIAS]));
  drop(&m);
}

/* Buffers by their own names with gradients, and lists in both directions. */
static void test_flex(void) {
  made m;
  make(&m,
       "{\"family\":\"flex\",\"seqlen_q\":300,\"heads_q\":2,\"score_mod\":\"score + "
       "slope[h]\",\"mask_mod\":\"doc["
       "q_idx] == "
       "doc[kv_idx]\",\"buffers\":{\"doc\":{\"shape\":[300],\"dtype\":\"i32\",\"below\":3,\"sorted\":"
       "true},\"slope\":{\"shape\":[2],\"grad\":true}},\"block_sparse\":{\"from\":\"mask_mod\"}}",
       NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  const fa_plugin_tensors *t = &m.plain.tensors;
  REQUIRE(p->n_captures == 2);
  int doc = strcmp(p->captures[0]->name, "doc") != 0;
  const fa_plugin_capture *d = p->captures[doc], *s = p->captures[1 - doc];
  CHECK(strcmp(d->name, "doc") == 0 && d->dtype == FA_PLUGIN_I32 && d->shape[0] == 300 && !d->wants_gradient);
  CHECK(strcmp(s->name, "slope") == 0 && s->rank == 1 && s->shape[0] == 2 && s->wants_gradient);
  CHECK(is(&t->buffers[doc], &m.t.t[FA_T_BUFFER_0 + doc]) && !t->dbuffers[doc].data);
  CHECK(is(&t->dbuffers[1 - doc], &m.t.t[FA_T_DBUFFER_0 + 1 - doc]));
  CHECK(strcmp(p->score_mod, "score + slope[h]") == 0 && p->block_sparse && p->q_block == 128);
  CHECK(p->empty_lse == -INFINITY);
  drop(&m);
  make(&m,
       "{\"family\":\"flex\",\"seqlen_q\":30,\"score_mod\":\"score + t[h, "
       "kv_idx]\",\"mask_mod\":\"keep[q_idx] && "
       "id >= "
       "0\",\"buffers\":{\"t\":{\"shape\":[1,30],\"dtype\":\"bf16\",\"strides\":[90,2]},\"keep\":{\"shape\":["
       "30],"
       "\"dtype\":\"bool\",\"strides\":[0]},\"id\":{\"dtype\":\"i64\",\"below\":4}}}",
       NULL);
  CHECK(t->buffers[0].dtype == FA_PLUGIN_BF16 && t->buffers[0].stride[0] == 90 &&
        t->buffers[0].stride[1] == 2);
  CHECK(t->dbuffers[0].dtype == FA_PLUGIN_BF16 && t->dbuffers[0].stride[0] == 30 &&
        t->dbuffers[0].stride[1] == 1);
  CHECK(t->buffers[1].dtype == FA_PLUGIN_BOOL && t->buffers[1].stride[0] == 0 && !t->dbuffers[1].data);
  CHECK(t->buffers[2].dtype == FA_PLUGIN_I64 && !t->dbuffers[2].data);
  CHECK(p->captures[0]->dtype == FA_PLUGIN_BF16 && p->captures[0]->wants_gradient);
  drop(&m);
  make(
      &m,
      "{\"family\":\"flex\",\"seqlen_q\":300,\"seqlen_k\":200,\"mask_mod\":\"kv_idx < 150\",\"block_sparse\":"
      "{\"density\":0.5,\"seed\":\"1\"}}",
      NULL);
  CHECK(is(&t->kv_indices, &m.t.t[FA_T_KV_INDICES]) && t->full_kv_num_blocks.shape[2] == 3);
  CHECK(t->q_num_blocks.shape[2] == 2 && t->q_indices.shape[3] == 3 && t->full_q_indices.data);
  drop(&m);
}

static void test_cache(void) {
  made m;
  make(&m,
       "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[5,9],"
       "\"new\":2,"
       "\"batch_idx\":[1,0],\"leftpad\":[1,0],\"rotary\":{\"dim\":16,\"interleaved\":true}}}",
       NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(p->cache && p->n_new == 2 && p->page_size == 0 && p->cache_seqlens[1] == 9 &&
        p->cache_batch_idx[0] == 1);
  CHECK(p->rotary_dim == 16 && p->rotary_interleaved && p->leftpad_k[0] == 1 && !p->backward);
  CHECK(is(&t->k_new, &m.t.t[FA_T_K_NEW]) && is(&t->rotary_sin, &m.t.t[FA_T_ROTARY_SIN]) && !t->dq.data);
  CHECK(is(&t->cache_batch_idx, &m.t.t[FA_T_CACHE_BATCH_IDX]) && is(&t->leftpad_k, &m.t.t[FA_T_LEFTPAD_K]));
  drop(&m);
  make(&m, "{\"family\":\"kvcache\",\"seqlen_k\":512,\"kvcache\":{\"len\":[300],\"page_size\":256}}", NULL);
  CHECK(m.problem.problem.page_size == 256 && is(&t->block_table, &m.t.t[FA_T_BLOCK_TABLE]));
  drop(&m);
}

static void test_sinks(void) {
  made m;
  make(&m, "{\"seqlen_q\":7,\"heads_q\":3,\"sinks\":{\"in_lse\":false}}", NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(p->sinks && p->sinks_grad && !p->sinks_in_lse);
  CHECK(is(&t->sinks, &m.t.t[FA_T_SINKS]) && is(&t->dsinks, &m.t.t[FA_T_DSINKS]));
  CHECK(t->sinks.rank == 1 && t->sinks.shape[0] == 3);
  drop(&m);
}

/* Outputs that are not promised are not there, and the LSE is in its own layout and type. */
static void test_contract(void) {
  made m;
  fa_contract c;
  fa_contract_init(&c);
  c.outputs = ~FA_TENSOR_BIT(FA_T_DQ);
  c.lse_layout = FA_LSE_TOKENS_HEADS;
  c.lse_dtype = FA_F64;
  make(&m, "{\"seqlen_q\":7,\"heads_q\":3}", &c);
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(!t->dq.data && t->dk.data && t->lse.data && t->lse.data != m.t.t[FA_T_LSE].data);
  CHECK(t->lse.dtype == FA_PLUGIN_F64 && t->lse.rank == 3 && t->lse.shape[1] == 7 && t->lse.shape[2] == 3);
  drop(&m);
}

static void test_bits(void) {
  made m;
  make(&m, "{\"seqlen_q\":7,\"seqlen_k\":9,\"mask_bits\":{\"density\":0.5}}", NULL);
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(m.problem.problem.mask_bits && is(&t->mask_bits, &m.t.t[FA_T_MASK_BITS]));
  CHECK(is(&t->mask_indptr, &m.t.t[FA_T_MASK_INDPTR]));
  drop(&m);
}

/* A plugin is shown V where it is, in K. */
static void test_latent(void) {
  made m;
  make(&m,
       "{\"family\":\"kvcache\",\"heads_q\":4,\"mla\":{\"kv_lora_rank\":8,\"qk_rope_head_dim\":4},\"batch\":"
       "2,\"seqlen_k\":16,"
       "\"kvcache\":{\"len\":[5,9],\"new\":1,\"page_size\":4},\"topk\":{\"k\":6,\"len\":[6,2]}}",
       NULL);
  const fa_plugin_problem *p = &m.problem.problem;
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(p->v_in_k && p->topk == 6 && p->head_dim == 12 && p->head_dim_v == 8 && p->heads_kv == 1);
  CHECK(t->v.data == t->k.data && t->v.shape[3] == 8 && t->v.stride[1] == t->k.stride[1]);
  CHECK(t->v_new.data == t->k_new.data);
  CHECK(is(&t->topk_indices, &m.t.t[FA_T_TOPK_INDICES]) && is(&t->topk_length, &m.t.t[FA_T_TOPK_LENGTH]));
  CHECK(t->topk_indices.rank == 3 && t->topk_indices.shape[2] == 6);
  drop(&m);
}

/* Operands of 8 bits come with their types and descales. */
static void test_quantized(void) {
  made m;
  make(&m,
       "{\"dtype\":\"bf16\",\"heads_q\":4,\"heads_kv\":2,\"batch\":3,\"seqlen_q\":5,"
       "\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"head\",\"amax\":true,\"o\":\"e4m3\"}}",
       NULL);
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(m.problem.problem.quantized && m.problem.problem.quantized_queries);
  CHECK(strcmp(m.problem.problem.descale, "head") == 0);
  CHECK(t->q.dtype == FA_PLUGIN_E4M3 && t->v.dtype == FA_PLUGIN_E4M3);
  CHECK(is(&t->q_descale, &m.t.t[FA_T_Q_DESCALE]) && is(&t->k_descale, &m.t.t[FA_T_K_DESCALE]));
  CHECK(m.problem.problem.quantized_o && is(&t->o_scale, &m.t.t[FA_T_O_SCALE]) &&
        t->o.dtype == FA_PLUGIN_E4M3);
  CHECK(m.problem.problem.amax && is(&t->amax_p, &m.t.t[FA_T_AMAX_P]) && is(&t->amax_o, &m.t.t[FA_T_AMAX_O]));
  CHECK(is(&t->v_descale, &m.t.t[FA_T_V_DESCALE]) && t->v_descale.shape[0] == 3 &&
        t->v_descale.shape[1] == 2);
  drop(&m);
}

/* Caches of 4 bits come as bytes, with the scales of their blocks. */
static void test_four_bits(void) {
  made m;
  make(&m,
       "{\"family\":\"kvcache\",\"heads_q\":4,\"heads_kv\":2,\"batch\":3,\"seqlen_k\":8,\"head_dim\":32,"
       "\"kvcache\":{\"len\":[5,8,1]},\"quantized\":{\"dtype\":\"e2m1\"}}",
       NULL);
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(m.problem.problem.quantized && !m.problem.problem.quantized_queries);
  CHECK(t->k.dtype == FA_PLUGIN_U8 && t->k.shape[3] == 16 && t->q.shape[3] == 32);
  CHECK(t->k_scales.dtype == FA_PLUGIN_E4M3 && t->v_scales.shape[3] == 2 && t->v_scales.shape[1] == 8);
  CHECK(is(&t->k_scales, &m.t.t[FA_T_K_SCALES]) && is(&t->v_scales, &m.t.t[FA_T_V_SCALES]));
  drop(&m);
}

/* A plugin sees by the shapes too that LSE and dLSE of packed queries are padded. */
static void test_padded_lse(void) {
  made m;
  make(&m,
       "{\"heads_q\":2,\"cu_seqlens_q\":[0,3,8],\"cu_seqlens_k\":[0,4,9],\"grad_lse\":true,"
       "\"lse_layout\":\"padded\"}",
       NULL);
  const fa_plugin_tensors *t = &m.plain.tensors;
  CHECK(m.problem.problem.lse_padded && is(&t->lse, &m.t.t[FA_T_LSE]) && is(&t->d_lse, &m.t.t[FA_T_DLSE]));
  CHECK(t->d_lse.rank == 3 && t->d_lse.shape[0] == 2 && t->d_lse.shape[1] == 2 && t->d_lse.shape[2] == 5);
  drop(&m);
}

/* Every tensor that a call may have has been handed over somewhere above. */
static void test_all_seen(void) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool one_of_many = (id > FA_T_BUFFER_0 + 1 && id <= FA_T_BUFFER_LAST) ||
                             (id >= FA_T_DBUFFER_0 && id <= FA_T_DBUFFER_LAST);
    const bool in_calls = id != FA_T_DROPOUT_KEEP && !one_of_many && !fa_tensor_has_parts((fa_tensor_id)id);
    CHECK_MSG((seen >> id & 1) == in_calls || one_of_many, "%s", fa_tensor_id_name((fa_tensor_id)id));
  }
}

int main(void) {
  test_scores();
  test_lengths();
  test_flex();
  test_cache();
  test_contract();
  test_sinks();
  test_latent();
  test_quantized();
  test_four_bits();
  test_padded_lse();
  test_bits();
  test_all_seen();
  return check_done();
}
