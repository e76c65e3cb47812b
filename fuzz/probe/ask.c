#include "fuzz/probe/ask.h"

#include "cases/data/build.h"
#include "cases/tensors/table.h"
#include "report/text/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

bool ask_begin(probe_ask *a, probe *x, unsigned passes, int64_t heads, int64_t sq, int64_t sk) {
  memset(a, 0, sizeof *a);
  a->x = x;
  a->passes = passes;
  if (fa_case_init(&a->c) != FA_OK) return false;
  fa_problem *p = &a->c.problem;
  p->dtype = x->dtype;
  p->heads_q = p->heads_kv = heads;
  a->rows = sq;
  a->keys = sk;
  p->scale = PROBE_SCALE;
  p->backward = passes & FA_PASS_BACKWARD;
  a->c.repeat = 1;
  fa_case_set_fill(&a->c, FA_FILL_ZERO);
  return true;
}

static void note_why(probe_ask *a, const char *why) {
  if (!a->why[0]) snprintf(a->why, sizeof a->why, "%s", why);
}

static bool is_supported(probe_ask *a) {
  fa_error err = {""};
  char why[sizeof a->why] = "";
  if (fa_case_validate(&a->c, &err) != FA_OK) {
    note_why(a, err.text);
    return false;
  }
  const unsigned able = a->x->backend->supports(a->x->self, &a->c.problem, why, sizeof why);
  if ((able & a->passes) == a->passes) return true;
  note_why(a, why[0] ? why : "not supported");
  return false;
}

/* A family and a head dim, at least so wide, of this way. */
static bool choose_family(probe_ask *a, const probe_way *w, int64_t least_dim) {
  static const int64_t dims[] = {64, 128, 256};
  fa_problem *p = &a->c.problem;
  for (int f = 0; probe_way_family(w, f) != FA_N_FAMILIES; ++f)
    for (int d = 0; d < 3; ++d) {
      if (dims[d] < least_dim) continue;
      p->family = probe_way_family(w, f);
      p->empty_lse = fa_family_default_empty_lse(p->family);
      p->head_dim = p->head_dim_v = dims[d];
      if (is_supported(a)) return true;
    }
  return false;
}

static bool choose_align(probe_ask *a, const probe_way *w, int64_t least_dim) {
  fa_problem *p = &a->c.problem;
  const bool any = a->any_align && p->mask.type != FA_MASK_NONE;
  for (int align = 0; align < (any ? 2 : 1); ++align) {
    if (any) p->mask.align = align ? FA_ALIGN_TOP_LEFT : FA_ALIGN_BOTTOM_RIGHT;
    if (choose_family(a, w, least_dim)) return true;
  }
  return false;
}

/* Once the subject's way is known, all questions are put in it: they are about one kernel, as far as that can be had. */
static bool choose_shape(probe_ask *a, int64_t least_dim) {
  const char *why = "";
  for (int i = 0; (a->way = probe_way_at(i)) != NULL; ++i) {
    if (a->x->way && a->way != a->x->way) continue;
    if (!probe_way_apply(a->way, a->rows, a->keys, a->no_keys, &a->c.problem, &why))
      note_why(a, why);
    else if (choose_align(a, a->way, least_dim))
      return true;
  }
  return false;
}

/* The fill "zero" is +0 everywhere but where a fill cannot reach: slopes and lengths are the problem's own. */
bool ask_build(probe_ask *a, int64_t least_dim) {
  fa_error err = {""};
  if (!choose_shape(a, least_dim)) return false;
  if (fa_case_build(&a->c, &a->in, &err) == FA_OK) return true;
  snprintf(a->why, sizeof a->why, "%s", err.text);
  return false;
}

bool ask_run(probe_ask *a) {
  probe *x = a->x;
  fa_error err = {""};
  fa_outcome outcome;
  const fa_run_options options = {.passes = a->passes, .n_threads = 1};
  memset(&outcome, 0, sizeof outcome);
  fa_tensors_free(&a->out);
  fa_status status = fa_tensors_clone_poisoned(&a->out, &a->in, FA_POISON_A, &err);
  x->active = fa_seconds_now();
  if (status == FA_OK) status = x->backend->run(x->self, &a->c.problem, &a->out, &options, &outcome, &err);
  x->active = fa_seconds_now();
  ++x->r->n_calls;
  if (status == FA_OK && outcome.state == FA_SUBJECT_OK) return true;
  snprintf(a->why, sizeof a->why, "%.250s", status != FA_OK ? err.text : outcome.text);
  return false;
}

void ask_end(probe_ask *a) {
  fa_tensors_free(&a->in);
  fa_tensors_free(&a->out);
  fa_case_free(&a->c);
}

/* ---- elements ---- */

