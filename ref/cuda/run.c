#include "ref/cuda/run.h"

#include <string.h>

/* ---- the call and its tensors ---- */

/* Of `with` what is uploaded already is not uploaded again. */
static char *input_with(const fa_judge_run *with, const fa_judge_staged *of_it, const fa_tensor *t, int i) {
  return with && with->input[i].data == t->data ? of_it->input[i] : NULL;
}

static void lay_out_staged(const fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *of_it,
                           fa_judge_arena *a, fa_judge_staged *s) {
  const fa_ref_call *c = run->c;
  s->c = fa_judge_take(a, 1, sizeof *s->c);
  s->p = fa_judge_take(a, 1, sizeof *s->p);
  s->profile = fa_judge_take(a, 1, sizeof *s->profile);
  s->entry = fa_judge_take(a, c->p->batch + 1, sizeof *s->entry);
  s->head = fa_judge_take(a, run->lists.n_heads + 1, sizeof *s->head);
  s->block = fa_judge_take(a, run->lists.n_blocks + 1, sizeof *s->block);
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i) {
    const fa_tensor *t = &run->input[i];
    s->input[i] = t->data ? input_with(with, of_it, t, i) : NULL;
    if (t->data && !s->input[i]) s->input[i] = fa_judge_take(a, fa_tensor_count(t), fa_dtype_size(t->dtype));
  }
}

void fa_judge_run_take(fa_judge_run *run, const fa_tensors *in, const fa_tensors *got) {
  static const struct {
    int to;
    fa_tensor_id id;
    bool backward, output;
  } table[] = {
      {FA_JUDGE_IN_Q, FA_T_Q, false, false},
      {FA_JUDGE_IN_K, FA_T_K, false, false},
      {FA_JUDGE_IN_V, FA_T_V, false, false},
      {FA_JUDGE_IN_BIAS, FA_T_BIAS, false, false},
      {FA_JUDGE_IN_BITS, FA_T_MASK_BITS, false, false},
      {FA_JUDGE_IN_DO, FA_T_DO, true, false},
      {FA_JUDGE_IN_DLSE, FA_T_DLSE, true, false},
      {FA_JUDGE_IN_O, FA_T_O, false, true},
      {FA_JUDGE_IN_LSE, FA_T_LSE, false, true},
      {FA_JUDGE_IN_DQ, FA_T_DQ, true, true},
      {FA_JUDGE_IN_DK, FA_T_DK, true, true},
      {FA_JUDGE_IN_DV, FA_T_DV, true, true},
      {FA_JUDGE_IN_DBIAS, FA_T_DBIAS, true, true},
      {FA_JUDGE_IN_DEBUG, FA_T_P_DEBUG, false, true},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (table[i].backward && !run->backward) continue;
    if (table[i].output && !got) continue;
    if (table[i].id == FA_T_P_DEBUG && run->backward) continue;
    run->input[table[i].to] = (table[i].output ? got : in)->t[table[i].id];
  }
}

static void copy_dense(const fa_tensor *t, char *to) {
  fa_tensor dense = *t;
  int64_t stride = 1;
  for (int a = t->rank - 1; a >= 0; --a) {
    dense.stride[a] = stride;
    stride *= t->shape[a];
  }
  dense.data = to;
  fa_tensor_copy(&dense, t);
}

/* here: the host's copy of what will be `there`. */
static void fill_staged(const fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *here,
                        const fa_judge_staged *there) {
  const fa_ref_call *c = run->c;
  *here->c = *c;
  here->c->p = there->p;
  here->c->profile = there->profile;
  here->c->entry = there->entry;
  *here->p = *c->p;
  *here->profile = *c->profile;
  memcpy(here->entry, c->entry, (size_t)c->p->batch * sizeof *here->entry);
  memcpy(here->head, run->lists.head, (size_t)run->lists.n_heads * sizeof *here->head);
  memcpy(here->block, run->lists.block, (size_t)run->lists.n_blocks * sizeof *here->block);
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i)
    if (here->input[i] && !input_with(with, there, &run->input[i], i))
      copy_dense(&run->input[i], here->input[i]);
}

static fa_judge_tensor tensor_of(const fa_judge_run *run, const fa_judge_staged *there, int i) {
  const fa_tensor *t = &run->input[i];
  return (fa_judge_tensor){there->input[i], t->dtype, t->data ? fa_tensor_count(t) : 0};
}

