#include "fuzz/inputs/hostile_judged.h"

#include "cases/codec/json.h"
#include "fuzz/inputs/fuzzer.h"
#include "fuzz/one/run_case.h"
#include "report/journal_line.h"
#include "report/json.h"
#include "report/text/line.h"

#include <stdio.h>
#include <stdlib.h>

/* Small, and so that every kind of tensor and every word of an answer means something to one of them. */
static const char *const cases[] = {
    "{\"dtype\":\"f32\",\"seqlen_q\":5,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}",
    "{\"dtype\":\"f16\",\"head_dim\":8,\"heads_q\":2,\"cu_seqlens_q\":[0,3,5],\"cu_seqlens_k\":[0,4,4],"
    "\"grad_lse\":true}",
    "{\"dtype\":\"bf16\",\"seqlen_q\":3,\"seqlen_k\":6,\"head_dim\":8,\"alibi\":{\"slopes\":[0.5]},"
    "\"mask\":{\"type\":\"causal\"}}",
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"head_dim\":8,\"seqlen_q\":1,\"seqlen_k\":8,"
    "\"kvcache\":{\"len\":[3],\"new\":1,\"page_size\":4}}",
    "{\"family\":\"flex\",\"dtype\":\"f32\",\"head_dim\":8,\"seqlen_q\":4,\"score_mod\":\"score + slope[h]\","
    "\"buffers\":{\"slope\":{\"shape\":[1],\"grad\":true}},"
    "\"block_sparse\":{\"q_block\":2,\"kv_block\":2,\"density\":0.5}}",
    "{\"family\":\"memeff\",\"dtype\":\"f32\",\"head_dim\":8,\"seqlen_q\":3,"
    "\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true}}",
    "{\"dtype\":\"f32\",\"seqlen_q\":2,\"seqlen_k\":3,\"head_dim\":8,\"scale\":0,\"backward\":false}"};
_Static_assert(sizeof cases / sizeof *cases == FA_HOSTILE_CASES, "all of them");

void fa_hostile_check_text(const char *text, size_t n) {
  for (size_t i = 0; i < n; ++i)
    FA_FUZZ_CHECK(((unsigned char)text[i] >= 0x20 || text[i] == '\n') && text[i] != 0x7f, "%.*s", (int)n,
                  text);
}

static void check_printed(const fa_result *r) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  FA_ASSERT(out);
  fa_line_print(out, r, &(fa_line_style){.verbosity = 1});
  FA_ASSERT(fclose(out) == 0);
  fa_hostile_check_text(text, n);
  free(text);
}

static void check_journal(const fa_result *r) {
  fa_report_line line;
  fa_error err = {""};
  char *text = fa_report_journal_line(r, 0, 1);
  FA_ASSERT(text);
  FA_FUZZ_CHECK(fa_report_line_parse(text, &line, &err) == FA_OK, "%s: %s", err.text, text);
  fa_report_line_free(&line);
  free(text);
}

void fa_hostile_judge(const fa_backend *backend, void *self, int number) {
  static fa_result r; /* large */
  fa_case c;
  fa_error err = {""};
  const fa_run_config config = {.backend = backend, .backend_self = self, .n_threads = 1};
  FA_ASSERT(fa_case_from_text(cases[number % FA_HOSTILE_CASES], &c, &err) == FA_OK);
  fa_result_init(&r);
  const fa_status status = fa_run_case(&c, &config, &r, &err);
  snprintf(r.backend, sizeof r.backend, "%s:hostile", backend->name);
  FA_FUZZ_CHECK((status == FA_OK) == (r.state != FA_ERROR), "%s: %s", fa_state_name(r.state), err.text);
  FA_FUZZ_CHECK(status == FA_OK || status == FA_ERR_DEVICE || status == FA_ERR_INPUT, "%s", err.text);
  FA_FUZZ_CHECK(r.state != FA_UNTESTED, "case %d has no result", number % FA_HOSTILE_CASES);
  check_printed(&r);
  check_journal(&r);
  fa_result_free(&r);
  fa_case_free(&c);
}
