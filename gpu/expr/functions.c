/* Expressions as lists of steps on numbered slots. Parameters and constants are stored in advance, constant
 * subexpressions are computed once, and slots are reused, so that those of a typical expression fit in a
 * cache line or two. */
#include "gpu/expr/functions.h"

#include "gpu/expr/diff.h"
#include "gpu/expr/scalar.h"
#include "gpu/simt/device.h"

#include <stdlib.h>
#include <string.h>

enum { N_PARAMETERS = FA_EXPR_SEQLEN_K - FA_EXPR_SCORE + 1, STACK_SLOTS = 2048 };

typedef struct step {
  fa_expr_op op;
  fa_expr_type type;
  bool floats;                  /* the arguments */
  int n_args, to;               /* slots: */
  int arg[FA_MAX_CAPTURE_RANK]; /* of the arguments */
  int buffer, read;             /* loads; read: the number of a read whose element is wanted, or -1 */
} step;

typedef struct program {
  step *step;
  int n_steps;
  fa_f32_word *first; /* initial slots: parameters, which are set per call, then constants */
  int n_first, n_slots;
  int result;      /* slots */
  int *derivative; /* [n_reads] of every read whose gradient is wanted: slot of the derivative, */
  int *buffer;     /* and the buffer read */
  int n_reads;
} program;

struct fa_flex_interpreter {
  fa_flex_functions functions;
  fa_capture captures[FA_MAX_CAPTURES];
  int64_t stride[FA_MAX_CAPTURES][FA_MAX_CAPTURE_RANK]; /* in elements */
  const void *data[FA_MAX_CAPTURES];
  program score, mask, derivative;
};

/* ---- running ---- */

static fa_f32_word load(const fa_flex_interpreter *x, const step *s, const fa_f32_word *slot,
                        int64_t *element) {
  const fa_capture *c = &x->captures[s->buffer];
  const int64_t size = (int64_t)fa_dtype_size(c->dtype);
  int64_t offset = 0;
  *element = 0;
  for (int k = 0; k < s->n_args; ++k) {
    const int32_t index = fa_scalar_index(slot[s->arg[k]].i, c->shape[k]);
    *element = *element * c->shape[k] + index;
    offset += index * x->stride[s->buffer][k];
  }
  const char *at = (const char *)x->data[s->buffer] + offset * size;
#ifndef FA_TABLES_ONLY /* a library without an executor */
  /* In a kernel this counts as the kernel's own read: the executor detects one outside the buffer. */
  if (fa_simt_self) fa_simt_global(at, (size_t)size, false, (fa_simt_place){__FILE__, __LINE__});
#endif
  return fa_scalar_load(c->dtype, at);
}

static fa_f32_word operate(const step *s, const fa_f32_word *slot) {
  const fa_f32_word a = slot[s->arg[0]];
  if (s->n_args == 1) return fa_scalar_unary(s->op, s->floats, a);
  if (s->n_args == 2) return fa_scalar_binary(s->op, s->type, s->floats, a, slot[s->arg[1]]);
  return slot[s->arg[a.i ? 1 : 2]];
}

static void run(const fa_flex_interpreter *x, const program *p, fa_f32_word *slot, fa_flex_read *read) {
  for (const step *s = p->step, *end = s + p->n_steps; s < end; ++s) {
    if (s->op != FA_EXPR_LOAD) {
      slot[s->to] = operate(s, slot);
      continue;
    }
    int64_t element;
    slot[s->to] = load(x, s, slot, &element);
    if (s->read >= 0) read[s->read].element = element;
  }
  for (int k = 0; k < p->n_reads; ++k) {
    read[k].buffer = p->buffer[k];
    read[k].derivative = slot[p->derivative[k]].f;
  }
}

/* Puts slots on the stack if they fit; false: out of memory. */
static bool begin(const program *p, float score, const fa_flex_pair *at, fa_f32_word *stack,
                  fa_f32_word **out) {
  fa_f32_word *slot = p->n_slots <= STACK_SLOTS ? stack : malloc((size_t)p->n_slots * sizeof *slot);
  *out = slot;
  if (!slot) return false;
  memcpy(slot, p->first, (size_t)p->n_first * sizeof *slot);
  slot[0].f = score;
  slot[FA_EXPR_B - FA_EXPR_SCORE].i = at->b;
  slot[FA_EXPR_H - FA_EXPR_SCORE].i = at->h;
  slot[FA_EXPR_Q_IDX - FA_EXPR_SCORE].i = at->i;
  slot[FA_EXPR_KV_IDX - FA_EXPR_SCORE].i = at->j;
  slot[FA_EXPR_SEQLEN_Q - FA_EXPR_SCORE].i = at->len_q;
  slot[FA_EXPR_SEQLEN_K - FA_EXPR_SCORE].i = at->len_k;
  return true;
}