static void use_staged(fa_judge_run *run, const fa_judge_staged *there) {
  fa_judge_job *x = &run->x;
  fa_judge_tensor *to[FA_JUDGE_INPUTS] = {&x->q,      &x->k,         &x->v,      &x->d_o,     &x->o,
                                          &x->lse,    &x->dlse,      &x->got_dq, &x->got_dk,  &x->got_dv,
                                          &x->bias,   &x->got_dbias, &x->bits,   &x->rotated, &x->flip_q,
                                          &x->flip_k, &x->times,     &x->hidden, &x->visits,  &x->debug};
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i) *to[i] = tensor_of(run, there, i);
  x->c = there->c;
  run->heads = there->head;
  run->blocks = there->block;
}

/* ---- memory ---- */

enum { LSE_PIECE = 64 }; /* as ref/compare/verdict.c has it */

int64_t fa_judge_piece(fa_tensor_id id, const fa_want *w) {
  return id == FA_T_LSE ? LSE_PIECE : w->shape[w->rank - 1];
}

int64_t fa_judge_items(fa_tensor_id id, const fa_want *w) {
  if (w->n == 0) return 0;
  const int64_t width = w->shape[w->rank - 1], piece = fa_judge_piece(id, w);
  return w->n / width * ((width + piece - 1) / piece);
}

/* What comes back: what the kernels find, and directly behind it the records. */
static void lay_out_records(fa_judge_run *run, fa_judge_arena *a) {
  int64_t items = 0;
  for (int id = 0; run->compares && id < FA_T_COUNT; ++id)
    items += fa_judge_items((fa_tensor_id)id, &run->c->out->t[id]);
  run->x.found = fa_judge_take(a, 1, sizeof *run->x.found);
  run->check = fa_judge_take(a, items, sizeof *run->check);
  run->records = fa_judge_part_from(a, run->x.found);
}

static void lay_out_wants(fa_judge_run *run, fa_judge_arena *a) {
  const fa_wants *out = run->c->out;
  fa_judge_job *x = &run->x;
  char *first = fa_judge_take(a, 0, 1);
  x->want_o = fa_judge_lay_out_want(a, &out->t[FA_T_O]);
  x->want_lse = fa_judge_lay_out_want(a, &out->t[FA_T_LSE]);
  x->want_dq = fa_judge_lay_out_want(a, &out->t[FA_T_DQ]);
  x->want_dk = fa_judge_lay_out_want(a, &out->t[FA_T_DK]);
  x->want_dv = fa_judge_lay_out_want(a, &out->t[FA_T_DV]);
  x->want_dbias = fa_judge_lay_out_want(a, &out->t[FA_T_DBIAS]);
  run->wants = fa_judge_part_from(a, first);
}

/* Lists are as large however the call is divided, but for their ends. */
static fa_status divide(fa_judge_run *run, size_t most_bytes, fa_error *err) {
  fa_judge_arena a = {0};
  fa_judge_staged s;
  int64_t blocks = 0;
  for (int64_t b = 0; b < run->c->p->batch; ++b)
    blocks += run->c->heads_q * ((run->c->entry[b].sq + FA_BLOCK_M - 1) / FA_BLOCK_M);
  lay_out_staged(run, NULL, NULL, &a, &s);
  lay_out_records(run, &a);
  lay_out_wants(run, &a);
  a.used += (size_t)blocks * sizeof *run->blocks +
            (size_t)(run->c->p->batch * run->c->heads_kv) * sizeof *run->heads + (1 << 14);
  if (a.used >= most_bytes)
    return fa_fail(err, FA_ERR_MEMORY, "judge: no room for %zu bytes of tensors", a.used);
  const fa_judge_room room = fa_judge_room_of(run->c, run->backward, most_bytes - a.used);
  return fa_judge_lists_make(run->c, &room, &run->lists, err);
}

static fa_status prepare(fa_judge_run *run, size_t most_bytes, fa_error *err) {
  fa_status status = fa_judge_run_gather(run, err);
  if (status == FA_OK) status = divide(run, most_bytes, err);
  return status == FA_OK ? fa_judge_run_hide(run, err) : status;
}

/* All that is uploaded, then all that comes back, so that each is one copy; then the rest. */
static size_t lay_out_all(fa_judge_run *const *runs, int n, char *base, fa_judge_staged *there,
                          size_t *uploaded, size_t *records) {
  fa_judge_arena a = {.base = base};
  for (int i = 0; i < n; ++i) lay_out_staged(runs[i], i ? runs[0] : NULL, &there[0], &a, &there[i]);
  *uploaded = a.used;
  for (int i = 0; i < n; ++i) lay_out_records(runs[i], &a);
  *records = a.used - *uploaded;
  for (int i = 0; i < n; ++i) {
    lay_out_wants(runs[i], &a);
    fa_judge_lay_out(runs[i]->c, runs[i]->backward, &runs[i]->lists, &a, &runs[i]->x, &runs[i]->sums);
  }
  return a.used;
}

