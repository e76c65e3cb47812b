#include "ref/cuda/run.h"

#include <stdlib.h>
#include <string.h>

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

/* What does not depend on how the call is divided: what is uploaded, what the kernels find, outputs. */
static void lay_out_fixed(fa_judge_run *run, fa_judge_arena *a, fa_judge_staged *s, char **cleared) {
  const fa_wants *out = run->c->out;
  fa_judge_job *x = &run->x;
  fa_judge_staged_lay_out(run, a, s);
  int64_t items = 0;
  for (int id = 0; run->compares && id < FA_T_COUNT; ++id)
    items += fa_judge_items((fa_tensor_id)id, &out->t[id]);
  *cleared = fa_judge_take(a, 0, 1);
  x->found = fa_judge_take(a, 1, sizeof *x->found);
  run->check = fa_judge_take(a, items, sizeof *run->check); /* directly behind: they are fetched together */
  x->want_o = fa_judge_lay_out_want(a, &out->t[FA_T_O]);
  x->want_lse = fa_judge_lay_out_want(a, &out->t[FA_T_LSE]);
  x->want_dq = fa_judge_lay_out_want(a, &out->t[FA_T_DQ]);
  x->want_dk = fa_judge_lay_out_want(a, &out->t[FA_T_DK]);
  x->want_dv = fa_judge_lay_out_want(a, &out->t[FA_T_DV]);
  x->want_dbias = fa_judge_lay_out_want(a, &out->t[FA_T_DBIAS]);
  x->want_dsinks = fa_judge_lay_out_want(a, &out->t[FA_T_DSINKS]);
  x->dsinks = fa_judge_take(a, out->t[FA_T_DSINKS].n, sizeof *x->dsinks);
  fa_judge_lay_out_dbuffers(run, a);
}

/* Lists are as large however the call is divided, but for their ends. */
static size_t fixed_bytes(fa_judge_run *run) {
  fa_judge_arena a = {0};
  fa_judge_staged s;
  char *cleared;
  int64_t blocks = 0;
  for (int64_t b = 0; b < run->c->p->batch; ++b)
    blocks += run->c->heads_q * ((run->c->entry[b].sq + FA_BLOCK_M - 1) / FA_BLOCK_M);
  lay_out_fixed(run, &a, &s, &cleared);
  fa_judge_lay_out_mod(run, &a);
  return a.used + (size_t)blocks * sizeof *run->blocks +
         (size_t)(run->c->p->batch * run->c->heads_q) * sizeof *run->heads + (1 << 14);
}

/* Inputs that leave too little room are uploaded with their turn. */
static fa_status divide(fa_judge_run *run, fa_error *err) {
  const size_t most = run->m->most_bytes, from = run->m->turns_from ? run->m->turns_from : most / 2;
  size_t fixed = fixed_bytes(run);
  run->by_turn = fixed > from && fa_judge_staged_may_turn(run);
  if (run->by_turn) fixed = fixed_bytes(run);
  if (fixed + fa_judge_staged_end_bytes(run) >= most)
    return fa_fail(err, FA_ERR_MEMORY, "judge: no room for %zu bytes of tensors", fixed);
  const fa_judge_room room = fa_judge_room_of(run->c, run->backward, run->by_turn, most - fixed);
  return fa_judge_lists_make(run->c, &room, &run->lists, err);
}

/* All that the call has on the machine, from a->base on; NULL: only measures. *uploaded: up to where it is staged at the same
 * offset; *fixed: up to where it does not depend on how the call is divided. */
static void lay_out_all(fa_judge_run *run, fa_judge_arena *a, fa_judge_staged *there, char **cleared,
                        size_t *fixed) {
  lay_out_fixed(run, a, there, cleared);
  *fixed = a->used;
  fa_judge_lay_out_mod(run, a);
  fa_judge_arena end = *a; /* in place of all turns */
  if (run->by_turn) fa_judge_staged_lay_out_turn(run, a);
  fa_judge_lay_out(run->c, run->backward, &run->lists, a, &run->x, &run->sums, &run->sums_bytes);
  fa_judge_staged_lay_out_end(run, &end);
  if (end.used > a->used) a->used = end.used;
}

