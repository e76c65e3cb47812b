/* score_mod for a machine: its nodes, and what it reads of captured buffers as plain numbers. */
#include "ref/cuda/run.h"
#include "ref/mods/tile.h"

#include <stdlib.h>
#include <string.h>

/* More numbers than these are not worth the host's time. */
#define MOST_CAPTURED ((int64_t)1 << 24)

static bool reads(const fa_ref_call *c, int buffer) {
  return buffer < c->p->n_captures && fa_expr_reads(&c->mods->score, buffer);
}

static int64_t captured(const fa_ref_call *c) {
  int64_t n = 0;
  for (int k = 0; k < c->p->n_captures; ++k)
    if (reads(c, k)) n += fa_tensor_count(&c->in->t[FA_T_BUFFER_0 + k]);
  return n;
}

/* Returns what is behind. */
static double *copy_captured(const fa_tensor *from, double *to) {
  int64_t index[FA_MAX_RANK] = {0};
  const int64_t n = fa_tensor_count(from);
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(from, e, index);
    *to++ = fa_tensor_get(from, index);
  }
  return to;
}

/* Pointers are offsets from the program's begin. */
static void fill(const fa_ref_call *c, fa_judge_program *program) {
  const fa_expr *e = &c->mods->score;
  fa_expr_node *node = (fa_expr_node *)(void *)(program + 1);
  double *at = (double *)(void *)(node + e->n);
  memcpy(node, e->node, (size_t)e->n * sizeof *node);
  program->expr = (fa_expr){.n = e->n, .root = e->root};
  for (int k = 0; k < c->p->n_captures; ++k) {
    if (!reads(c, k)) continue;
    fa_tensor *t = &program->in.t[FA_T_BUFFER_0 + k];
    *t = c->in->t[FA_T_BUFFER_0 + k];
    t->data = (char *)((char *)at - (char *)program);
    at = copy_captured(&c->in->t[FA_T_BUFFER_0 + k], at);
  }
}

fa_status fa_judge_run_program(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  if (!c->p->score_mod) return FA_OK;
  const int64_t numbers = captured(c);
  if (numbers > MOST_CAPTURED) return fa_fail(err, FA_ERR_UNSUPPORTED, "large captured buffers");
  const size_t bytes = sizeof(fa_judge_program) + (size_t)c->mods->score.n * sizeof(fa_expr_node) +
                       (size_t)numbers * sizeof(double);
  run->program = calloc(bytes, 1);
  if (!run->program) return fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for an expression");
  fill(c, (fa_judge_program *)(void *)run->program);
  run->input[FA_JUDGE_IN_PROGRAM] =
      (fa_tensor){.data = run->program, .dtype = FA_U8, .rank = 1, .shape = {(int64_t)bytes}, .stride = {1}};
  return FA_OK;
}

void fa_judge_place_program(char *here, char *there) {
  fa_judge_program *program = (fa_judge_program *)(void *)here;
  if (!here) return;
  program->expr.node = (fa_expr_node *)(void *)(there + sizeof *program);
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    fa_tensor *t = &program->in.t[FA_T_BUFFER_0 + k];
    if (t->data) t->data = there + (size_t)t->data;
  }
}

void fa_judge_lay_out_mod(fa_judge_run *run, fa_judge_arena *a) {
  enum { MOST = 2048, LANE = 4 * sizeof(double) + sizeof(int) + 1 };
  const size_t room = run->m->most_bytes / 8 < (size_t)64 << 20 ? run->m->most_bytes / 8 : (size_t)64 << 20;
  fa_judge_mod *mod = &run->x.mod;
  if (!run->program) return;
  mod->place_bytes = (run->c->mods->score.n * FA_JUDGE_LANES * LANE + 255) / 256 * 256;
  mod->places = (int64_t)room / mod->place_bytes;
  if (mod->places > MOST) mod->places = MOST;
  if (mod->places < 1) mod->places = 1;
  mod->scratch = fa_judge_take(a, mod->places, (size_t)mod->place_bytes);
}

fa_status fa_judge_modify(fa_judge_run *run, const fa_judge_wave *w, fa_error *err) {
  fa_judge_mod *mod = &run->x.mod;
  if (!run->program) return FA_OK;
  mod->rows = w->rows;
  return fa_judge_launch(run, FA_JUDGE_KERNEL_modify, w->rows < mod->places ? w->rows : mod->places, err);
}
