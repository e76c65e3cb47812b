#include "ref/cuda/run.h"

#include <stdlib.h>

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

/* What begins as zeros once: outputs, and sums over all of a call's rows. */
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
  x->want_dsinks = fa_judge_lay_out_want(a, &out->t[FA_T_DSINKS]);
  x->dsinks = fa_judge_take(a, out->t[FA_T_DSINKS].n, sizeof *x->dsinks);
  fa_judge_lay_out_dbuffers(run, a);
  run->wants = fa_judge_part_from(a, first);
}

/* Lists are as large however the call is divided, but for their ends. */
static size_t fixed_bytes(fa_judge_run *run) {
  fa_judge_arena a = {0};
  fa_judge_staged s;
  int64_t blocks = 0;
  for (int64_t b = 0; b < run->c->p->batch; ++b)
    blocks += run->c->heads_q * ((run->c->entry[b].sq + FA_BLOCK_M - 1) / FA_BLOCK_M);
  fa_judge_staged_lay_out(run, NULL, NULL, &a, &s);
  lay_out_records(run, &a);
  lay_out_wants(run, &a);
  fa_judge_lay_out_mod(run, &a);
  return a.used + (size_t)blocks * sizeof *run->blocks +
         (size_t)(run->c->p->batch * run->c->heads_q) * sizeof *run->heads + (1 << 14);
}

/* Inputs that leave too little room are uploaded with their turn, of a run that is alone. */
static fa_status divide(fa_judge_run *run, bool alone, size_t most, fa_error *err) {
  const size_t from = run->m->turns_from ? run->m->turns_from : most / 2;
  size_t fixed = fixed_bytes(run);
  run->by_turn = alone && fixed > from && fa_judge_staged_may_turn(run);
  if (run->by_turn) fixed = fixed_bytes(run);
  if (fixed + fa_judge_staged_end_bytes(run) >= most)
    return fa_fail(err, FA_ERR_MEMORY, "judge: no room for %zu bytes of tensors", fixed);
  const fa_judge_room room = fa_judge_room_of(run->c, run->backward, run->by_turn, most - fixed);
  return fa_judge_lists_make(run->c, &room, &run->lists, err);
}

static fa_status prepare(fa_judge_run *run, bool alone, size_t most_bytes, fa_error *err) {
  fa_status status = fa_judge_run_gather(run, err);
  if (status == FA_OK) status = fa_judge_run_descale(run, err);
  if (status == FA_OK) status = fa_judge_run_program(run, err);
  if (status == FA_OK) status = divide(run, alone, most_bytes, err);
  return status == FA_OK ? fa_judge_run_hide(run, err) : status;
}

/* All that is uploaded, then all that comes back, so that each is one copy; then the rest. */
static size_t lay_out_all(fa_judge_run *const *runs, int n, char *base, fa_judge_staged *there,
                          size_t *uploaded, size_t *records) {
  fa_judge_arena a = {.base = base};
  for (int i = 0; i < n; ++i) fa_judge_staged_lay_out(runs[i], i ? runs[0] : NULL, &there[0], &a, &there[i]);
  *uploaded = a.used;
  for (int i = 0; i < n; ++i) lay_out_records(runs[i], &a);
  *records = a.used - *uploaded;
  for (int i = 0; i < n; ++i) {
    fa_judge_run *run = runs[i];
    lay_out_wants(run, &a);
    fa_judge_lay_out_mod(run, &a);
    fa_judge_arena end = a; /* in place of all turns */
    if (run->by_turn) fa_judge_staged_lay_out_turn(run, &a);
    fa_judge_lay_out(run->c, run->backward, &run->lists, &a, &run->x, &run->sums);
    fa_judge_staged_lay_out_end(run, &end);
    if (end.used > a.used) a.used = end.used;
  }
  return a.used;
}

