/* What the driver needs from anything that computes attention.
 *
 * A backend is a struct of function pointers and never judges itself. A misbehaving subject (out-of-bounds
 * writes, races, deadlocks, crashes) is an outcome, not an fa_status; fa_status is for the world (no memory,
 * no device). */
#ifndef FA_GPU_BACKEND_H
#define FA_GPU_BACKEND_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "cases/arithmetic/profile.h"
#include "cases/tensors/set.h"
#include "cases/tensors/table.h"
#include "cases/vocabulary/declaration.h"
#include "cases/vocabulary/problem.h"
#include "cases/vocabulary/work.h"
#include "gpu/outcome.h"

typedef struct fa_outcome {
  fa_subject_state state;
  char text[512];                        /* what happened and where (kernel source line if known) */
  char kernel[128], backward_kernel[32]; /* the kernels that ran, for the report:
                                            "flash_forward<f16,64,causal>", "flash_backward"; "" = none, or
                                            kernel names them all */
  fa_work work;                          /* of all its kernels */
  fa_tensor_bits left_out; /* outputs (bits 1 << id) that its contract promises, and that it says it did
                        not write for this call */
} fa_outcome;

typedef struct fa_backend_info {
  const char *name;
  char device[128], driver[64];
  char source[256]; /* where the kernel is written: "attention.cu:12"; "" = unknown */
  char wall[512];   /* what stands around a candidate that nobody trusts, for people */
  bool usable;
  char why_not[256]; /* if not usable */
} fa_backend_info;

typedef struct fa_run_options {
  unsigned passes;        /* fa_pass bits; backward follows forward in the same call and uses its O and LSE */
  uint64_t schedule_seed; /* host: order of fibers and completion times; 0 = the plain order */
  const uint8_t *tape;    /* host: bytes that decide in schedule_seed's place (gpu/simt/launch.h) */
  size_t tape_bytes;      /* 0 = none */
  int n_threads;          /* host-side threads the backend may use, >= 1 */
  bool
      lse_as_declared; /* the LSE's tensor is as the backend declares it, and not the case's own: whoever asks
                             converts it (gpu/serve) */
} fa_run_options;

struct fa_wall_terms; /* gpu/wall/terms.h */

typedef struct fa_backend {
  const char *name; /* "host", "cuda", "ref-f32" */
  const char *what; /* one line for `list backends` */
  /* arg: the text after "name:" on the command line, or NULL. *self is passed to every other call. */
  fa_status (*open)(const char *arg, void **self, fa_error *err);
  void (*close)(void *self);
  void (*describe)(void *self, fa_backend_info *out);
  /* NULL, or: called in the process from which all are forked that will open it with this argument, before any of them: starts what
   * they share, if it is worth it. */
  void (*share)(const char *arg);
  /* Which of the passes the backend can do for this problem; reason is a short clause why not the others. */
  unsigned (*supports)(void *self, const fa_problem *p, char *reason, size_t reason_size);
  /* The arithmetic profile of the kernel that would run. */
  void (*profile)(void *self, const fa_problem *p, fa_profile *out);
  /* Reads inputs, writes outputs, touches nothing else. */
  fa_status (*run)(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt, fa_outcome *out,
                   fa_error *err);
  /* NULL, or: memory for the tensors of a run, as fa_tensors_clone_poisoned_into puts them there, which spares the backend
   * copies of them. It belongs to the backend, and to this caller until the next call for the same place, 0 or 1. NULL:
   * there is none. */
  char *(*memory)(void *self, int place, size_t bytes);
  /* NULL, or: does in advance the slow part of the first describe, profile and run. It is called at most
   * once, after open, possibly in another thread while this one calls supports and spent; it ends before this
   * thread calls anything else. Errors are reported by the call that needs the result, as if there had been
   * no prepare. */
  void (*prepare)(void *self);
  /* NULL: of those that are open in a process, one works at a time. Or: says, before any is opened, how many will be
   * open and at work at once in this process, each opened by a thread of its own that alone uses it. They
   * share what the process has once, such as a GPU's context: what ends that ends it for all. */
  void (*lanes)(int n);
  /* NULL (everything is delivered in the harness's conventions, and profile says the arithmetic), or: what the
   * subject says about itself where this problem is concerned. p NULL: in general, for f32. */
  void (*declare)(void *self, const fa_problem *p, fa_declaration *out);
  /* NULL, or: from now on, takes these for what the subject has not said about problems of this element type. */
  void (*adopt)(void *self, fa_dtype dtype, const fa_declaration *found);
  /* NULL (it is one of ours), or: what the subject said about itself when it was greeted. It lives as long as self. */
  const struct fa_hello *(*hello)(void *self);
  /* NULL, or: true once a run has made this process unable to run anything more (a GPU's context is lost). */
  bool (*spent)(void *self);
  /* NULL: it cannot stand behind a wall. Or: opens it for a candidate that nobody trusts. FA_ERR_INPUT: a layer of the
   * terms cannot be had here, and which. The terms outlive self. */
  fa_status (*open_untrusted)(const char *arg, const struct fa_wall_terms *terms, void **self, fa_error *err);
  /* NULL, or: what the subject says about itself in general, in its own words: the JSON object of a hello
   * (docs/reference/protocol.md), owned by it; NULL if it has said nothing. */
  const char *(*hello_text)(void *self);
  /* NULL, or: the backend that stands behind a wall in its place, with this one in a process of its own; its argument is
   * the whole "name:arg". */
  const struct fa_backend *served;
  /* ---- for subjects that nobody trusts; NULL: it is none that could be held to anything ---- */
  /* What the subject has said of itself when it was greeted, as canonical text (gpu/contract/canonical.h); NULL: out of
   * memory. Valid until the next call. */
  const char *(*contract)(void *self);
  /* From now on it must greet with exactly this contract. FA_ERR_INPUT: it has not; so does every later call that finds
   * another one. */
  fa_status (*hold)(void *self, const char *contract, fa_error *err);
  /* Ends the subject's process and starts another. */
  fa_status (*renew)(void *self, fa_error *err);
} fa_backend;

extern const fa_backend fa_backend_cuda;
extern const fa_backend fa_backend_host;
extern const fa_backend fa_backend_ref_f32;

/* All backends of this build in order of preference; NULL-terminated. */
extern const fa_backend *const fa_backends[];

#ifdef __cplusplus
}
#endif

#endif
