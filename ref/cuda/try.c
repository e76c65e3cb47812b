#include "ref/cuda/try.h"

#include "ref/compare/internal.h"
#include "ref/cuda/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One output, from its items' records. */
typedef struct output {
  fa_tensor_id id;
  const fa_want *want; /* its shape and type alone */
  const fa_tensor *got;
  const fa_judge_check *check;
  int64_t first, items, per_row; /* first: of the records of all outputs */
} output;

/* ---- on the machine ---- */

/* Without whole it takes no memory, and cannot fail. */
static fa_status set_tolerance(const fa_judge_run *run, fa_tensor_id id, bool whole, fa_judge_output *o,
                               fa_error *err) {
  const fa_ref_call *c = run->c;
  fa_vacuous_tolerance t;
  if (!fa_vacuous_tolerance_of(c->p, c->in, id, &c->out->t[id], c->profile, whole, &t))
    return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory while comparing", fa_tensor_id_name(id));
  o->by_scale = t.scale;
  o->floor = t.floor;
  return FA_OK;
}

static bool is_of_buffer(fa_tensor_id id) {
  return id >= FA_T_DBUFFER_0 && id < FA_T_DBUFFER_0 + FA_MAX_CAPTURES;
}

typedef struct sides {
  const fa_judge_want *want;
  const fa_judge_tensor *got;
} sides;

static sides sides_of(const fa_judge_run *run, fa_tensor_id id) {
  const fa_judge_job *x = &run->x;
  if (is_of_buffer(id))
    return (sides){&run->want_dbuffer[id - FA_T_DBUFFER_0], &run->got_dbuffer[id - FA_T_DBUFFER_0]};
  switch (id) {
  case FA_T_O:
    return (sides){&x->want_o, &x->o};
  case FA_T_LSE:
    return (sides){&x->want_lse, &x->lse};
  case FA_T_DQ:
    return (sides){&x->want_dq, &x->got_dq};
  case FA_T_DK:
    return (sides){&x->want_dk, &x->got_dk};
  case FA_T_DV:
    return (sides){&x->want_dv, &x->got_dv};
  case FA_T_DSINKS:
    return (sides){&x->want_dsinks, &x->got_dsinks};
  default:
    return (sides){&x->want_dbias, &x->got_dbias};
  }
}

/* Heads are the axis before the last, but of a bias the second; dSinks are a single row, and what a buffer's axes mean nobody knows. */
static void set_neighbours(fa_tensor_id id, const fa_want *w, fa_judge_output *o) {
  if (w->rank == 1 || is_of_buffer(id)) return;
  const bool lse = id == FA_T_LSE, bias = id == FA_T_DBIAS, batch = lse ? w->rank == 3 : w->rank == 4;
  o->n_heads = bias ? w->shape[1] : w->shape[w->rank - 2];
  o->head_step = bias ? w->shape[2] : 1;
  o->n_batch = batch ? w->shape[0] : 0;
  o->batch_step = lse ? o->n_heads : w->shape[1] * w->shape[2];
}

static fa_judge_zone zone_of(double doubt) {
  return (fa_judge_zone){(1 + FA_DEFAULT_SLACK) * (1 - doubt), (1 + FA_DEFAULT_SLACK) * (1 + doubt)};
}

static fa_judge_output output_of(const fa_judge_run *run, fa_tensor_id id, const fa_want *w, double doubt) {
  const sides s = sides_of(run, id);
  const fa_judge_zone zone = zone_of(doubt);
  fa_row_check row;
  fa_compare_row(w, 0, &row);
  fa_judge_output out = {.want = *s.want,
                         .got = *s.got,
                         .width = w->shape[w->rank - 1],
                         .piece = fa_judge_piece(id, w),
                         .is_lse = id == FA_T_LSE,
                         .ulp = row.ulp,
                         .narrow = zone.narrow,
                         .wide = zone.wide};
  set_neighbours(id, w, &out);
  set_tolerance(run, id, false, &out, NULL);
  return out;
}

/* ---- what its records come to ---- */

