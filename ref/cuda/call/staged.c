/* A call's tensors on their way to a machine: all at once, each at the same offset here and there, or inputs that leave too
 * little room with the turn that reads them, head after head, and then the gradients that are compared behind all turns. */
#include "cases/threads/parallel.h"
#include "ref/cuda/run.h"

#include <string.h>

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
      {FA_JUDGE_IN_DSINKS, FA_T_DSINKS, true, true},
      {FA_JUDGE_IN_DEBUG, FA_T_P_DEBUG, false, true},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (table[i].backward && !run->backward) continue;
    if (table[i].output && !got) continue;
    if (table[i].id == FA_T_P_DEBUG && run->backward) continue;
    run->input[table[i].to] = (table[i].output ? got : in)->t[table[i].id];
  }
  for (int k = 0; k < FA_MAX_CAPTURES && run->backward && got; ++k)
    run->input[FA_JUDGE_IN_DBUFFER_0 + k] = got->t[FA_T_DBUFFER_0 + k];
}

/* ---- what is uploaded at once ---- */

/* Those that only the rows or the keys of a turn are read of. O is compared as a whole, but in a backward. */
static bool comes_by_turn(const fa_judge_run *run, int i) {
  return run->by_turn && (i == FA_JUDGE_IN_Q || i == FA_JUDGE_IN_K || i == FA_JUDGE_IN_V ||
                          (run->backward && (i == FA_JUDGE_IN_DO || i == FA_JUDGE_IN_O)));
}

/* Gradients are looked at when all are computed: they come where the turns were. */
static bool comes_at_end(const fa_judge_run *run, int i) {
  return run->by_turn && run->input[i].data &&
         (i == FA_JUDGE_IN_DQ || i == FA_JUDGE_IN_DK || i == FA_JUDGE_IN_DV);
}

static size_t bytes_of(const fa_tensor *t) {
  return (size_t)fa_tensor_count(t) * fa_dtype_size(t->dtype);
}

bool fa_judge_staged_may_turn(const fa_judge_run *run) {
  const fa_ref_call *c = run->c;
  const bool apart = run->backward && fa_bound_heads_apart(c);
  return !fa_judge_gathers(c) && !c->rotated.q && !c->topk && !c->p->quantized.present &&
         !fa_judge_hides(c) && !apart;
}

/* Of `with` what is uploaded already is not uploaded again. */
static char *input_with(const fa_judge_run *with, const fa_judge_staged *of_it, const fa_tensor *t, int i) {
  return with && t->data && with->input[i].data == t->data ? of_it->input[i] : NULL;
}

void fa_judge_staged_lay_out(const fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *of_it,
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
    const bool here = t->data && !comes_by_turn(run, i) && !comes_at_end(run, i);
    s->input[i] = here ? input_with(with, of_it, t, i) : NULL;
    if (here && !s->input[i]) s->input[i] = fa_judge_take(a, fa_tensor_count(t), fa_dtype_size(t->dtype));
  }
}

/* ---- copies ---- */

/* Rows of a tensor, one behind the other. */
typedef struct rows {
  const fa_tensor *t;
  char *to;
  int64_t first, n, step; /* rows first, first + step .. of the tensor in row-major order */
} rows;

static void copy_rows(const rows *r) {
  const fa_tensor *t = r->t;
  const int last = t->rank - 1;
  const int64_t width = t->shape[last], size = (int64_t)fa_dtype_size(t->dtype);
  int64_t index[FA_MAX_RANK];
  char *to = r->to;
  for (int64_t k = 0; k < r->n; ++k, to += width * size) {
    fa_tensor_unravel(t, (r->first + k * r->step) * width, index);
    const char *from = t->data + fa_tensor_offset(t, index);
    if (t->stride[last] == 1)
      memcpy(to, from, (size_t)(width * size));
    else
      for (int64_t x = 0; x < width; ++x)
        memcpy(to + x * size, from + x * t->stride[last] * size, (size_t)size);
  }
}

enum { PIECE = 8192 }; /* rows that a thread copies at once */

