/* The values of the reference against those of the slow one, over random cases with every feature. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "ref/engine/dropout.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/random_attention.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

enum { N_CASES = 800, MIN_PER_FEATURE = 5 };

/* Relative to the size of the terms behind an element (slow_array.mag): 1e-13 is 900 roundoffs of a
 * double. */
static const double tolerance = 1e-13;

typedef struct tally {
  double worst;
  int64_t n;
} tally;
static tally seen[FA_T_COUNT];

/* Number of elements that disagree; *first is one of them. */
static int64_t count_bad(fa_tensor_id id, const fa_want *want, const slow_array *slow, int64_t *first) {
  int64_t bad = 0;
  for (int64_t e = 0; e < want->n; ++e) {
    const long double exact = slow->value[e];
    bool ok = want->value[e] == (double)exact; /* infinities too */
    if (!ok && isnan((double)exact)) ok = isnan(want->value[e]);
    if (!ok) {
      const double err = (double)fabsl((long double)want->value[e] - exact), size = (double)slow->mag[e];
      ok = err <= tolerance * size;
      if (ok && err / size > seen[id].worst) seen[id].worst = err / size;
    }
    if (!ok && bad++ == 0) *first = e;
  }
  return bad;
}

static void compare(uint64_t index, const char *form, fa_tensor_id id, const fa_want *want,
                    const slow_array *slow) {
  CHECK_MSG(want->n == slow->n, "case %llu %s %s: %lld elements, slow has %lld", (unsigned long long)index,
            form, fa_tensor_id_name(id), (long long)want->n, (long long)slow->n);
  if (want->n != slow->n) return;
  seen[id].n += want->n;
  int64_t first = 0, bad = count_bad(id, want, slow, &first);
  CHECK_MSG(bad == 0, "case %llu %s %s: %lld bad, first [%lld] is %.17g, slow %.17Lg, size %.3Lg",
            (unsigned long long)index, form, fa_tensor_id_name(id), (long long)bad, (long long)first,
            want->value[first], slow->value[first], slow->mag[first]);
}

static const fa_tensor_id gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS, FA_T_DSINKS};

static void backward(uint64_t index, const char *form, const fa_case *c, const fa_tensors *in,
                     const fa_tensor *o, const fa_tensor *lse, const fa_wants *forward) {
  const fa_ref_options opt = {.n_threads = 2};
  fa_wants want;
  slow_outputs slow = {0};
  fa_error err = {""};
  const fa_status status = fa_ref_backward(&c->problem, in, o, lse, forward, &opt, &want, &err);
  CHECK_MSG(status == FA_OK, "case %llu %s: %s", (unsigned long long)index, form, err.text);
  if (status != FA_OK) return;
  slow_backward(&c->problem, in, o, lse, &slow);
  for (int k = 0; k < 5; ++k)
    compare(index, form, gradients[k], &want.t[gradients[k]], &slow.t[gradients[k]]);
  slow_outputs_free(&slow);
  fa_wants_free(&want);
}

/* Outputs of an imaginary kernel: the right values, off by up to a percent and rounded. */
static void imagine_outputs(const slow_outputs *slow, fa_tensors *set) {
  const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE};
  for (int k = 0; k < 2; ++k)
    for (int64_t e = 0; e < slow->t[ids[k]].n; ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(&set->t[ids[k]], e, at);
      fa_tensor_set(&set->t[ids[k]], at,
                    (double)slow->t[ids[k]].value[e] *
                        (1 + 0.01 * fa_rng_uniform(3, (uint64_t)k, (uint64_t)e)));
    }
}

/* Keep masks must equal the slow scheme's wherever they are compared. */
static void compare_keep(const fa_case *c, const fa_want *w) {
  const fa_problem *p = &c->problem;
  int64_t bad = 0;
  for (int64_t e = 0; e < w->n; ++e) {
    const int64_t j = e % w->shape[3], i = e / w->shape[3] % w->shape[2], bh = e / w->shape[3] / w->shape[2];
    if (isnan(w->value[e])) continue;
    ++seen[FA_T_P_DEBUG].n;
    bad += w->value[e] != slow_keep(p, bh / p->heads_q, bh % p->heads_q, i, j, p->seqlen_k);
  }
  CHECK(bad == 0);
}

