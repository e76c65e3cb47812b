/* The reference gives back what it takes, writes nothing behind a block, and reads nothing that it has not written; and when any of
 * its allocations fails, it says so and has given back all. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/cuda/machine.h"
#include "ref/mods/tile.h"
#include "ref/reference.h"
#include "tests/held/digest.h"
#include "tests/held/guarded.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[] = {"causal", "edge",      "gqa",         "varlen",       "dropout",
                                    "alibi",  "softcap",   "memeff",      "kvcache",      "flex",
                                    "mixed",  "masks",     "merge",       "sinks",        "mla",
                                    "topk",   "quantized", "mla_prefill", "kvcache_mods", "window"};
enum { N_FILES = sizeof files / sizeof *files, OF_A_FILE = 6 };

typedef struct subject {
  const fa_case *c;
  fa_tensors in;
  fa_ref_options opt;
  int64_t not_numbers; /* bounds that are NaN, or negative */
} subject;

static void count_bounds(subject *s, const fa_wants *w) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int64_t e = 0; e < w->t[id].n && w->t[id].quant && !isnan(w->t[id].value[e]); ++e)
      s->not_numbers += !(fa_want_bound(&w->t[id], e) >= 0);
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int64_t row = 0; w->t[id].scale && row < w->t[id].n / w->t[id].shape[w->t[id].rank - 1]; ++row)
      s->not_numbers += isinf(w->t[id].scale[row]);
}

/* Lists made from mask_mod, as a recorded run stores them. */
static fa_status run_lists(const subject *s, fa_error *err) {
  fa_int32_array lists[4];
  const fa_block_sparse *blocks = &s->c->problem.block_sparse;
  if (!blocks->present || blocks->source != FA_BLOCKS_MASK_MOD) return FA_OK;
  const fa_status status = fa_ref_block_lists(&s->c->problem, &s->in, lists, err);
  for (int list = 0; status == FA_OK && list < 4; ++list) free(lists[list].v);
  return status;
}

static fa_status run(subject *s, fa_error *err) {
  const fa_problem *p = &s->c->problem;
  fa_wants forward = {0}, backward = {0};
  fa_status status = fa_ref_forward(p, &s->in, &s->opt, &forward, err);
  CHECK(status == FA_OK || !forward.t[FA_T_O].value); /* and whoever failed has freed it */
  if (status == FA_OK && p->backward) {
    const fa_tensor o = digest_tensor_of(&forward.t[FA_T_O]);
    status = fa_ref_backward(p, &s->in, s->opt.generic ? &o : NULL, NULL, &forward, &s->opt, &backward, err);
    if (status == FA_OK) count_bounds(s, &backward);
    if (status == FA_OK) fa_wants_free(&backward);
  }
  if (forward.t[FA_T_O].value) count_bounds(s, &forward), fa_wants_free(&forward);
  return status == FA_OK ? run_lists(s, err) : status;
}

/* Allocation 0, 1, 2 ... fails, until there are no more. */
static void fail_each(subject *s) {
  const long before = guarded_live();
  for (long i = 0; i < 10000; ++i) {
    fa_error err = {""};
    guarded_fail_after(i);
    const fa_status status = run(s, &err);
    const bool unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(guarded_live() == before, "%s, allocation %ld: %ld blocks before, %ld after", s->c->name, i,
              before, guarded_live());
    if (unused) return;
    CHECK_MSG(status == FA_ERR_MEMORY && strstr(err.text, "memory"), "%s, allocation %ld: %d %s", s->c->name,
              i, (int)status, err.text);
  }
  CHECK(!"an end");
}

static void check_case(const fa_case *c, int number) {
  const fa_profile profile =
      fa_profile_get(c->problem.dtype == FA_F32 ? "simt-f32" : "recorded", c->problem.dtype);
  subject s = {.c = c,
               .opt = {.n_threads = 1 + 2 * (number % 2),
                       .profile = number % 3 ? &profile : NULL,
                       .generic = number % 3 == 1}};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &s.in, &err) == FA_OK);
  REQUIRE(run(&s, &err) == FA_OK); /* what is kept for ever is taken now */
  fail_each(&s);
  CHECK_MSG(s.not_numbers == 0, "%s: %lld bounds are NaN or negative", c->name, (long long)s.not_numbers);
  fa_tensors_free(&s.in);
}

static bool is_small(const fa_case *c) {
  const fa_problem *p = &c->problem;
  return c->expect != FA_EXPECT_REJECT && c->law == FA_LAW_NONE && p->seqlen_q * p->batch > 0 &&
         p->seqlen_k > 0 &&
         p->heads_q * p->batch * (p->seqlen_q + 4) * p->seqlen_k * (p->head_dim + p->head_dim_v) < 2000000;
}