/* Every index begins with the batch; tensors of rank 3 do not have it. */
void ask_set(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t d, double value) {
  const fa_tensor *t = &a->in.t[id];
  const bool on_keys = fa_tensor_describe(id)->on_keys;
  int64_t index[4] = {0, 0, h, d};
  for (int64_t b = 0; t->data && b < (on_keys ? a->c.problem.batch : 1); ++b) {
    if (!on_keys)
      probe_way_row(a->way, s, index);
    else if (!probe_way_key(a->way, &a->c.problem, &a->in.t[FA_T_BLOCK_TABLE], b, s, index))
      continue;
    fa_tensor_set(t, index + (4 - t->rank), value);
  }
}

void ask_set_range(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t first, int64_t n,
                   double value) {
  for (int64_t d = first; d < first + n; ++d) ask_set(a, id, s, h, d, value);
}

void ask_set_bits(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t first, int64_t units) {
  for (int64_t d = first; units; ++d, units >>= 1)
    if (units & 1) ask_set(a, id, s, h, d, ldexp(1.0, (int)(d - first)));
}

double ask_get(const probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t d) {
  const fa_tensor *t = &a->out.t[id];
  int64_t index[4] = {0, s, h, d};
  if (!fa_tensor_describe(id)->on_keys) probe_way_row(a->way, s, index);
  return t->data ? fa_tensor_get(t, index + (4 - t->rank)) : NAN;
}

double ask_lse(const probe_ask *a, int64_t h, int64_t i) {
  const fa_tensor *t = &a->out.t[FA_T_LSE];
  int64_t at[2];
  probe_way_row(a->way, i, at);
  const int64_t index[3] = {at[0], h, at[1]};
  return t->data ? fa_tensor_get(t, index + (3 - t->rank)) : NAN;
}

bool probe_reads_lse(const probe *x) {
  const fa_dtype type = x->declared.contract.lse_dtype;
  return x->lse_factor > 0 && type != FA_F16 && type != FA_BF16;
}

double ask_natural_lse(const probe_ask *a, int64_t h, int64_t i) {
  return probe_reads_lse(a->x) ? ask_lse(a, h, i) / a->x->lse_factor : NAN;
}

bool ask_is_unwritten(const probe_ask *a, fa_tensor_id id) {
  const fa_tensor *t = &a->out.t[id];
  int64_t index[FA_MAX_RANK];
  if (!t->data) return true;
  for (int64_t i = 0; i < fa_tensor_count(t); ++i) {
    fa_tensor_unravel(t, i, index);
    if (!fa_tensor_is_poison(t, index, FA_POISON_A)) return false;
  }
  return true;
}

bool probe_hides_small(const probe *x, fa_product product) {
  const fa_format f = x->r->found.arithmetic.operand[product];
  return f == FA_FORMAT_INT8 || f == FA_FORMAT_E4M3 || f == FA_FORMAT_E5M2;
}

/* ---- findings ---- */

/* Room for one more, which is not counted yet: this process may be ended at any time, and what is counted is whole. */
static fa_finding *begin_finding(probe *x, const char *field, fa_probe_confidence confidence,
                                 const char *value) {
  static fa_finding spare; /* more than there is room for: a fault of this program that must not end it */
  fa_finding *f = x->r->n < FA_PROBE_MAX_FINDINGS ? &x->r->v[x->r->n] : &spare;
  memset(f, 0, sizeof *f);
  snprintf(f->field, sizeof f->field, "%s", field);
  snprintf(f->value, sizeof f->value, "%s", value);
  f->confidence = confidence;
  return f;
}

static fa_finding *end_finding(probe *x, fa_finding *f) {
  atomic_signal_fence(memory_order_seq_cst);
  x->r->n += x->r->n < FA_PROBE_MAX_FINDINGS;
  return f;
}

fa_finding *probe_say(probe *x, const char *field, fa_probe_confidence confidence, const char *value,
                      const char *evidence, ...) {
  fa_finding *f = begin_finding(x, field, confidence, value);
  va_list args;
  va_start(args, evidence);
  vsnprintf(f->evidence, sizeof f->evidence, evidence, args);
  va_end(args);
  return end_finding(x, f);
}

fa_finding *probe_say_convention(probe *x, const char *field, fa_probe_confidence confidence,
                                 const char *value, const char *expected, const char *evidence, ...) {
  fa_finding *f = begin_finding(x, field, confidence, value);
  va_list args;
  va_start(args, evidence);
  vsnprintf(f->evidence, sizeof f->evidence, evidence, args);
  va_end(args);
  f->convention = true;
  snprintf(f->expected, sizeof f->expected, "%s", expected);
  f->contradicts = confidence >= FA_PROBE_LIKELY && strcmp(value, expected) != 0;
  return end_finding(x, f);
}

void probe_say_not_asked(probe *x, const char *field, const char *why) {
  probe_say(x, field, FA_PROBE_NOT_ASKED, "", "%s", why);
}