/* Of a piece of LSEs: all pieces of its row. */
static double tightness(const output *o) {
  enum { SAMPLE = 1024 }; /* rows, as fa_tightness takes them */
  const int64_t rows = o->items / o->per_row, n = rows < SAMPLE ? rows : SAMPLE;
  double ratio[SAMPLE];
  int used = 0;
  for (int64_t k = 0; k < n; ++k) {
    double widest = 0, scale = 0;
    for (int64_t i = 0; i < o->per_row; ++i) {
      const fa_judge_check *c = &o->check[k * rows / n * o->per_row + i];
      widest = fmax(widest, c->widest);
      scale = fmax(scale, c->scale);
    }
    if (scale > 0) ratio[used++] = widest / scale;
  }
  return fa_median(ratio, used);
}

static fa_point point_of(const output *o, const fa_judge_check *c) {
  fa_point p = {.got = c->got,
                .want = c->want,
                .err = fabs(c->got - c->want),
                .bound = c->bound,
                .ratio = c->ratio,
                .quant = c->quant,
                .accum = c->accum,
                .half_ulp = c->bound - c->quant - c->accum};
  fa_tensor_unravel(o->got, c->worst, p.index);
  fa_compare_load_row(o->id, o->got, o->got->data + fa_tensor_offset(o->got, p.index), 1, &p.got_bits,
                      &p.got);
  return p;
}

/* The ten worst, of every item at most one. */
static void keep_worst(const output *o, const fa_judge_check *c, fa_verdict *v) {
  int at = v->n_worst;
  if (!(c->ratio > 0) || (at == FA_WORST_POINTS && !(c->ratio > v->worst[at - 1].ratio))) return;
  if (at == FA_WORST_POINTS)
    --at;
  else
    ++v->n_worst;
  for (; at > 0 && c->ratio > v->worst[at - 1].ratio; --at) v->worst[at] = v->worst[at - 1];
  v->worst[at] = point_of(o, c);
}

/* Whether a trivially wrong answer may be let pass by everything, and not be right. */
static bool trivial_passes(const output *o) {
  uint32_t passes = FA_JUDGE_ALL | FA_JUDGE_ALL << FA_JUDGE_SAME;
  if (o->id == FA_T_LSE) passes &= ~(uint32_t)FA_JUDGE_ZEROS;
  for (int64_t i = 0; i < o->items; ++i) passes &= o->check[i].passes;
  return (passes & ~(passes >> FA_JUDGE_SAME) & FA_JUDGE_ALL) != 0;
}

static bool mean_passes(const fa_judge_found *found) {
  return !(found->flags & FA_JUDGE_MEAN_FAILS) && found->flags & FA_JUDGE_MEAN_DIFFERS;
}

/* Records that none of this call's kernels wrote: then nothing that the machine says is to be relied on. */
static fa_status check_records(const output *o, uint64_t nonce, fa_error *err) {
  for (int64_t i = 0; i < o->items; ++i)
    if (o->check[i].nonce != nonce)
      return fa_fail(err, FA_ERR_DEVICE, "record %lld of %s is not of this call", (long long)i,
                     fa_tensor_id_name(o->id));
  return FA_OK;
}

static uint64_t mixed_in(const uint64_t *word, size_t n, uint64_t before) {
  for (size_t k = 0; k < n; ++k) before = (before ^ word[k]) * 0x100000001b3u; /* FNV's prime */
  return before;
}

/* Of two runs of a machine on one call: the same, bit for bit. */
static uint64_t digest_of(const output *o, uint64_t before) {
  uint64_t word[sizeof(fa_judge_check) / sizeof(uint64_t)] = {0};
  for (int64_t i = 0; i < o->items; ++i) {
    memcpy(word, &o->check[i], sizeof word);
    before = mixed_in(word + 1, sizeof word / sizeof *word - 1, before); /* all but the nonce */
  }
  return before;
}

/* Of what the kernels found besides: the largest P and O are judged by it. */
static uint64_t digest_found(const fa_judge_found *found, uint64_t before) {
  const double numbers[] = {found->amax_p, found->least_amax_p, found->most_amax_p, found->amax_o,
                            found->some_o};
  uint64_t word[sizeof numbers / sizeof *numbers];
  memcpy(word, numbers, sizeof word);
  return mixed_in(word, sizeof word / sizeof *word, before);
}