/* turns: room for what is uploaded later, of a run that is alone. */
static void stage_all(fa_judge_run *const *runs, int n, char *stage, char *turns,
                      const fa_judge_staged *there) {
  fa_judge_arena a = {.base = stage};
  fa_judge_staged here[FA_JUDGE_RUNS];
  for (int i = 0; i < n; ++i) {
    const fa_judge_run *with = i ? runs[0] : NULL;
    fa_judge_staged_lay_out(runs[i], with, &here[0], &a, &here[i]);
    fa_judge_staged_fill(runs[i], with, &here[i], &there[i], turns);
    fa_judge_staged_use(runs[i], &there[i]);
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
    status = prepare(runs[i], n == 1, m->most_bytes / (size_t)n, err);
  }
  if (status == FA_OK)
    status = m->reserve(m->self, lay_out_all(runs, n, NULL, there, &uploaded, &records), &base, err);
  if (status == FA_OK)
    status = m->stage(m->self, uploaded + records + fa_judge_staged_turns_bytes(runs[0]), &stage, err);
  if (status != FA_OK) return status;
  lay_out_all(runs, n, base, there, &uploaded, &records);
  for (int i = 0; i < n; ++i)
    runs[i]->fetched = stage + uploaded + (runs[i]->records.first - runs[0]->records.first);
  stage_all(runs, n, stage, stage + uploaded + records, there);
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
  fa_judge_run_free_descales(run);
  fa_judge_run_free_hidden(run);
  free(run->program);
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

/* Of a wave with fewer pairs, large tiles are too few for a device's processors. */
static bool has_wide_tiles(const fa_judge_run *run, const fa_judge_wave *wave) {
  const int64_t from = (int64_t)1 << 23;
  return wave->pairs >= (run->m->wide_from > 0 ? run->m->wide_from : from);
}

/* Items of a product; *kernel: that does it. Sums of fewer than a tile's columns are taken in small ones. */
static int64_t items_of(const fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                        const fa_judge_factors *f, fa_judge_product *p, fa_judge_kernel *kernel) {
  static const fa_judge_kernel kernels[2][3][2] = {
      {{FA_JUDGE_KERNEL_row_by_key_f64, FA_JUDGE_KERNEL_row_by_key_f32},
       {FA_JUDGE_KERNEL_row_f64, FA_JUDGE_KERNEL_row_f32},
       {FA_JUDGE_KERNEL_key_f64, FA_JUDGE_KERNEL_key_f32}},
      {{FA_JUDGE_KERNEL_wide_row_by_key_f64, FA_JUDGE_KERNEL_wide_row_by_key_f32},
       {FA_JUDGE_KERNEL_wide_row_f64, FA_JUDGE_KERNEL_wide_row_f32},
       {FA_JUDGE_KERNEL_wide_key_f64, FA_JUDGE_KERNEL_wide_key_f32}}};
  const bool panel = f->form == FA_JUDGE_ROW_BY_KEY,
             wide = has_wide_tiles(run, wave) && (panel || f->width > FA_STRIP);
  const int64_t n = !wide ? FA_STRIP : f->f32 ? FA_WIDE_N_32 : FA_WIDE_N_64, each = FA_BLOCK_M / FA_WIDE_M;
  *kernel = kernels[wide][f->form][f->f32];
  p->columns = ((panel ? wave->width : f->width) + n - 1) / n;
  p->strips = (turn->most_sk + FA_WIDE_M - 1) / FA_WIDE_M;
  if (panel) return wide ? wave->n_blocks * each * p->columns : wave->tiles;
  if (f->form == FA_JUDGE_KEY) return (wide ? wave->n_heads * p->strips : turn->key_strips) * p->columns;
  p->rows = wave->rows;
  p->parts = wave->parts > 0 ? wave->parts / wave->rows : 1;
  return (wide ? wave->n_blocks * each : wave->strips) * p->columns * p->parts;
}

/* Sums in parts have one place for all products: they are joined before the next one's begin. */
static fa_status multiply(fa_judge_run *run, const fa_judge_wave *wave, const fa_judge_product *p,
                          const fa_judge_factors *f, fa_judge_kernel kernel, int64_t items, bool beside,
                          fa_error *err) {
  run->x.product = *p;
  if (p->parts <= 1) return launch(run, kernel, items, beside, err);
  const fa_status status = fa_judge_launch(run, kernel, items, err);
  return status == FA_OK ? fa_judge_launch(run, f->f32 ? FA_JUDGE_KERNEL_join_f32 : FA_JUDGE_KERNEL_join_f64,
                                           wave->rows * f->width, err)
                         : status;
}

fa_status fa_judge_multiply(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                            const fa_judge_factors *list, int n, fa_error *err) {
  fa_status status = FA_OK;
  /* one kernel after another, so that all of one can be one launch */
  for (int now = FA_JUDGE_KERNEL_clear; status == FA_OK && now < FA_JUDGE_N_KERNELS; ++now) {
    bool beside = false;
    for (int i = 0; status == FA_OK && i < n; ++i) {
      const fa_judge_factors *f = &list[i];
      fa_judge_kernel kernel;
      fa_judge_product p = {.a = f->a, .b = f->b, .c = f->c, .width = f->width, .alpha = f->alpha};
      const int64_t items = items_of(run, turn, wave, f, &p, &kernel);
      if ((int)kernel != now) continue;
      status = multiply(run, wave, &p, f, kernel, items, beside, err);
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
  if (run->by_turn) status = fa_judge_staged_upload(run, turn, false, err);
  if (status == FA_OK && turn->first_head > 0)
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

/* The largest magnitudes of whole tensors, of those that come by turns before the first turn. */
static fa_status measure_all(fa_judge_run *run, fa_error *err) {
  fa_judge_found *found = run->x.found;
  const int64_t times = run->by_turn ? run->lists.n_turns : 1;
  fa_status status = FA_OK;
  for (int64_t n = 0; status == FA_OK && n < times; ++n) {
    if (run->by_turn) status = fa_judge_staged_upload(run, &run->lists.turn[n], true, err);
    if (status == FA_OK) status = measure(run, run->x.q, &found->q, false, err);
    if (status == FA_OK && run->backward) status = measure(run, run->x.d_o, &found->d_o, true, err);
  }
  return status == FA_OK && run->x.dlse.data ? measure(run, run->x.dlse, &found->dlse, true, err) : status;
}

fa_status fa_judge_run_turns(fa_judge_run *run, fa_judge_step *step, fa_judge_step *end, fa_error *err) {
  fa_status status = measure_all(run, err);
  for (int64_t n = 0; status == FA_OK && n < run->lists.n_turns; ++n)
    status = run_turn(run, &run->lists.turn[n], step, end, err);
  return status == FA_OK ? fa_judge_staged_upload_end(run, err) : status;
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
  if (found->flags & FA_JUDGE_NO_VALUE)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "an expression without a value");
  if (found->flags & FA_JUDGE_UNKNOWN_P) return fa_fail(err, FA_ERR_UNSUPPORTED, "a P that may be anything");
  return FA_OK;
}