static void test_case(uint64_t index, const fa_case *c) {
  const fa_problem *p = &c->problem;
  const fa_ref_options opt = {.n_threads = 2};
  fa_tensors in;
  fa_wants want;
  slow_outputs slow = {0};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  const fa_status status = fa_ref_forward(p, &in, &opt, &want, &err);
  CHECK_MSG(status == FA_OK, "case %llu: %s", (unsigned long long)index, err.text);
  if (status == FA_OK) {
    slow_forward(p, &in, &slow);
    compare(index, "forward", FA_T_O, &want.t[FA_T_O], &slow.t[FA_T_O]);
    compare(index, "forward", FA_T_LSE, &want.t[FA_T_LSE], &slow.t[FA_T_LSE]);
    compare(index, "forward", FA_T_K, &want.t[FA_T_K], &slow.t[FA_T_K]);
    compare(index, "forward", FA_T_V, &want.t[FA_T_V], &slow.t[FA_T_V]);
    compare_keep(c, &want.t[FA_T_P_DEBUG]);
    if (p->backward) {
      backward(index, "end to end", c, &in, NULL, NULL, &want);
      imagine_outputs(&slow, &in);
      backward(index, "given", c, &in, &in.t[FA_T_O], &in.t[FA_T_LSE], &want);
    }
  }
  slow_outputs_free(&slow);
  fa_wants_free(&want);
  fa_tensors_free(&in);
}

/* Dropout masks, bit for bit, over both schemes. */
static void test_keep(void) {
  for (uint64_t n = 0; n < 40; ++n) {
    fa_problem p;
    fa_problem_init(&p);
    fa_problem_set_family(&p, n % 2 ? FA_MEMEFF : FA_FLASH);
    p.heads_q = p.heads_kv = 3;
    p.batch = 2;
    p.seqlen_q = 37;
    p.seqlen_k = 70;
    p.dropout = (fa_dropout){0.05 + 0.022 * (double)n, fa_rng_u64(1, 1, n), fa_rng_u64(1, 2, n) >> n};
    int64_t bad = 0;
    for (int64_t e = 0; e < 2 * 3 * 37 * 70; ++e) {
      const int64_t j = e % 70, i = e / 70 % 37, h = e / 70 / 37 % 3, b = e / 70 / 37 / 3;
      bad += fa_ref_dropout_keep(&p, b, h, i, j) != slow_keep(&p, b, h, i, j, 70);
    }
    CHECK_MSG(bad == 0, "%lld", (long long)bad);
    fa_problem_free(&p);
  }
}

/* ---- the test itself: one change in the problem given to the reference must show ---- */

typedef bool (*change)(fa_problem *p); /* false: this case has nothing to change */

static bool change_scale(fa_problem *p) {
  return p->scale *= 1 + 1e-11, p->scale != 0;
}
static bool change_softcap(fa_problem *p) {
  return p->softcap *= 1 + 1e-11, p->softcap > 0;
}
static bool change_alignment(fa_problem *p) {
  p->mask.align = p->mask.align == FA_ALIGN_TOP_LEFT ? FA_ALIGN_BOTTOM_RIGHT : FA_ALIGN_TOP_LEFT;
  return p->mask.type != FA_MASK_NONE && p->seqlen_q != p->seqlen_k;
}
static bool change_left(fa_problem *p) {
  return p->mask.left-- > 0;
}
static bool change_right(fa_problem *p) {
  return p->mask.right-- > 0;
}
static bool change_seed(fa_problem *p) {
  return ++p->dropout.seed, p->dropout.p > 0;
}
static bool change_offset(fa_problem *p) {
  return ++p->dropout.offset, p->dropout.p > 0;
}
static bool change_sinks(fa_problem *p) {
  return p->sinks.present ? p->sinks = (fa_sinks){0}, true : false;
}
static bool change_alibi(fa_problem *p) {
  return p->alibi.present ? p->alibi.present = false, true : false;
}
static bool change_group(fa_problem *p) { /* head h reads h / G: other heads when G is halved */
  return p->heads_kv == 2 && p->heads_q == 6 ? p->heads_kv = 1, true : false;
}
static bool change_used(fa_problem *p) {
  return p->seqused_k.n > 0 && p->seqused_k.v[0]-- > 0;
}
static bool change_leftpad(fa_problem *p) {
  return p->leftpad_k.n > 0 && p->leftpad_k.v[0]-- > 0;
}
static bool change_pairs(fa_problem *p) {
  p->kvcache.rotary_interleaved = !p->kvcache.rotary_interleaved;
  return p->kvcache.rotary_dim > 2;
}
static bool change_cache_len(fa_problem *p) {
  return p->kvcache.len.n > 0 && p->kvcache.len.v[0]-- > 0;
}
static bool change_empty(fa_problem *p) {
  p->empty_lse = (fa_empty_lse)((p->empty_lse + 1) % 3);
  return p->mask.type != FA_MASK_NONE && p->seqlen_q > p->seqlen_k;
}