static void add_item(const output *o, const fa_judge_check *c, fa_stats *stats, fa_verdict *v) {
  const fa_stats_row row = {c->n, c->n_diffuse, c->sum, c->sum_squares, c->diffuse_squares, c->print};
  v->count += c->count;
  if (!is_of_buffer(o->id)) fa_stats_add_row(stats, &row); /* an element's terms are dependent */
  keep_worst(o, c, v);
}

static void doubt(fa_judge_trial *t, const char *why) {
  t->passed = false;
  if (!t->doubt) t->doubt = why;
}

static const char *doubt_of(const output *o, const fa_verdict *v, const fa_judge_found *found,
                            const fa_compare_options *options) {
  if (v->bad > 0) return "not surely right: an element";
  if ((v->stat_bad && options->judge_stats) || v->finer) return "not surely right: statistics";
  if (trivial_passes(o) || (o->id == FA_T_O && mean_passes(found)))
    return "not surely right: a trivial answer";
  return NULL;
}

static void conclude(const output *o, const fa_problem *p, const fa_judge_found *found,
                     const fa_compare_options *options, fa_judge_trial *t) {
  fa_verdict *v = &t->verdict[t->n];
  fa_stats stats = {0};
  int64_t wrong = 0;
  *v = (fa_verdict){.id = o->id, .rank = o->got->rank, .dtype = o->got->dtype, .judged = true};
  for (int64_t i = 0; i < o->items; ++i) {
    add_item(o, &o->check[i], &stats, v);
    v->bad += o->check[i].odd;
    wrong += o->check[i].wrong;
  }
  if (v->n_worst > 0) v->worst_ratio = v->worst[0].ratio;
  v->tightness = tightness(o);
  fa_stats_judge(&stats, p, options, v);
  t->wrong[t->n++] = wrong > 0;
  const char *why = doubt_of(o, v, found, options);
  if (why) doubt(t, why);
}

/* ---- a call ---- */

typedef struct attempt {
  fa_judge_machine *m;
  const fa_problem *p;
  const fa_tensors *in, *got;
  const fa_ref_options *opt;
  const fa_compare_options *options;
  fa_judge_trial *trial;
} attempt;

/* The outputs that are compared, and the records of all, one after another. */
typedef struct compared {
  int n;
  int64_t items;
  output o[FA_JUDGE_OUTPUTS];
} compared;

static void add_output(const fa_judge_run *run, const fa_tensors *got, fa_tensor_id id, compared *all) {
  const fa_want *w = &run->c->out->t[id];
  const int64_t items = fa_judge_items(id, w);
  if (items == 0 || !got->t[id].data) return; /* nothing is wanted, or nothing there */
  all->o[all->n++] = (output){.id = id,
                              .want = w,
                              .got = &got->t[id],
                              .first = all->items,
                              .items = items,
                              .per_row = items / (w->n / w->shape[w->rank - 1])};
  all->items += items;
}

static compared outputs_of(const fa_judge_run *run, const fa_tensors *got) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS, FA_T_DSINKS};
  compared all = {0};
  for (int i = run->backward ? 2 : 0; i < (run->backward ? 7 : 2); ++i) add_output(run, got, ids[i], &all);
  for (int k = 0; k < FA_MAX_CAPTURES && run->backward; ++k)
    add_output(run, got, (fa_tensor_id)(FA_T_DBUFFER_0 + k), &all);
  return all;
}

static fa_status launch_compare(fa_judge_run *run, const output *o, bool whole, double doubt, fa_error *err) {
  run->x.output = output_of(run, o->id, o->want, doubt);
  run->x.output.check = run->check + o->first;
  const fa_status status = whole ? set_tolerance(run, o->id, true, &run->x.output, err) : FA_OK;
  if (status != FA_OK) return status;
  return (o->first > 0 ? fa_judge_launch_beside : fa_judge_launch)(run, FA_JUDGE_KERNEL_compare, o->items,
                                                                   err);
}