static void copy_piece(void *context, int thread, int64_t item) {
  const rows *all = context;
  const int64_t at = item * PIECE, left = all->n - at;
  const size_t size = (size_t)all->t->shape[all->t->rank - 1] * fa_dtype_size(all->t->dtype);
  const rows some = {.t = all->t,
                     .to = all->to + (size_t)at * size,
                     .first = all->first + at * all->step,
                     .n = left < PIECE ? left : PIECE,
                     .step = all->step};
  (void)thread;
  copy_rows(&some);
}

/* Returns where the next one goes. */
static char *copy(const fa_judge_run *run, const rows *r) {
  const int64_t width = r->t->rank > 0 ? r->t->shape[r->t->rank - 1] : 1;
  if (r->t->rank == 0) memcpy(r->to, r->t->data, fa_dtype_size(r->t->dtype));
  if (r->t->rank > 0 && r->n > 0)
    fa_parallel(run->c->n_threads, (r->n + PIECE - 1) / PIECE, copy_piece, (void *)r);
  return r->to + (size_t)(r->n * width) * fa_dtype_size(r->t->dtype);
}

static void copy_whole(const fa_judge_run *run, const fa_tensor *t, char *to) {
  const int64_t n = fa_tensor_count(t), width = t->rank > 0 ? t->shape[t->rank - 1] : 1;
  const rows all = {.t = t, .to = to, .n = n > 0 ? n / width : 0, .step = 1};
  copy(run, &all);
}

/* ---- by turns ---- */

static bool is_of_keys(int i) {
  return i == FA_JUDGE_IN_K || i == FA_JUDGE_IN_V;
}

static int64_t row_bytes(const fa_judge_run *run, int i) {
  const fa_tensor *t = &run->input[i];
  return t->shape[t->rank - 1] * (int64_t)fa_dtype_size(t->dtype);
}

/* Rows of a tensor that a turn reads. */
static int64_t rows_of_turn(const fa_judge_turn *turn, int i) {
  return is_of_keys(i) ? turn->keys : turn->queries;
}

static char *copy_head(const fa_judge_run *run, const fa_judge_head *head, int64_t hk, int i, char *to) {
  const fa_ref_call *c = run->c;
  const fa_ref_sequence *e = &c->entry[head->b];
  const fa_tensor *t = &run->input[i];
  if (is_of_keys(i)) {
    const rows keys = {t, to, fa_ref_k_index(c, e, hk, 0, 1), e->sk, c->heads_kv};
    return copy(run, &keys);
  }
  for (int64_t m = 0; m < c->group; ++m) {
    const rows queries = {t, to, fa_ref_q_index(c, e, fa_ref_group_member(c, hk, m), 0, 1), e->sq,
                          c->heads_q};
    to = copy(run, &queries);
  }
  return to;
}

size_t fa_judge_staged_end_bytes(const fa_judge_run *run) {
  size_t bytes = 0;
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i)
    if (comes_at_end(run, i)) bytes += bytes_of(&run->input[i]);
  return bytes;
}

size_t fa_judge_staged_turns_bytes(const fa_judge_run *run) {
  size_t bytes = fa_judge_staged_end_bytes(run);
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i)
    for (int64_t n = 0; comes_by_turn(run, i) && n < run->lists.n_turns; ++n)
      bytes += (size_t)(rows_of_turn(&run->lists.turn[n], i) * row_bytes(run, i));
  return bytes;
}

static void fill_turns(fa_judge_run *run, char *to) {
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i) {
    run->turns[i] = comes_by_turn(run, i) || comes_at_end(run, i) ? to : NULL;
    if (comes_at_end(run, i)) {
      copy_whole(run, &run->input[i], to);
      to += bytes_of(&run->input[i]);
    }
    for (int64_t n = 0; comes_by_turn(run, i) && n < run->lists.n_heads; ++n)
      to = copy_head(run, &run->lists.head[n], n % run->c->heads_kv, i, to);
  }
}

void fa_judge_staged_lay_out_turn(fa_judge_run *run, fa_judge_arena *a) {
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i) {
    const fa_judge_turn *most = &run->lists.most_of_turn;
    if (comes_by_turn(run, i))
      run->loaded[i] = fa_judge_take(a, rows_of_turn(most, i), (size_t)row_bytes(run, i));
  }
}

void fa_judge_staged_lay_out_end(fa_judge_run *run, fa_judge_arena *a) {
  for (int i = 0; i < FA_JUDGE_INPUTS; ++i)
    if (comes_at_end(run, i)) run->loaded[i] = fa_judge_take(a, 1, bytes_of(&run->input[i]));
}