/* Out of memory is only possible with thousands of values; the result then is one that no check accepts. */
static fa_f32_word run_at(const fa_flex_interpreter *x, const program *p, float score, const fa_flex_pair *at,
                          fa_flex_read *read) {
  fa_f32_word stack[STACK_SLOTS], *slot, result = {.f = NAN};
  if (!begin(p, score, at, stack, &slot)) {
    for (int k = 0; k < p->n_reads; ++k) read[k] = (fa_flex_read){p->buffer[k], 0, NAN};
    return result;
  }
  run(x, p, slot, read);
  result = slot[p->result];
  if (slot != stack) free(slot);
  return result;
}

static float score_at(void *self, float score, const fa_flex_pair *at) {
  const fa_flex_interpreter *x = self;
  return run_at(x, &x->score, score, at, NULL).f;
}

static int mask_at(void *self, const fa_flex_pair *at) {
  const fa_flex_interpreter *x = self;
  return run_at(x, &x->mask, 0, at, NULL).i != 0;
}

static float slope_at(void *self, float score, const fa_flex_pair *at, fa_flex_read *read) {
  const fa_flex_interpreter *x = self;
  return run_at(x, &x->derivative, score, at, read).f;
}

/* ---- making a program ---- */

typedef struct maker {
  const fa_expr *e;
  program *p;
  bool *needed;    /* per node, like the others */
  int *slot;       /* slot of its value */
  int *users;      /* number of remaining reads */
  int *read;       /* loads: number of the read, or -1 */
  int *free_slots; /* a stack */
  int n_free;
} maker;

static bool is_parameter(fa_expr_op op) {
  return op >= FA_EXPR_SCORE && op <= FA_EXPR_SEQLEN_K;
}

static bool is_known(const maker *m, int node) {
  return m->slot[node] >= N_PARAMETERS && m->slot[node] < m->p->n_first;
}

/* The value of a node whose arguments are all constant. */
static fa_f32_word constant(const maker *m, const fa_expr_node *t, const step *s) {
  if (t->op != FA_EXPR_CONST) return operate(s, m->p->first);
  if (t->type == FA_EXPR_FLOAT) return (fa_f32_word){.f = (float)t->value};
  return (fa_f32_word){.i = (int32_t)t->value};
}

static step step_of(const maker *m, int node) {
  const fa_expr_node *t = &m->e->node[node];
  step s = {.op = t->op, .type = t->type, .n_args = t->n_args, .buffer = t->buffer, .read = m->read[node]};
  for (int k = 0; k < t->n_args; ++k) s.arg[k] = m->slot[t->arg[k]];
  s.floats = t->n_args > 0 && m->e->node[t->arg[0]].type == FA_EXPR_FLOAT;
  return s;
}

/* First pass: constants and constant subexpressions. */
static void know(maker *m, int node) {
  const fa_expr_node *t = &m->e->node[node];
  bool known = t->op == FA_EXPR_CONST || (t->n_args > 0 && t->op != FA_EXPR_LOAD);
  for (int k = 0; k < t->n_args; ++k) known = known && is_known(m, t->arg[k]);
  if (is_parameter(t->op)) m->slot[node] = (int)t->op - FA_EXPR_SCORE;
  if (!known) return;
  const step s = step_of(m, node);
  m->p->first[m->p->n_first] = constant(m, t, &s);
  m->slot[node] = m->p->n_first++;
}

static bool is_computed(const maker *m, int node) {
  return m->needed[node] && !is_parameter(m->e->node[node].op) && !is_known(m, node);
}

/* Second pass, over what is computed: the result reuses the slots of arguments that have no other reader. */
static void compute(maker *m, int node) {
  const fa_expr_node *t = &m->e->node[node];
  step s = step_of(m, node);
  for (int k = 0; k < t->n_args; ++k)
    if (is_computed(m, t->arg[k]) && --m->users[t->arg[k]] == 0)
      m->free_slots[m->n_free++] = m->slot[t->arg[k]];
  s.to = m->n_free > 0 ? m->free_slots[--m->n_free] : m->p->n_slots++;
  m->slot[node] = s.to;
  m->p->step[m->p->n_steps++] = s;
}

/* Marks what the results need; a result has one more read, at the end. */
static void mark(maker *m) {
  for (int node = m->e->n - 1; node >= 0; --node) {
    const fa_expr_node *t = &m->e->node[node];
    if (m->users[node] > 0) m->needed[node] = true;
    for (int k = 0; m->needed[node] && k < t->n_args; ++k) ++m->users[t->arg[k]];
  }
}

