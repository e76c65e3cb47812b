/* Questions to a subject: a problem and tensors made by hand, one run, and the answer element by element. */
#ifndef FA_FUZZ_PROBE_ASK_H
#define FA_FUZZ_PROBE_ASK_H

#include "cases/recipe/case.h"
#include "fuzz/probe/findings.h"
#include "fuzz/probe/way.h"
#include "gpu/backend.h"

/* A subject under questions about one element type, and what is known so far. */
typedef struct probe {
  const fa_backend *backend;
  void *self;
  fa_dtype dtype;
  unsigned kinds;          /* of questions: bits */
  int step;                /* the question that is being asked */
  int tries;               /* calls of the first question that did not work */
  double active;           /* when it last began or ended anything, on fa_seconds_now's clock */
  fa_declaration declared; /* as the backend has it now: its conversions are in force */
  bool declares;
  fa_probe_report *r;
  bool has_lse, has_backward;
  const probe_way *way; /* in which it is asked; NULL: not known yet */
  int64_t few;          /* keys of a small call that it takes */
  double lse_factor;    /* the LSE that comes, over the natural one; 0: not known */
  char why[256];        /* the first call that did not work */
  double noise;         /* relative error of its sums, at least f32's: for comparisons with predictions */
} probe;

/* One question. Without any further word: queries, keys, values and dO are 0, the scale is 1/8. */
typedef struct probe_ask {
  probe *x;
  fa_case c;            /* c.problem is changed between ask_begin and ask_build */
  fa_tensors in, out;   /* in: from ask_build on; out: the answer */
  const probe_way *way; /* from ask_build on */
  unsigned passes;
  int64_t rows, keys;
  bool any_align; /* either alignment of the mask will do */
  bool no_keys;   /* the sequence of row 0 has none */
  char why[256];  /* it could not be asked */
} probe_ask;

#define PROBE_SCALE 0.125

/* So many rows over as many keys, in whichever way the subject takes; `heads` query heads and as many KV heads. */
bool ask_begin(probe_ask *a, probe *x, unsigned passes, int64_t heads, int64_t sq, int64_t sk);
/* Finds a way, a family and a head dim (at least `least_dim`, 64 or more) with which the subject can do it, and makes the
 * tensors. False: a->why. */
bool ask_build(probe_ask *a, int64_t least_dim);
/* Runs. False: a->why. */
bool ask_run(probe_ask *a);
void ask_end(probe_ask *a);

/* Elements of inputs: row or key s, head h, dimension d; rounded to its type. A key goes to all sequences. */
void ask_set(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t d, double value);
/* Row s, dimensions first ...: the bits of the whole number `units`, one a dimension, least first. */
void ask_set_bits(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t first, int64_t units);
/* Dimensions first .. first + n - 1 of the row. */
void ask_set_range(probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t first, int64_t n,
                   double value);
/* Of outputs. dK and dV: of the first sequence. */
double ask_get(const probe_ask *a, fa_tensor_id id, int64_t s, int64_t h, int64_t d);
double ask_lse(const probe_ask *a, int64_t h, int64_t i);
/* Its base is known, and it has not been rounded to 16 bits. */
bool probe_reads_lse(const probe *x);
/* The same as a natural logarithm; NaN unless probe_reads_lse. */
double ask_natural_lse(const probe_ask *a, int64_t h, int64_t i);
/* True if no element of the output was written. */
bool ask_is_unwritten(const probe_ask *a, fa_tensor_id id);

/* The product's operands have too few bits, or a step that depends on others, for questions about small numbers. */
bool probe_hides_small(const probe *x, fa_product product);

/* ---- findings ---- */

fa_finding *probe_say(probe *x, const char *field, fa_probe_confidence confidence, const char *value,
                      const char *evidence, ...) __attribute__((format(printf, 5, 6)));
/* A convention: expected is what the case asks for. */
fa_finding *probe_say_convention(probe *x, const char *field, fa_probe_confidence confidence,
                                 const char *value, const char *expected, const char *evidence, ...)
    __attribute__((format(printf, 6, 7)));
void probe_say_not_asked(probe *x, const char *field, const char *why);

#endif
