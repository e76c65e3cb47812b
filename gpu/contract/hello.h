/* What a foreign kernel says about itself: the hello of docs/reference/protocol.md, from a child's answer or from a
 * plugin's text. */
#ifndef FA_GPU_CONTRACT_HELLO_H
#define FA_GPU_CONTRACT_HELLO_H

#include "cases/vocabulary/declaration.h"
#include "cases/vocabulary/problem.h"
#include "gpu/contract/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

#define FA_HELLO_VERSION 2 /* the newest; 1 is understood too */
#define FA_HELLO_DTYPES 3  /* f16, bf16, f32: the first of fa_dtype */

typedef struct fa_hello {
  int version;
  char name[96], device[96], driver[64]; /* for reports; "" = not said */
  char source[256];                      /* where the kernel is written: "attention.py:12"; "" = not said */
  uint64_t families, dtypes, features;   /* bits of fa_family, fa_dtype, fa_feature_at */
  unsigned passes;                       /* fa_pass bits */
  bool asks;                             /* wants to be asked about every case */
  bool times;                            /* answers "stage", "time" and "fetch" */
  bool files;                            /* tensors go through files, not through shared memory */
  fa_limit limit[FA_N_LIMITS];
  fa_declaration declaration[FA_HELLO_DTYPES]; /* by fa_dtype */
} fa_hello;

/* What a hello without any key would say. Version 1: everything that version 1 knew, all outputs in the harness's
 * conventions, "recorded" arithmetic. Version 2: everything; contract and arithmetic are not given. */
void fa_hello_init(fa_hello *h, int version);

/* Reads and checks every key; "fa_exec" says the version. FA_ERR_INPUT: an unknown version, a wrong type or name, in
 * version 2 also an unknown key. FA_ERR_DEVICE: it cannot work here ("why_not"), and the message says why. */
fa_status fa_hello_read(const struct cJSON *tree, fa_hello *out, fa_error *err);
/* The same for JSON text, in which "fa_exec" (2) and "name" may be missing. who: its name in messages. */
fa_status fa_hello_read_text(const char *text, const char *who, fa_hello *out, fa_error *err);

/* The passes (fa_pass bits) that it offers for the problem, before it is asked itself. why: why not all. */
unsigned fa_hello_passes(const fa_hello *h, const fa_problem *p, char *why, size_t size);

/* What it has declared for the problem, p NULL: for f32. In an unscaled LSE of scale 0 nothing is left of it: it
 * then counts as not delivered. */
void fa_hello_declare(const fa_hello *h, const fa_problem *p, fa_declaration *out);
/* The constants of the bounds for what was declared: of the arithmetic, and of the LSE's conventions. */
fa_profile fa_declaration_profile(const fa_declaration *d, const fa_problem *p);
/* Takes what a probe has found for everything that it has not said itself; from then on it is said. */
void fa_hello_adopt(fa_hello *h, fa_dtype dtype, const fa_declaration *found);
void fa_declaration_adopt(fa_declaration *d, const fa_declaration *found);

/* ---- single keys, which answers have too ---- */

/* "passes": fa_pass bits; unchanged without it. */
fa_status fa_hello_read_passes(const struct cJSON *object, unsigned *passes, fa_error *err);
/* "outputs": a bit (1 << fa_tensor_id) for each tensor; unchanged without it, and *given too. */
fa_status fa_hello_read_outputs(const struct cJSON *object, fa_tensor_bits *outputs, bool *given,
                                fa_error *err);
/* "arithmetic" for one element type, on top of *out; unchanged without it, and *given too. In version 1 only the keys
 * that it had. */
fa_status fa_hello_read_arithmetic(const struct cJSON *object, int version, fa_dtype dtype,
                                   fa_arithmetic *out, bool *given, fa_error *err);

/* Every word that "outputs" may have, and every key of a hello and of its "lse"; NULL behind the last. */
const char *fa_output_word(int i);
fa_tensor_bits fa_output_bits(int i); /* a bit (1 << fa_tensor_id) for each tensor that the i-th word names */
const char *fa_hello_key(int i);
const char *fa_hello_lse_key(int i);

#ifdef __cplusplus
}
#endif

#endif
