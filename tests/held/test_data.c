/* The data of cases is what tests/held/recorded/data.txt holds: a repro line has to give the same tensors in every version. Each fill in
 * calls of every family, and what few fills or calls have: rows that share memory, lists, bits, pages, buffers.
 *
 * usage: test_data_held [--write]    (from the top of the source tree) */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/vocabulary/fill.h"
#include "tests/held/digest.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static digest_book book;

/* The fill goes in for %s. */
static const char *const filled[] = {
    "{\"seqlen_q\":6,\"seqlen_k\":9,\"heads_q\":2,\"head_dim\":8,\"fill\":\"%s\"}",
    "{\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"scale\":0,\"fill\":\"%s\"}",
    "{\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"scale\":1e-7,\"fill\":\"%s\"}",
    "{\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"scale\":-300,\"mask\":{\"type\":\"causal\"},\"fill\":\"%"
    "s\"}",
    "{\"dtype\":\"bf16\",\"cu_seqlens_q\":[0,2,5],\"cu_seqlens_k\":[0,4,7],\"heads_q\":4,\"heads_kv\":2,"
    "\"head_dim\":8,\"fill\":\"%s\"}",
    "{\"family\":\"memeff\",\"dtype\":\"f32\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":131,\"heads_q\":2,"
    "\"head_dim\":4,\"bias\":{\"shape\":["
    "\"b\",\"h\",\"q\",\"k\"],\"fill\":\"%s\"}}",
    "{\"family\":\"memeff\",\"seqlen_q\":3,\"seqlen_k\":66,\"head_dim\":4,\"bias\":{\"shape\":[1,1,1,\"k\"],"
    "\"fill\":\"%s\"}}",
    "{\"seqlen_q\":9,\"heads_q\":2,\"head_dim\":8,\"grad_lse\":true,\"fill\":{\"dlse\":\"%s\"}}",
    "{\"family\":\"merge\",\"batch\":2,\"heads_q\":3,\"seqlen_q\":20,\"head_dim\":4,\"merge\":{\"parts\":3},"
    "\"fill\":\"%s\"}",
    "{\"family\":\"merge\",\"batch\":2,\"heads_q\":3,\"seqlen_q\":20,\"head_dim\":4,\"merge\":{\"parts\":3},"
    "\"fill\":{\"lse_parts\":\"%s\"}}",
    "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":12,\"head_dim\":8,\"kvcache\":{\"len\":[5,7],\"new\":2}"
    ",\"fill\":\"%s\"}",
    "{\"seqlen_q\":3,\"head_dim\":8,\"quantized\":{\"dtype\":\"e4m3\"},\"fill\":\"%s\"}",
    "{\"seqlen_q\":3,\"heads_q\":9,\"head_dim\":8,\"sinks\":true,\"fill\":{\"sinks\":\"%s\"}}",
    "{\"family\":\"flex\",\"seqlen_q\":40,\"seqlen_k\":40,\"head_dim\":8,\"block_sparse\":{\"q_block\":8,"
    "\"kv_block\":8,\"density\":0.3},"
    "\"fill\":\"%s\"}",
    "{\"seqlen_q\":9,\"seqlen_k\":5,\"head_dim\":8,\"mask\":{\"type\":\"window\",\"left\":1,\"right\":-1},"
    "\"fill\":\"%s\"}",
};

