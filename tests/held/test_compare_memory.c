/* Comparing, and making a map: when any allocation fails, it says so and has given back all; and nothing is kept. */
#include "ref/compare/map.h"
#include "ref/compare/verdict.h"
#include "ref/reference.h"
#include "tests/held/case_of.h"
#include "tests/held/digest.h"
#include "tests/held/guarded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct subject {
  fa_case c;
  fa_tensors in;
  fa_profile profile;
  fa_wants forward, backward;
} subject;

/* Of one output, as it is, or with a wrong element. */
typedef struct question {
  const subject *s;
  fa_tensor_id id;
  const fa_want *want;
  fa_tensor got;
  bool map;
} question;

/* With bounds that let everything pass, so that all trivial answers are tried. */
static fa_status ask(const question *q, fa_error *err) {
  const fa_compare_options opt = {.profile = &q->s->profile, .generic = true, .slack = 1e30};
  fa_map *m = NULL;
  fa_verdict v;
  if (!q->map) return fa_compare_tensor(q->id, &q->s->c.problem, &q->s->in, q->want, &q->got, &opt, &v, err);
  const fa_status status = fa_map_make(q->id, &q->s->c.problem, q->want, &q->got, FA_POISON_A, &m, err);
  free(m);
  return status;
}

/* Allocation 0, 1, 2 ... fails, until there are no more: how many there were. */
static long fail_each(const question *q) {
  const long before = guarded_live();
  for (long i = 0; i < 10000; ++i) {
    fa_error err = {""};
    guarded_fail_after(i);
    const fa_status status = ask(q, &err);
    const bool unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(guarded_live() == before, "%s, allocation %ld: %ld blocks more", fa_tensor_id_name(q->id), i,
              guarded_live() - before);
    if (unused) return i;
    CHECK_MSG(status == FA_ERR_MEMORY && strstr(err.text, "memory"), "%s, allocation %ld: %d %s",
              fa_tensor_id_name(q->id), i, (int)status, err.text);
  }
  CHECK(!"an end");
  return 0;
}

static long ask_all(const subject *s, const fa_wants *wants) {
  long n = 0;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_want *w = &wants->t[id];
    question q = {.s = s, .id = (fa_tensor_id)id, .want = w, .got = digest_tensor_of(w)};
    if (w->n == 0 || !w->quant) continue;
    n += fail_each(&q);
    q.map = true;
    CHECK(fail_each(&q) > 2);
    double *wrong = malloc((size_t)w->n * sizeof *wrong);
    REQUIRE(wrong);
    for (int64_t e = 0; e < w->n; ++e) wrong[e] = e % 3 ? w->value[e] : NAN;
    q.got.data = (char *)wrong, q.map = false;
    n += fail_each(&q); /* says where */
    free(wrong);
  }
  return n;
}

static void check(const char *text) {
  subject s = {0};
  s.c = case_of(text, &s.in);
  s.profile = fa_profile_get("recorded", s.c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &s.profile, .generic = true};
  fa_error err = {""};
  REQUIRE(fa_ref_forward(&s.c.problem, &s.in, &opt, &s.forward, &err) == FA_OK);
  REQUIRE(fa_ref_backward(&s.c.problem, &s.in, NULL, NULL, &s.forward, &opt, &s.backward, &err) == FA_OK);
  CHECK(ask_all(&s, &s.forward) > 10 && ask_all(&s, &s.backward) > 10);
  fa_wants_free(&s.forward);
  fa_wants_free(&s.backward);
  fa_tensors_free(&s.in);
  fa_case_free(&s.c);
}

int main(void) {
  check("{\"head_dim\":8,\"batch\":2,\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":12,\"mask\":{\"type\":"
        "\"causal\"},\"sinks\":{\"grad\":true}}");
  check("{\"head_dim\":8,\"heads_q\":2,\"heads_kv\":1,\"cu_seqlens_q\":[0,3,9],\"cu_seqlens_k\":[0,5,7]}");
  check("{\"family\":\"flex\",\"head_dim\":8,\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":12,\"score_mod\":"
        "\"score * w[h]\",\"buffers\":{\"w\":{\"shape\":[2],\"grad\":true}}}");
  return check_done();
}