/* Gradients' tolerances depend on how steep a softcap is, which is found while they are computed. */
static fa_status find_steepest(fa_judge_run *run, fa_error *err) {
  fa_wants *out = run->c->out;
  fa_judge_found found = {.steepest = 1};
  fa_status status = FA_OK;
  if (run->backward && fa_bound_has_chain(run->c->p)) status = fa_judge_run_found(run, &found, err);
  out->t[FA_T_DQ].steepest = out->t[FA_T_DK].steepest = found.steepest;
  return status;
}

static fa_status launch_all(fa_judge_run *run, const compared *all, double doubt, fa_error *err) {
  if (!run->backward) run->x.output = output_of(run, FA_T_O, &run->c->out->t[FA_T_O], doubt);
  fa_status status = run->backward ? fa_judge_compute_backward(run, err) : fa_judge_compute_forward(run, err);
  if (status == FA_OK) status = find_steepest(run, err);
  for (int i = 0; status == FA_OK && i < all->n; ++i)
    status = launch_compare(run, &all->o[i], false, doubt, err);
  return status;
}

/* Mostly a trivial answer fails, or is right, and nobody has to look at all inputs to tell. */
static fa_status look_closer(fa_judge_run *run, const output *o, double doubt, fa_error *err) {
  if (!trivial_passes(o)) return FA_OK;
  const fa_status status = launch_compare(run, o, true, doubt, err);
  if (status != FA_OK) return status;
  return run->m->download(run->m->self, (void *)o->check, run->check + o->first,
                          (size_t)o->items * sizeof *o->check, err);
}

/* No row that was tried with a mean is outside of a bound: looks at all of them. The values are there if they are those of the
 * only turn; else it stays a doubt. */
static fa_status try_means(fa_judge_run *run, fa_judge_found *found, double doubt, fa_error *err) {
  fa_status status = FA_OK;
  if (run->backward || found->flags & FA_JUDGE_MEAN_FAILS) return FA_OK;
  found->flags |= FA_JUDGE_MEAN_DIFFERS;
  if (run->lists.n_turns != 1) return FA_OK;
  run->x.output = output_of(run, FA_T_O, &run->c->out->t[FA_T_O], doubt);
  status = set_tolerance(run, FA_T_O, true, &run->x.output, err);
  if (status == FA_OK)
    status = run->m->clear(run->m->self, &run->x.found->flags, sizeof run->x.found->flags, err);
  for (int64_t n = 0; status == FA_OK && n < run->lists.n_waves; ++n) {
    fa_judge_run_wave(run, n);
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_try_means, run->lists.wave[n].rows, err);
  }
  return status == FA_OK ? fa_judge_run_found(run, found, err) : status;
}

static void conclude_debug(const fa_judge_found *found, const fa_tensor *got, fa_judge_trial *t) {
  t->verdict[t->n] = (fa_verdict){.id = FA_T_P_DEBUG,
                                  .rank = got->rank,
                                  .dtype = got->dtype,
                                  .judged = true,
                                  .count = found->debug_count,
                                  .bad = found->debug_odd};
  t->wrong[t->n++] = found->debug_wrong > 0;
  if (found->debug_odd > 0) doubt(t, "not surely right: dropout's matrix");
}

static void take_debug(const fa_tensor *debug, fa_judge_job *x) {
  x->debug_ulp = fa_want_ulp(debug->dtype);
  x->debug_rows = debug->shape[2];
  x->debug_keys = debug->shape[3];
}

/* ---- passes ---- */

/* A forward or a backward. */
typedef struct pass {
  fa_ref_call c;
  fa_wants out;
  fa_judge_run run;
  compared all;
  const fa_judge_found *found;
} pass;

static bool compares_nothing(const pass *p) {
  const fa_wants *out = &p->out;
  return out->t[FA_T_O].n + out->t[FA_T_DQ].n + out->t[FA_T_DK].n + out->t[FA_T_DSINKS].n == 0;
}