static const char *const cases[] = {
    /* rows that share memory; sequences without keys */
    "{\"cu_seqlens_q\":[0,2,5,6],\"cu_seqlens_k\":[0,0,4,7],\"head_dim\":8,\"strides\":{\"k\":{\"expand\":["
    "\"s\"]}}}",
    "{\"cu_seqlens_q\":[0,2,5],\"cu_seqlens_k\":[0,4,7],\"seqused_k\":[0,2],\"head_dim\":8,\"strides\":{"
    "\"k\":{\"expand\":[\"s\"]},\"v\":{"
    "\"expand\":[\"s\"]}}}",
    "{\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":5,\"seqused_k\":[2,4],\"leftpad_k\":[1,0],\"heads_q\":2,\"head_"
    "dim\":8,\"strides\":{\"k\":{\"expand\":["
    "\"b\"]},\"v\":{\"expand\":[\"b\",\"h\"]},\"q\":{\"expand\":[\"s\"]}}}",
    "{\"family\":\"merge\",\"batch\":2,\"heads_q\":3,\"seqlen_q\":20,\"head_dim\":4,\"merge\":{\"parts\":3},"
    "\"fill\":{\"lse_parts\":"
    "\"lse_empty\"},\"strides\":{\"o_parts\":{\"expand\":[\"b\"]}}}",
    "{\"family\":\"merge\",\"batch\":2,\"heads_q\":3,\"seqlen_q\":20,\"head_dim\":4,\"merge\":{\"parts\":3},"
    "\"fill\":{\"lse_parts\":"
    "\"lse_empty\"},\"strides\":{\"o_parts\":{\"expand\":[\"h\"]}}}",
    /* the tensors' own memory */
    "{\"batch\":2,\"seqlen_q\":3,\"heads_q\":4,\"heads_kv\":2,\"head_dim\":8,\"packed\":\"qkv\"}",
    "{\"batch\":2,\"seqlen_q\":3,\"heads_q\":4,\"heads_kv\":2,\"head_dim\":8,\"packed\":\"kv\",\"layout\":"
    "\"bhsd\"}",
    "{\"seqlen_q\":0,\"seqlen_k\":4,\"heads_q\":2,\"heads_kv\":2,\"head_dim\":8,\"packed\":\"kv\"}",
    "{\"seqlen_q\":2,\"seqlen_k\":0,\"heads_q\":2,\"heads_kv\":2,\"head_dim\":8,\"packed\":\"kv\"}",
    "{\"batch\":2,\"seqlen_q\":3,\"heads_q\":2,\"head_dim\":8,\"layout\":\"bhsd\",\"strides\":{\"q\":{"
    "\"gap\":[8,0,0],\"offset\":3,\"tail\":5},\"o\":{"
    "\"gap\":[0,16,8]}}}",
    "{\"seqlen_q\":129,\"seqlen_k\":128,\"head_dim\":8,\"dropout\":{\"p\":0.5,\"seed\":\"1\"},\"return_"
    "softmax\":true,\"backward\":false}",
    "{\"seqlen_q\":128,\"seqlen_k\":129,\"head_dim\":8,\"dropout\":{\"p\":0.5,\"seed\":\"1\"},\"return_"
    "softmax\":true,\"backward\":false}",
    /* rows without a key they could choose */
    "{\"seqlen_q\":24,\"seqlen_k\":24,\"head_dim\":8,\"family\":\"flex\",\"block_sparse\":{\"q_block\":8,"
    "\"kv_block\":8,\"kv_num_blocks\":[[[0,1,2]]],"
    "\"kv_indices\":[[[[0,0,0],[1,0,0],[0,2,0]]]]},\"fill\":\"one_hot\"}",
    "{\"seqlen_q\":6,\"seqlen_k\":6,\"head_dim\":8,\"mask_bits\":{\"density\":0.3,\"empty_rows\":0.5,"
    "\"seed\":\"2\"},\"fill\":\"one_hot\"}",
    /* trees of draft tokens, with no key before them, one, and fewer keys than tokens */
    "{\"seqlen_q\":5,\"seqlen_k\":5,\"head_dim\":8,\"mask_bits\":{\"tree\":\"random\",\"seed\":\"3\"}}",
    "{\"seqlen_q\":5,\"seqlen_k\":6,\"head_dim\":8,\"mask_bits\":{\"tree\":\"chain\"}}",
    "{\"seqlen_q\":5,\"seqlen_k\":3,\"head_dim\":8,\"mask_bits\":{\"tree\":\"star\"}}",
    "{\"seqlen_q\":5,\"seqlen_k\":3,\"head_dim\":8,\"mask_bits\":{\"tree\":\"chain\"}}",
    /* buffers, of which axes repeat, with and without a gradient */
    "{\"family\":\"flex\",\"seqlen_q\":4,\"heads_q\":2,\"head_dim\":8,\"score_mod\":\"score + x[h,kv_idx] + "
    "y[q_idx,kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[2,4],\"strides\":[0,1],\"grad\":true},\"y\":{\"shape\":[4,4],\"strides\":[4,0]}}}",
    "{\"family\":\"flex\",\"seqlen_q\":4,\"heads_q\":2,\"head_dim\":8,\"backward\":false,\"score_mod\":"
    "\"score + x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[4],\"grad\":true},\"z\":{\"shape\":[3],\"grad\":true}}}",
    "{\"family\":\"flex\",\"seqlen_q\":4,\"head_dim\":8,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{\"shape\":[4],\"grad\":true},\"z\":{"
    "\"shape\":[3],\"dtype\":\"i32\",\"below\":2},\"s\":{\"shape\":[5],\"dtype\":\"i32\",\"below\":9,"
    "\"sorted\":true},\"w\":{\"shape\":[7],\"dtype\":"
    "\"bool\",\"share\":0.4}}}",
    /* caches: rows and pages that are shared, appended keys, rotary numbers */
    "{\"family\":\"kvcache\",\"batch\":3,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[3,5,4],\"batch_"
    "idx\":[1,0,1]}}",
    "{\"family\":\"kvcache\",\"batch\":3,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[3,5,4],\"batch_"
    "idx\":[1,1,0]}}",
    "{\"family\":\"kvcache\",\"batch\":3,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[5,6,7],\"page_"
    "size\":4,\"shared_pages\":1,\"leftpad\":[0,1,"
    "2]}}",
    "{\"family\":\"kvcache\",\"batch\":1,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[3],\"new\":2,"
    "\"batch_idx\":[0],\"rotary\":{\"dim\":8}}}",
    "{\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[8],\"page_size\":4},"
    "\"topk\":{\"k\":6,\"len\":[4]}}",
    "{\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[5]},\"topk\":{\"k\":6,"
    "\"len\":[3],\"repeated\":0.5}}",
    "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[0,5]},\"topk\":{"
    "\"k\":6,\"repeated\":1}}",
    "{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"batch\":2,\"seqlen_k\":8,\"head_dim\":16,\"kvcache\":{"
    "\"len\":[3,5]},\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"token\"}}",
    /* descales of pages, which queries of several heads for each of the keys' do not have */
    "{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":5,"
    "\"seqlen_k\":16,\"head_dim\":16,\"kvcache\":{\"len\":[9,5],\"page_size\":4},\"quantized\":{\"dtype\":"
    "\"e4m3\",\"queries\":true,\"descale\":\"page\"}}",
    /* a scale so large that K would be too small, and lists for all heads together */
    "{\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"scale\":1e12,\"fill\":\"one_hot\"}",
    "{\"seqlen_q\":24,\"seqlen_k\":24,\"heads_q\":3,\"head_dim\":8,\"family\":\"flex\",\"block_sparse\":{\"q_"
    "block\":8,\"kv_block\":8,\"kv_num_blocks\":[[[1,1,1]]],\"kv_indices\":[[[[2,0,0],[1,0,0],[0,2,0]]]]},"
    "\"fill\":\"one_hot\"}",
};