fa_status fa_judge_staged_upload_end(fa_judge_run *run, fa_error *err) {
  fa_judge_job *x = &run->x;
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < FA_JUDGE_INPUTS; ++i) {
    if (!comes_at_end(run, i)) continue;
    fa_judge_tensor *to = i == FA_JUDGE_IN_DQ ? &x->got_dq : i == FA_JUDGE_IN_DK ? &x->got_dk : &x->got_dv;
    *to = (fa_judge_tensor){run->loaded[i], run->input[i].dtype, fa_tensor_count(&run->input[i])};
    status = run->m->upload(run->m->self, run->loaded[i], run->turns[i], bytes_of(&run->input[i]), err);
  }
  return status;
}

static fa_judge_tensor *tensor_of_turn(fa_judge_job *x, int i) {
  switch (i) {
  case FA_JUDGE_IN_Q:
    return &x->q;
  case FA_JUDGE_IN_K:
    return &x->k;
  case FA_JUDGE_IN_V:
    return &x->v;
  case FA_JUDGE_IN_DO:
    return &x->d_o;
  default:
    return &x->o;
  }
}

/* measured: those alone whose magnitudes are. */
fa_status fa_judge_staged_upload(fa_judge_run *run, const fa_judge_turn *turn, bool measured, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < FA_JUDGE_INPUTS; ++i) {
    if (!comes_by_turn(run, i) || (measured && i != FA_JUDGE_IN_Q && i != FA_JUDGE_IN_DO)) continue;
    const int64_t bytes = row_bytes(run, i), n = rows_of_turn(turn, i);
    const int64_t before = is_of_keys(i) ? turn->keys_before : turn->queries_before;
    *tensor_of_turn(&run->x, i) = (fa_judge_tensor){
        run->loaded[i], run->input[i].dtype, n * (bytes / (int64_t)fa_dtype_size(run->input[i].dtype))};
    if (n > 0)
      status = run->m->upload(run->m->self, run->loaded[i], run->turns[i] + before * bytes,
                              (size_t)(n * bytes), err);
  }
  return status;
}

/* ---- all of it ---- */

/* here: the host's copy of what will be `there`. */
void fa_judge_staged_fill(fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *here,
                          const fa_judge_staged *there, char *turns) {
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
      copy_whole(run, &run->input[i], here->input[i]);
  fa_judge_place_program(here->input[FA_JUDGE_IN_PROGRAM], there->input[FA_JUDGE_IN_PROGRAM]);
  if (run->by_turn) fill_turns(run, turns);
}

static fa_judge_tensor tensor_of(const fa_judge_run *run, const fa_judge_staged *there, int i) {
  const fa_tensor *t = &run->input[i];
  return (fa_judge_tensor){there->input[i], t->dtype, there->input[i] ? fa_tensor_count(t) : 0};
}

void fa_judge_staged_use(fa_judge_run *run, const fa_judge_staged *there) {
  fa_judge_job *x = &run->x;
  fa_judge_tensor *to[FA_JUDGE_IN_PROGRAM] = {
      &x->q,          &x->k,      &x->v,       &x->d_o,       &x->o,         &x->lse,
      &x->dlse,       &x->got_dq, &x->got_dk,  &x->got_dv,    &x->bias,      &x->got_dbias,
      &x->got_dsinks, &x->bits,   &x->rotated, &x->flip_q,    &x->flip_k,    &x->times,
      &x->hidden,     &x->visits, &x->debug,   &x->q_descale, &x->k_descale, &x->v_descale};
  for (int i = 0; i < FA_JUDGE_IN_PROGRAM; ++i) *to[i] = tensor_of(run, there, i);
  for (int k = 0; k < FA_MAX_CAPTURES; ++k)
    run->got_dbuffer[k] = tensor_of(run, there, FA_JUDGE_IN_DBUFFER_0 + k);
  x->mod.program = (const fa_judge_program *)(const void *)there->input[FA_JUDGE_IN_PROGRAM];
  x->c = there->c;
  x->q_step = run->by_turn ? 1 : run->c->heads_q;
  x->k_step = run->by_turn ? 1 : run->c->heads_kv;
  run->heads = there->head;
  run->blocks = there->block;
}