static fa_status upload_staged(fa_judge_run *run, char *base, const fa_judge_staged *there, size_t uploaded,
                               fa_error *err) {
  const fa_judge_machine *m = run->m;
  fa_judge_staged here;
  char *stage;
  const fa_status status = m->stage(m->self, uploaded + fa_judge_staged_turns_bytes(run), &stage, err);
  if (status) return status;
  fa_judge_arena a = {.base = stage};
  fa_judge_staged_lay_out(run, &a, &here);
  fa_judge_staged_fill(run, &here, there, stage + uploaded);
  fa_judge_staged_use(run, there);
  return m->upload(m->self, base, stage, uploaded, err);
}

fa_status fa_judge_run_open(fa_judge_run *run, fa_error *err) {
  const fa_judge_machine *m = run->m;
  fa_judge_arena a = {0};
  fa_judge_staged there;
  char *cleared, *base;
  size_t fixed;
  fa_status status = fa_judge_run_gather(run, err);
  if (status == FA_OK) status = fa_judge_run_program(run, err);
  if (status == FA_OK) status = divide(run, err);
  if (status == FA_OK) status = fa_judge_run_hide(run, err);
  if (status) return status;
  lay_out_all(run, &a, &there, &cleared, &fixed);
  if ((status = m->reserve(m->self, a.used, &base, err))) return status;
  a = (fa_judge_arena){.base = base};
  lay_out_all(run, &a, &there, &cleared, &fixed);
  const size_t uploaded = (size_t)(cleared - base);
  if ((status = upload_staged(run, base, &there, uploaded, err))) return status;
  return m->clear(m->self, cleared, fixed - uploaded, err);
}

void fa_judge_run_close(fa_judge_run *run) {
  fa_judge_lists_free(&run->lists);
  fa_judge_run_free_gathered(run);
  fa_judge_run_free_hidden(run);
  free(run->program);
}

/* ---- launches ---- */

fa_status fa_judge_launch(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, fa_error *err) {
  run->x.n = n;
  return n > 0 ? run->m->launch(run->m->self, kernel, &run->x, err) : FA_OK;
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

fa_status fa_judge_multiply(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                            const fa_judge_factors *list, int n, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < n; ++i) {
    const fa_judge_factors *f = &list[i];
    fa_judge_kernel kernel;
    fa_judge_product *p = &run->x.product;
    *p = (fa_judge_product){.a = f->a, .b = f->b, .c = f->c, .width = f->width, .alpha = f->alpha};
    const int64_t items = items_of(run, turn, wave, f, p, &kernel);
    status = fa_judge_launch(run, kernel, items, err);
    if (status == FA_OK && p->parts > 1)
      status = fa_judge_launch(run, f->f32 ? FA_JUDGE_KERNEL_join_f32 : FA_JUDGE_KERNEL_join_f64,
                               wave->rows * f->width, err);
  }
  return status;
}

static fa_status measure(fa_judge_run *run, fa_judge_tensor t, double *to, fa_error *err) {
  run->x.whole = t;
  run->x.whole_to = to;
  return fa_judge_launch(run, FA_JUDGE_KERNEL_measure, (t.n + FA_PIECE - 1) / FA_PIECE, err);
}

static fa_status begin_turn(fa_judge_run *run, const fa_judge_turn *turn, fa_error *err) {
  fa_status status = FA_OK;
  run->x.head = run->heads + turn->first_head;
  run->x.n_heads = turn->n_heads;
  if (run->by_turn) status = fa_judge_staged_upload(run, turn, false, err);
  if (status == FA_OK && run->sums_bytes > 0)
    status = run->m->clear(run->m->self, run->sums, run->sums_bytes, err);
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
    if (status == FA_OK) status = measure(run, run->x.q, &found->q, err);
    if (status == FA_OK && run->backward) status = measure(run, run->x.d_o, &found->d_o, err);
  }
  return status == FA_OK && run->x.dlse.data ? measure(run, run->x.dlse, &found->dlse, err) : status;
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