/* Of everything that is there: bytes, places and shapes of the memory, infinities, and exact integers. */
static digest sizes_of(const fa_tensors *in) {
  digest d = {.n = 0};
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *t = &in->t[id];
    if (!t->data) continue;
    ++d.n;
    digest_add(&d, 0, (double)in->buffer[id].bytes, id);
    for (int a = 0; a < t->rank; ++a) digest_add(&d, 1, (double)(t->shape[a] * (8 + a)), id);
    for (int a = 0; a < t->rank; ++a) digest_add(&d, 2, (double)(t->stride[a] * (8 + a)), id);
    if (fa_tensor_id_is_output((fa_tensor_id)id)) continue;
    for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
      fa_tensor_unravel(t, e, index);
      const double x = fa_tensor_get(t, index);
      if (x > 0) digest_add(&d, 3, isfinite(x) ? x : 1e4, e);
      if (!fa_dtype_is_float(t->dtype)) digest_add(&d, 4, x + 7, e % 5 + id);
    }
  }
  return d;
}

static void hold(const char *text, const char *name) {
  fa_case c;
  fa_tensors in;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s: %s", text, err.text);
  if (err.text[0]) return;
  CHECK_MSG(fa_case_build(&c, &in, &err) == FA_OK, "%s: %s", text, err.text);
  const digest values = digest_of_inputs(&in), sizes = sizes_of(&in);
  digest_hold(&book, name, "values", FA_T_Q, &values);
  digest_hold(&book, name, "sizes", FA_T_Q, &sizes);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Not every call has every fill. */
static bool is_case(const char *text) {
  fa_case c;
  if (fa_case_from_text(text, &c, NULL) != FA_OK) return false;
  fa_case_free(&c);
  return true;
}

static void hold_fills(int call) {
  int n = 0;
  for (int fill = 0; fill < FA_N_FILLS; ++fill) {
    char text[500], name[100];
    snprintf(text, sizeof text, filled[call], fa_fill_describe((fa_fill)fill)->name);
    snprintf(name, sizeof name, "call-%d/%s", call, fa_fill_describe((fa_fill)fill)->name);
    if (!is_case(text)) continue;
    hold(text, name);
    ++n;
  }
  CHECK_MSG(n > 3, "%d fills of %s", n, filled[call]);
}

int main(int argc, char **argv) {
  char more[8], name[30];
  book.writes = argc > 1 && strcmp(argv[1], "--write") == 0;
  book.f = fopen("tests/held/recorded/data.txt", book.writes ? "w" : "r");
  REQUIRE(book.f);
  for (int i = 0; i < (int)(sizeof filled / sizeof *filled); ++i) hold_fills(i);
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); ++i) {
    snprintf(name, sizeof name, "case-%d", i);
    hold(cases[i], name);
  }
  CHECK_MSG(book.writes || !fgets(more, sizeof more, book.f), "more is recorded than there is");
  CHECK(fclose(book.f) == 0);
  return check_done();
}