static fa_status open_pass(const attempt *a, bool backward, pass *p, fa_error *err) {
  fa_ref_options shapes = *a->opt;
  shapes.shapes_alone = true; /* what is wanted stays on the machine */
  p->run = (fa_judge_run){.m = a->m, .c = &p->c, .backward = backward, .compares = true};
  fa_judge_run_take(&p->run, a->in, a->got);
  take_debug(&a->got->t[FA_T_P_DEBUG], &p->run.x);
  p->run.x.debug_without_zeros = a->options->recorded;
  getrandom(&p->run.x.nonce, sizeof p->run.x.nonce, 0);
  const fa_status status = fa_judge_call_init(&p->c, a->p, a->in, &shapes, backward, &p->out, err);
  if (status == FA_OK) p->all = outputs_of(&p->run, a->got);
  return status;
}

static void close_pass(pass *p) {
  fa_judge_run_close(&p->run);
  fa_judge_call_free(&p->c);
  fa_wants_free(&p->out);
}

/* What was found and all records of all passes at once: whoever waits for a machine waits once. */
static fa_status fetch(pass *const *passes, int n, fa_error *err) {
  const fa_judge_machine *m = passes[0]->run.m;
  const char *first = passes[0]->run.records.first;
  for (int i = 0; i < n; ++i) {
    pass *p = passes[i];
    const char *check = p->run.fetched + ((const char *)p->run.check - p->run.records.first);
    p->found = (const fa_judge_found *)p->run.fetched;
    for (int k = 0; k < p->all.n; ++k) p->all.o[k].check = (const fa_judge_check *)check + p->all.o[k].first;
  }
  return m->download(m->self, passes[0]->run.fetched, first, (size_t)(passes[n - 1]->run.records.end - first),
                     err);
}

static fa_status run_passes(const attempt *a, pass *const *passes, int n, fa_error *err) {
  fa_judge_run *runs[FA_JUDGE_RUNS];
  for (int i = 0; i < n; ++i) runs[i] = &passes[i]->run;
  fa_status status = fa_judge_run_open(runs, n, err);
  for (int i = 0; status == FA_OK && i < n; ++i)
    status = launch_all(runs[i], &passes[i]->all, a->options->doubt, err);
  return status == FA_OK ? fetch(passes, n, err) : status;
}

/* Behind all other records. */
static fa_status try_amax(const attempt *a, pass *p, const fa_judge_found *found, fa_error *err) {
  const char *why = NULL;
  if (!a->p->quantized.amax || p->run.backward) return FA_OK;
  const fa_judge_zone zone = zone_of(a->options->doubt);
  const fa_status status =
      fa_judge_compare_amax(&p->c, found, a->got, a->options, &zone, a->trial, &why, err);
  if (why) doubt(a->trial, why);
  return status;
}

/* From its records, which are there; a closer look may need the machine again. */
static fa_status conclude_pass(const attempt *a, pass *p, fa_error *err) {
  const double doubt = a->options->doubt;
  fa_judge_run *run = &p->run;
  fa_judge_found found = *p->found;
  fa_status status = fa_judge_found_says(&found, err);
  if (status == FA_OK) status = try_means(run, &found, doubt, err);
  for (int i = 0; status == FA_OK && i < p->all.n; ++i) {
    const output *o = &p->all.o[i];
    status = look_closer(run, o, doubt, err);
    if (status == FA_OK) status = check_records(o, run->x.nonce, err);
    if (status == FA_OK) conclude(o, a->p, &found, a->options, a->trial);
    if (status == FA_OK && a->trial->is_signed) a->trial->digest = digest_of(o, a->trial->digest);
  }
  if (status == FA_OK && a->trial->is_signed) a->trial->digest = digest_found(&found, a->trial->digest);
  if (status == FA_OK && run->x.debug.data) conclude_debug(&found, &a->got->t[FA_T_P_DEBUG], a->trial);
  return status == FA_OK ? try_amax(a, p, &found, err) : status;
}

