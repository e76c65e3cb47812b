#include "tests/report/planted_causes.h"

#include "cases/tensors/table.h"
#include "report/causes/collect.h"
#include "report/causes/print.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <string.h>

static unsigned draw(unsigned *state, unsigned n) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

static planted_case case_of(int i) {
  static const int lengths[] = {1, 7, 33, 64, 65, 100, 128, 130, 200, 256, 333};
  static const int dims[] = {32, 40, 64, 80, 96, 128, 192, 256}, rights[] = {0, 3, 50, 100, 150, 400};
  unsigned s = (unsigned)i * 2654435761u + 12345u;
  draw(&s, 2);
  planted_case c = {.sq = lengths[draw(&s, 11)], .sk = lengths[draw(&s, 11)], .d = dims[draw(&s, 8)]};
  c.group = 1 + (int)draw(&s, 4);
  c.right = draw(&s, 3) ? -2 : rights[draw(&s, 6)];
  c.softcap = draw(&s, 3) == 0;
  c.backward = draw(&s, 2) == 0;
  c.bf16 = draw(&s, 2) == 0;
  c.alibi = draw(&s, 4) == 0;
  c.chance = draw(&s, 1000);
  return c;
}

void planted_wrong(fa_result *r, fa_tensor_id id) {
  fa_verdict *v = &r->verdict[r->n_verdicts++];
  memset(v, 0, sizeof *v);
  v->id = id;
  v->fail = true;
  v->bad = 3;
  v->count = 100;
  r->state = FA_FAIL;
}

void planted_explained(fa_result *r, const char *hypothesis) {
  fa_explanation *e = &r->explanation[r->n_explanations++];
  *e = (fa_explanation){.tensors = 1, .wrong = 3, .share = 1};
  snprintf(e->hypothesis, sizeof e->hypothesis, "%s", hypothesis);
  snprintf(e->text, sizeof e->text, "the text of %s", hypothesis);
}

static void set_facts(const planted_run *run, int i, const planted_case *c, fa_result *r) {
  char window[32] = "";
  if (c->right > -2) snprintf(window, sizeof window, " right=%d", c->right);
  snprintf(r->features, sizeof r->features, "%s flash%s%s%s%s%s", c->bf16 ? "bf16" : "f16",
           c->right > -2 ? " window" : "", c->softcap ? " softcap" : "", c->backward ? " backward" : "",
           c->alibi ? " alibi" : "", c->group > 1 ? " gqa" : "");
  if (!run->shapeless || (run->every_10th && (i % 10 == 0 || r->state != FA_PASS)))
    snprintf(r->shape, sizeof r->shape, "b=1 hq=%d hkv=2 sq=%d sk=%d d=%d dv=%d%s fill=normal", 2 * c->group,
             c->sq, c->sk, c->d, c->d, window);
}

void planted_result(const planted_run *run, int i, fa_result *r) {
  char text[512];
  const planted_case c = case_of(i);
  fa_result_init(r);
  snprintf(text, sizeof text, "c%d", i);
  r->name = strdup(text);
  snprintf(
      text, sizeof text,
      "{\"name\":\"c%d\",\"family\":\"flash\",\"heads_q\":%d,\"heads_kv\":2,\"seqlen_q\":%d,\"seqlen_k\":%d,"
      "\"head_dim\":%d}",
      i, 2 * c.group, c.sq, c.sk, c.d);
  r->case_line = strdup(text);
  snprintf(r->backend, sizeof r->backend, "made-up");
  r->passes = FA_PASS_FORWARD | (c.backward ? FA_PASS_BACKWARD : 0);
  r->state = FA_PASS;
  run->cause(&c, r);
  set_facts(run, i, &c, r);
}

cJSON *planted_groups(const planted_run *run) {
  static fa_result r;
  fa_causes *causes = fa_causes_make();
  cJSON *groups = NULL;
  fa_error err;
  REQUIRE(causes);
  for (int i = 0; i < run->n; ++i) {
    planted_result(run, i, &r);
    REQUIRE(fa_causes_note(causes, &r, NULL, &err) == FA_OK);
    fa_result_free(&r);
  }
  REQUIRE(fa_causes_conclude(causes, NULL, NULL, "fa-verify", &groups, &err) == FA_OK);
  fa_causes_free(causes);
  return groups;
}

char *planted_lines(const cJSON *groups, bool verbose) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  REQUIRE(out);
  fa_causes_print(out, groups, verbose);
  fclose(out);
  return text;
}