static void stage_all(fa_judge_run *const *runs, int n, char *stage, const fa_judge_staged *there) {
  fa_judge_arena a = {.base = stage};
  fa_judge_staged here[FA_JUDGE_RUNS];
  for (int i = 0; i < n; ++i) {
    const fa_judge_run *with = i ? runs[0] : NULL;
    lay_out_staged(runs[i], with, &here[0], &a, &here[i]);
    fill_staged(runs[i], with, &here[i], &there[i]);
    use_staged(runs[i], &there[i]);
  }
}

static fa_status clear(fa_judge_run *run, fa_judge_part part, bool beside, fa_error *err) {
  enum { PIECE = 2 * sizeof(double) }; /* of an item; parts are multiples of 256 bytes */
  const size_t bytes = (size_t)(part.end - part.first);
  run->x.whole_to = (double *)part.first;
  return (beside ? fa_judge_launch_beside : fa_judge_launch)(run, FA_JUDGE_KERNEL_clear,
                                                             (int64_t)(bytes / PIECE), err);
}

fa_status fa_judge_run_open(fa_judge_run *const *runs, int n, fa_error *err) {
  const fa_judge_machine *m = runs[0]->m;
  fa_judge_staged there[FA_JUDGE_RUNS];
  fa_status status = FA_OK;
  size_t uploaded, records;
  char *base, *stage;
  for (int i = 0; status == FA_OK && i < n; ++i) {
    runs[i]->x.strand = i;
    status = prepare(runs[i], m->most_bytes / (size_t)n, err);
  }
  if (status == FA_OK)
    status = m->reserve(m->self, lay_out_all(runs, n, NULL, there, &uploaded, &records), &base, err);
  if (status == FA_OK) status = m->stage(m->self, uploaded + records, &stage, err);
  if (status != FA_OK) return status;
  lay_out_all(runs, n, base, there, &uploaded, &records);
  for (int i = 0; i < n; ++i)
    runs[i]->fetched = stage + uploaded + (runs[i]->records.first - runs[0]->records.first);
  stage_all(runs, n, stage, there);
  status = m->upload(m->self, base, stage, uploaded, err);
  for (int i = 0; status == FA_OK && i < n; ++i) {
    status = clear(runs[i], runs[i]->records, false, err);
    if (status == FA_OK) status = clear(runs[i], runs[i]->wants, true, err);
    if (status == FA_OK) status = clear(runs[i], runs[i]->sums, true, err);
  }
  return status;
}

void fa_judge_run_close(fa_judge_run *run) {
  fa_judge_lists_free(&run->lists);
  fa_judge_run_free_gathered(run);
  fa_judge_run_free_hidden(run);
}

/* ---- launches ---- */

static fa_status launch(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, bool beside, fa_error *err) {
  run->x.n = n;
  run->x.beside = beside;
  return n > 0 ? run->m->launch(run->m->self, kernel, &run->x, err) : FA_OK;
}

fa_status fa_judge_launch(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, fa_error *err) {
  return launch(run, kernel, n, false, err);
}

fa_status fa_judge_launch_beside(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, fa_error *err) {
  return launch(run, kernel, n, true, err);
}

static fa_status multiply(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                          const fa_judge_factors *f, bool beside, fa_error *err) {
  static const fa_judge_kernel kernels[3][2] = {
      {FA_JUDGE_KERNEL_row_by_key_f64, FA_JUDGE_KERNEL_row_by_key_f32},
      {FA_JUDGE_KERNEL_row_f64, FA_JUDGE_KERNEL_row_f32},
      {FA_JUDGE_KERNEL_key_f64, FA_JUDGE_KERNEL_key_f32}};
  const int64_t columns = (f->width + FA_STRIP - 1) / FA_STRIP;
  const int64_t items = f->form == FA_JUDGE_ROW_BY_KEY ? wave->tiles
                        : f->form == FA_JUDGE_ROW      ? wave->strips * columns
                                                       : turn->key_strips * columns;
  run->x.product = (fa_judge_product){f->a, f->b, f->c, f->width, f->alpha};
  return launch(run, kernels[f->form][f->f32], items, beside, err);
}

fa_status fa_judge_multiply(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                            const fa_judge_factors *list, int n, fa_error *err) {
  fa_status status = FA_OK;
  for (int kernel = 0; kernel < 6; ++kernel) { /* one after another, so that those of one can be one launch */
    bool beside = false;
    for (int i = 0; status == FA_OK && i < n; ++i) {
      if (2 * (int)list[i].form + list[i].f32 != kernel) continue;
      status = multiply(run, turn, wave, &list[i], beside, err);
      beside = true;
    }
  }
  return status;
}