/* Of the small ones some that are far from each other: neighbours are alike. */
static void check_file(const char *name, int first) {
  char path[100];
  fa_case_list list = {0};
  fa_error err = {""};
  int64_t n = 0, seen = 0;
  snprintf(path, sizeof path, "cases/%s.json", name);
  REQUIRE(fa_case_file_load(path, NULL, &list, &err) == FA_OK);
  for (int64_t i = 0; i < list.n; ++i) n += is_small(&list.v[i]);
  CHECK_MSG(n > 0, "%s has no small case", name);
  for (int64_t i = 0; i < list.n; ++i) {
    if (!is_small(&list.v[i])) continue;
    if (seen * OF_A_FILE / n != (seen + 1) * OF_A_FILE / n) check_case(&list.v[i], first + (int)seen);
    ++seen;
  }
  fa_case_list_free(&list);
}

/* What no file has as small as this: lists made from mask_mod, some of them full; two buffers' gradients with dropout. */
static const char *const more[] = {
    "{\"family\":\"flex\",\"head_dim\":8,\"batch\":2,\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":24,\"mask_"
    "mod\":"
    "\"q_idx + h >= kv_idx\",\"block_sparse\":{\"q_block\":8,\"kv_block\":8,\"from\":\"mask_mod\"}}",
    "{\"head_dim\":8,\"heads_q\":2,\"seqlen_q\":20,\"dropout\":{\"p\":0.3,\"seed\":\"3\"},\"return_softmax\":"
    "true,\"sinks\":{\"grad\":true}}",
    "{\"family\":\"flex\",\"head_dim\":8,\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":24,\"score_mod\":\"score "
    "* w[h] + x[kv_idx]\","
    "\"dropout\":{\"p\":0.3,\"seed\":\"3\"},\"buffers\":{\"w\":{\"shape\":[2],\"grad\":true},\"x\":{"
    "\"shape\":[24],\"grad\":true}}}",
};

static void check_more(void) {
  for (int i = 0; i < (int)(sizeof more / sizeof *more); ++i) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(more[i], &c, &err) == FA_OK, "%s", err.text);
    for (int number = 0; number < 3; ++number) check_case(&c, number);
    fa_case_free(&c);
  }
}

/* As many buffers as there may be, of all of which gradients are wanted: the last one's output may be what there is no memory for. */
static void check_buffers(void) {
  char text[4096], score[1024] = "score", buffers[2048] = "";
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    const size_t s = strlen(score), b = strlen(buffers);
    snprintf(score + s, sizeof score - s, " + w%d[h]", k);
    snprintf(buffers + b, sizeof buffers - b, "%s\"w%d\":{\"shape\":[1],\"grad\":true}", k ? "," : "", k);
  }
  snprintf(text, sizeof text,
           "{\"family\":\"flex\",\"head_dim\":8,\"seqlen_q\":2,\"seqlen_k\":3,\"score_mod\":\"%s\","
           "\"buffers\":{%s}}",
           score, buffers);
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s", err.text);
  check_case(&c, 0);
  fa_case_free(&c);
}

/* The host as the machine that the GPU's judge runs on. */
static void check_machine(void) {
  const long before = guarded_live();
  fa_judge_machine *m = fa_judge_machine_host_new(NULL, 1 << 20);
  REQUIRE(m && guarded_live() > before);
  fa_judge_machine_host_free(m);
  CHECK(guarded_live() == before);
  fa_judge_machine_host_free(NULL);
}

/* More blocks of a sample's rows than there is room for at first. */
static void check_sample(void) {
  enum { HEADS = 40 };
  static fa_ref_place rows[HEADS];
  for (int h = 0; h < HEADS; ++h) rows[h] = (fa_ref_place){0, h, 2};
  const fa_ref_sample sample = {.n_rows = HEADS, .row = rows};
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"head_dim\":8,\"heads_q\":40,\"seqlen_q\":4,\"backward\":false}", &c, &err) ==
          FA_OK);
  subject s = {.c = &c, .opt = {.n_threads = 1, .sample = &sample}};
  REQUIRE(fa_case_build(&c, &s.in, &err) == FA_OK);
  REQUIRE(run(&s, &err) == FA_OK);
  fail_each(&s);
  fa_tensors_free(&s.in);
  fa_case_free(&c);
}

int main(void) {
  check_machine();
  check_sample();
  check_more();
  check_buffers();
  for (int i = 0; i < N_FILES; ++i) check_file(files[i], i * OF_A_FILE);
  return check_done();
}