/* Copies: the reference's own comparison. */
static fa_status compare_caches(fa_ref_call *c, const fa_tensors *got, const fa_compare_options *options,
                                fa_judge_trial *t, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_K, FA_T_V};
  fa_status status = fa_ref_cache_after(c, err);
  for (int i = 0; i < 2 && status == FA_OK; ++i) {
    const fa_want *w = &c->out->t[ids[i]];
    fa_verdict *v = &t->verdict[t->n];
    const bool is_there = w->n > 0 && got->t[ids[i]].data;
    status = is_there ? fa_compare_tensor(ids[i], c->p, c->in, w, &got->t[ids[i]], options, v, err) : FA_OK;
    if (status != FA_OK || !is_there) continue;
    v->rank = got->t[ids[i]].rank;
    v->dtype = got->t[ids[i]].dtype;
    ++t->n;
    if (v->fail || v->finer) doubt(t, "not surely right: a cache");
  }
  return status;
}

static fa_status try_pass(const attempt *a, bool backward, fa_error *err) {
  const fa_judge_found nothing_found = {0};
  pass *p = calloc(1, sizeof *p);
  if (!p) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = open_pass(a, backward, p, err);
  const bool nothing = status == FA_OK && compares_nothing(p);
  if (status == FA_OK && !nothing) status = run_passes(a, &p, 1, err);
  if (status == FA_OK && !nothing) status = conclude_pass(a, p, err);
  if (status == FA_OK && nothing) status = try_amax(a, p, &nothing_found, err);
  if (status == FA_OK && a->p->kvcache.present)
    status = compare_caches(&p->c, a->got, a->options, a->trial, err);
  close_pass(p);
  free(p);
  return status;
}

/* Gradients only after a forward that can be relied on: else the CPU has another way to judge them. */
static fa_status try_one_by_one(const attempt *a, fa_error *err) {
  const fa_status status = try_pass(a, false, err);
  return status == FA_OK && a->trial->passed ? try_pass(a, true, err) : status;
}

/* Both at once: what was found of gradients counts, or not, when all is there. */
static fa_status try_together(const attempt *a, fa_error *err) {
  pass *both = calloc(FA_JUDGE_RUNS, sizeof *both);
  pass *const passes[] = {both, both + 1};
  if (!both) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = open_pass(a, false, passes[0], err);
  if (status == FA_OK) status = open_pass(a, true, passes[1], err);
  const bool apart = status == FA_OK && (compares_nothing(passes[0]) || compares_nothing(passes[1]));
  if (status == FA_OK && !apart) status = run_passes(a, passes, FA_JUDGE_RUNS, err);
  if (status == FA_OK && !apart) status = conclude_pass(a, passes[0], err);
  if (status == FA_OK && !apart && a->trial->passed) status = conclude_pass(a, passes[1], err);
  close_pass(passes[0]);
  close_pass(passes[1]);
  free(both);
  return apart ? try_one_by_one(a, err) : status;
}

/* What waits for one answer takes more memory, and a large call waits for its kernels anyway. What sums over rows or evaluates
 * expressions has its passes apart, and so has what may come by turns. */
static bool is_small(const fa_judge_machine *m, const fa_problem *p, const fa_tensors *in) {
  const int64_t most = (int64_t)1 << 24; /* pairs, and elements of a tensor */
  if (p->kvcache.present || p->score_mod || p->sinks.grad || m->turns_from > 0) return false;
  return fa_tensor_count(&in->t[FA_T_Q]) <= most && fa_tensor_count(&in->t[FA_T_K]) <= most &&
         fa_tensor_count(&in->t[FA_T_V]) <= most &&
         p->batch * p->heads_q * p->seqlen_q <= most / (p->seqlen_k + 1);
}

fa_status fa_judge_try(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                       const fa_ref_options *opt, const fa_compare_options *options, bool backward,
                       fa_judge_trial *trial, fa_error *err) {
  const attempt a = {m, p, in, got, opt, options, trial};
  return try_pass(&a, backward, err);
}

fa_status fa_judge_try_both(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                            const fa_tensors *got, const fa_ref_options *opt,
                            const fa_compare_options *options, fa_judge_trial *trial, fa_error *err) {
  const attempt a = {m, p, in, got, opt, options, trial};
  return is_small(m, p, in) ? try_together(&a, err) : try_one_by_one(&a, err);
}