static fa_status measure(fa_judge_run *run, fa_judge_tensor t, double *to, bool beside, fa_error *err) {
  run->x.whole = t;
  run->x.whole_to = to;
  return launch(run, FA_JUDGE_KERNEL_measure, (t.n + FA_PIECE - 1) / FA_PIECE, beside, err);
}

static fa_status begin_turn(fa_judge_run *run, const fa_judge_turn *turn, fa_error *err) {
  fa_status status = FA_OK;
  run->x.head = run->heads + turn->first_head;
  run->x.n_heads = turn->n_heads;
  if (turn->first_head > 0)
    status = clear(run, run->sums, false, err); /* the first one's are, with all else */
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_load_key, turn->keys, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_scale_key, turn->keys, err);
  return status;
}

void fa_judge_run_wave(fa_judge_run *run, int64_t n) {
  const fa_judge_wave *wave = &run->lists.wave[n];
  run->x.block = run->blocks + wave->first_block;
  run->x.n_blocks = wave->n_blocks;
  run->x.wave = wave->first_block;
}

static fa_status run_turn(fa_judge_run *run, const fa_judge_turn *turn, fa_judge_step *step,
                          fa_judge_step *end, fa_error *err) {
  fa_status status = begin_turn(run, turn, err);
  for (int64_t n = 0; status == FA_OK && n < turn->n_waves; ++n) {
    fa_judge_run_wave(run, turn->first_wave + n);
    status = step(run, turn, &run->lists.wave[turn->first_wave + n], err);
  }
  return status == FA_OK && end ? end(run, turn, NULL, err) : status;
}

fa_status fa_judge_run_turns(fa_judge_run *run, fa_judge_step *step, fa_judge_step *end, fa_error *err) {
  fa_judge_found *found = run->x.found;
  fa_status status = measure(run, run->x.q, &found->q, false, err);
  if (status == FA_OK && run->backward) status = measure(run, run->x.d_o, &found->d_o, true, err);
  if (status == FA_OK && run->x.dlse.data) status = measure(run, run->x.dlse, &found->dlse, true, err);
  for (int64_t n = 0; status == FA_OK && n < run->lists.n_turns; ++n)
    status = run_turn(run, &run->lists.turn[n], step, end, err);
  return status;
}

/* ---- results ---- */

static fa_status fetch(fa_judge_run *run, void *to, const void *from, int64_t n, size_t size, fa_error *err) {
  if (!to || n == 0) return FA_OK;
  return run->m->download(run->m->self, to, from, (size_t)n * size, err);
}

fa_status fa_judge_run_fetch(fa_judge_run *run, const fa_judge_want *from, fa_want *to, fa_error *err) {
  const int64_t n = to->n, rows = n > 0 ? n / to->shape[to->rank - 1] : 0;
  fa_status status = fetch(run, to->value, from->value, n, sizeof *to->value, err);
  if (status == FA_OK) status = fetch(run, to->rest, from->rest, n, sizeof *to->rest, err);
  if (status == FA_OK) status = fetch(run, to->sum_error, from->sum_error, n, sizeof *to->sum_error, err);
  if (status == FA_OK) status = fetch(run, to->quant, from->quant, n, sizeof *to->quant, err);
  if (status == FA_OK) status = fetch(run, to->accum, from->accum, n, sizeof *to->accum, err);
  if (status == FA_OK) status = fetch(run, to->noise, from->noise, n, sizeof *to->noise, err);
  if (status == FA_OK) status = fetch(run, to->scale, from->scale, rows, sizeof *to->scale, err);
  return status;
}

fa_status fa_judge_run_found(fa_judge_run *run, fa_judge_found *found, fa_error *err) {
  const fa_status status = run->m->download(run->m->self, found, run->x.found, sizeof *found, err);
  return status == FA_OK ? fa_judge_found_says(found, err) : status;
}

fa_status fa_judge_found_says(const fa_judge_found *found, fa_error *err) {
  if (found->flags & FA_JUDGE_COARSE_LSE) return fa_fail(err, FA_ERR_UNSUPPORTED, "an LSE of 2^24 or more");
  if (found->flags & FA_JUDGE_OVERFLOW)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "what may overflow on the way");
  if (found->flags & FA_JUDGE_UNKNOWN_P) return fa_fail(err, FA_ERR_UNSUPPORTED, "a P that may be anything");
  return FA_OK;
}