static fa_status program_fill(maker *m, int root, const fa_expr_gradient *g, const bool *wanted) {
  program *p = m->p;
  for (int node = 0; node < m->e->n; ++node) m->slot[node] = m->read[node] = -1;
  ++m->users[root];
  for (int r = 0; g && r < g->n_reads; ++r) {
    const int buffer = m->e->node[g->read[r].load].buffer;
    if (!wanted[buffer]) continue;
    m->read[g->read[r].load] = p->n_reads;
    ++m->users[g->read[r].load];
    ++m->users[g->read[r].derivative];
    p->buffer[p->n_reads++] = buffer;
  }
  mark(m);
  p->n_first = N_PARAMETERS;
  for (int node = 0; node < m->e->n; ++node)
    if (m->needed[node]) know(m, node);
  p->n_slots = p->n_first;
  for (int node = 0; node < m->e->n; ++node)
    if (is_computed(m, node)) compute(m, node);
  p->result = m->slot[root];
  for (int r = 0; g && r < g->n_reads; ++r)
    if (m->read[g->read[r].load] >= 0)
      p->derivative[m->read[g->read[r].load]] = m->slot[g->read[r].derivative];
  return FA_OK;
}

static void program_free(program *p) {
  free(p->step);
  free(p->first);
  free(p->derivative);
  free(p->buffer);
  memset(p, 0, sizeof *p);
}

/* g, wanted: NULL if only the value is needed. */
static fa_status program_make(const fa_expr *e, int root, const fa_expr_gradient *g, const bool *wanted,
                              program *out, fa_error *err) {
  const size_t n = (size_t)e->n, n_reads = g ? (size_t)g->n_reads + 1 : 1;
  fa_status status = FA_ERR_MEMORY;
  maker m = {.e = e, .p = out, .needed = calloc(n, sizeof(bool))};
  int *numbers = calloc(4 * n, sizeof *numbers);
  *out = (program){.step = calloc(n, sizeof(step)),
                   .first = calloc(N_PARAMETERS + n, sizeof(fa_f32_word)),
                   .derivative = calloc(n_reads, sizeof(int)),
                   .buffer = calloc(n_reads, sizeof(int))};
  if (m.needed && numbers && out->step && out->first && out->derivative && out->buffer) {
    m.slot = numbers;
    m.users = numbers + n;
    m.read = numbers + 2 * n;
    m.free_slots = numbers + 3 * n;
    status = program_fill(&m, root, g, wanted);
  }
  free(numbers);
  free(m.needed);
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory for an expression");
}

/* ---- the interpreter ---- */

static fa_status make_slope(fa_flex_interpreter *x, const fa_expr *score, const bool *wanted, fa_error *err) {
  fa_expr_gradient g;
  fa_status status = fa_expr_differentiate(score, &g, err);
  if (status != FA_OK) return status;
  status = program_make(&g.e, g.score, &g, wanted, &x->derivative, err);
  fa_expr_gradient_free(&g);
  if (status != FA_OK) return status;
  x->functions.derivative = slope_at;
  x->functions.n_reads = x->derivative.n_reads;
  if (x->derivative.n_reads <= FA_FLEX_MAX_READS) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "score_mod reads buffers whose gradients are wanted at %d places; kernels know %d",
                 x->derivative.n_reads, FA_FLEX_MAX_READS);
}

fa_status fa_flex_interpreter_make(const fa_expr *score, const fa_expr *mask, const fa_capture *captures,
                                   int n_captures, const void *const *buffer, const bool *wanted,
                                   fa_flex_interpreter **out, fa_error *err) {
  fa_status status = FA_OK;
  FA_ASSERT(n_captures <= FA_MAX_CAPTURES);
  *out = NULL;
  fa_flex_interpreter *x = calloc(1, sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory for an expression");
  x->functions.self = x;
  for (int k = 0; k < n_captures; ++k) {
    x->captures[k] = captures[k];
    x->data[k] = buffer[k];
    fa_capture_strides(&captures[k], x->stride[k]);
  }
  if (score && score->n > 0) {
    status = program_make(score, score->root, NULL, NULL, &x->score, err);
    x->functions.score = score_at;
    if (status == FA_OK && wanted) status = make_slope(x, score, wanted, err);
  }
  if (status == FA_OK && mask && mask->n > 0) {
    status = program_make(mask, mask->root, NULL, NULL, &x->mask, err);
    x->functions.mask = mask_at;
  }
  if (status == FA_OK)
    *out = x;
  else
    fa_flex_interpreter_free(x);
  return status;
}

const fa_flex_functions *fa_flex_interpreter_functions(const fa_flex_interpreter *x) {
  return &x->functions;
}

void fa_flex_interpreter_free(fa_flex_interpreter *x) {
  if (!x) return;
  program_free(&x->score);
  program_free(&x->mask);
  program_free(&x->derivative);
  free(x);
}