static const struct {
  const char *name;
  change apply;
} changes[] = {{"scale", change_scale},         {"softcap", change_softcap},
               {"alignment", change_alignment}, {"window left", change_left},
               {"window right", change_right},  {"seed", change_seed},
               {"offset", change_offset},       {"alibi", change_alibi},
               {"sinks", change_sinks},         {"group", change_group},
               {"seqused", change_used},        {"leftpad", change_leftpad},
               {"rotary pairs", change_pairs},  {"cache length", change_cache_len},
               {"empty lse", change_empty}};
enum { N_CHANGES = sizeof changes / sizeof *changes };

static int64_t count_all_bad(const fa_problem *p, const fa_tensors *in, const slow_outputs *slow) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_wants want;
  int64_t first, bad = 0;
  if (fa_ref_forward(p, in, &opt, &want, NULL) != FA_OK) return 0;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (slow->t[id].n > 0) bad += count_bad(id, &want.t[id], &slow->t[id], &first);
  fa_wants_free(&want);
  return bad;
}

static void test_changes(void) {
  int64_t tried[N_CHANGES] = {0}, caught[N_CHANGES] = {0};
  for (uint64_t index = 0; index < 300; ++index) {
    fa_case c;
    fa_tensors in;
    slow_outputs slow = {0};
    random_attention(21, index, &c);
    REQUIRE(fa_case_build(&c, &in, NULL) == FA_OK);
    slow_forward(&c.problem, &in, &slow);
    for (int k = 0; k < N_CHANGES; ++k) {
      fa_problem p;
      REQUIRE(fa_problem_copy(&p, &c.problem) == FA_OK);
      if (changes[k].apply(&p)) {
        ++tried[k];
        caught[k] += count_all_bad(&p, &in, &slow) > 0;
      }
      fa_problem_free(&p);
    }
    slow_outputs_free(&slow);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
  /* Not every case can show every change: masked rows, saturated softmax, one visible key. */
  for (int k = 0; k < N_CHANGES; ++k)
    CHECK_MSG(tried[k] >= 3 && caught[k] >= 1 && caught[k] * 4 >= tried[k], "%s: caught %lld of %lld",
              changes[k].name, (long long)caught[k], (long long)tried[k]);
}

int main(void) {
  int64_t hits[RANDOM_MAX_FEATURES] = {0};
  for (uint64_t index = 0; index < N_CASES; ++index) {
    fa_case c;
    random_attention(20, index, &c);
    const uint64_t features = random_features(&c);
    for (int n = 0; random_feature_names[n] != NULL; ++n) hits[n] += features >> n & 1;
    test_case(index, &c);
    fa_case_free(&c);
  }
  for (int n = 0; random_feature_names[n] != NULL; ++n)
    CHECK_MSG(hits[n] >= MIN_PER_FEATURE, "%s: %lld cases", random_feature_names[n], (long long)hits[n]);
  test_keep();
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (seen[id].n > 0)
      printf("%-6s %9lld elements, worst %.2g\n", fa_tensor_id_name(id), (long long)seen[id].n,
             seen[id].worst);
  test_changes();
  return check_done();
}
