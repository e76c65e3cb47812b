/* One call on a machine: its lists, tensors and arrays there, and launches over them. */
#ifndef FA_REF_CUDA_RUN_H
#define FA_REF_CUDA_RUN_H

#include "ref/cuda/arrays.h"
#include "ref/cuda/machine.h"

/* What is uploaded, by its place in `input`; O ..: the subject's. */
enum {
  FA_JUDGE_IN_Q,
  FA_JUDGE_IN_K,
  FA_JUDGE_IN_V,
  FA_JUDGE_IN_DO,
  FA_JUDGE_IN_O,
  FA_JUDGE_IN_LSE,
  FA_JUDGE_IN_DLSE,
  FA_JUDGE_IN_DQ,
  FA_JUDGE_IN_DK,
  FA_JUDGE_IN_DV,
  FA_JUDGE_IN_BIAS,
  FA_JUDGE_IN_DBIAS,
  FA_JUDGE_IN_DSINKS,
  FA_JUDGE_IN_BITS,
  FA_JUDGE_IN_ROTATED,
  FA_JUDGE_IN_FLIP_Q,
  FA_JUDGE_IN_FLIP_K,
  FA_JUDGE_IN_TIMES,
  FA_JUDGE_IN_HIDDEN,
  FA_JUDGE_IN_VISITS,
  FA_JUDGE_IN_DEBUG,
  FA_JUDGE_IN_Q_DESCALE,
  FA_JUDGE_IN_K_DESCALE,
  FA_JUDGE_IN_V_DESCALE,
  FA_JUDGE_IN_PROGRAM, /* bytes: fa_judge_program */
  FA_JUDGE_IN_DBUFFER_0,
  FA_JUDGE_INPUTS = FA_JUDGE_IN_DBUFFER_0 + FA_MAX_CAPTURES
};

enum { FA_JUDGE_RUNS = 2 }; /* that share an upload: a forward and a backward */

/* What is uploaded at once, each at the same offset here and there. */
typedef struct fa_judge_staged {
  fa_ref_call *c;
  fa_problem *p;
  fa_profile *profile;
  fa_ref_sequence *entry;
  fa_judge_head *head;
  fa_judge_block *block;
  char *input[FA_JUDGE_INPUTS];
} fa_judge_staged;

typedef struct fa_judge_run {
  fa_judge_machine *m;
  const fa_ref_call *c;
  bool backward;
  bool compares; /* the subject's outputs there, instead of fetching what is wanted of them */
  fa_tensor input[FA_JUDGE_INPUTS]; /* data NULL: absent */
  fa_judge_lists lists;
  fa_judge_job x;
  fa_judge_check *check;        /* items of all outputs, one after another */
  fa_judge_part records, wants; /* found and check; what is wanted */
  char *fetched;                /* room for the records in staged memory, where they come without a copy */
  fa_judge_part sums;           /* by key: 0 before a turn begins */
  float *gathered[3]; /* keys, values and flips of keys in the order of sequences, where they lie elsewhere */
  unsigned char *hidden, *visits; /* pairs that are hidden, and tiles that are visited */
  char *program;                  /* score_mod with what it reads */
  fa_judge_want want_dbuffer[FA_MAX_CAPTURES];
  fa_judge_tensor got_dbuffer[FA_MAX_CAPTURES];
  float *rotated, *times; /* queries after rotary embedding; what lists name */
  float *descales[3];     /* of Q, K and V in 8 bits */
  bool by_turn;           /* inputs are uploaded with the turn that reads them */
  char *turns[FA_JUDGE_INPUTS],
      *loaded[FA_JUDGE_INPUTS]; /* of all turns, on the host; of one, on the machine */
  fa_judge_block *blocks;       /* of the call, on the machine */
  fa_judge_head *heads;
} fa_judge_run;

/* The call and its outputs, zeros; queries and appended keys rotated, expressions read. */
fa_status fa_judge_call_init(fa_ref_call *c, const fa_problem *p, const fa_tensors *in,
                             const fa_ref_options *opt, bool backward, fa_wants *out, fa_error *err);
void fa_judge_call_free(fa_ref_call *c);
/* Whether pairs are hidden by something besides positions and a custom mask's bits: which, once blocks are listed.
 * FA_ERR_UNSUPPORTED: the call is the CPU's. */
bool fa_judge_hides(const fa_ref_call *c);
fa_status fa_judge_run_hide(fa_judge_run *run, fa_error *err);
void fa_judge_run_free_hidden(fa_judge_run *run);
/* Whether keys are gathered; then they are numbered through the sequences, from the one that comes first in one of them. */
bool fa_judge_gathers(const fa_ref_call *c);
int64_t fa_judge_gathered_first(const fa_ref_call *c, int64_t b);
/* Gathers what a call's sequences see in caches, and rotates. */
fa_status fa_judge_run_gather(fa_judge_run *run, fa_error *err);
void fa_judge_run_free_gathered(fa_judge_run *run);
/* Operands of 8 bits are uploaded as what is stored. What each row, or each of its tiles, is multiplied by: how many tiles there
 * are of `width` columns; of key j of a sequence; and of all operands, once keys are gathered. */
int64_t fa_judge_tiles(const fa_ref_call *c, int64_t width);
void fa_judge_descales_of_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                              int64_t j, int64_t tiles, float *to);
fa_status fa_judge_run_descale(fa_judge_run *run, fa_error *err);
void fa_judge_run_free_descales(fa_judge_run *run);
/* score_mod: reads it and what it reads, with offsets for pointers; makes pointers of them in a copy that is going to be
 * `there` (NULL: does nothing); memory for its evaluations; and applies it to the scores of a wave, if there is one. */
fa_status fa_judge_run_program(fa_judge_run *run, fa_error *err);
void fa_judge_place_program(char *here, char *there);
void fa_judge_lay_out_mod(fa_judge_run *run, fa_judge_arena *a);
fa_status fa_judge_modify(fa_judge_run *run, const fa_judge_wave *w, fa_error *err);
/* Gradients of the buffers that it reads: memory, cleared with what else is; the pairs of a wave; after all waves. */
void fa_judge_lay_out_dbuffers(fa_judge_run *run, fa_judge_arena *a);
fa_status fa_judge_add_dbuffers(fa_judge_run *run, const fa_judge_wave *w, fa_error *err);
fa_status fa_judge_settle_dbuffers(fa_judge_run *run, fa_error *err);
/* Sets what is to be uploaded: the inputs of its pass, and unless got is NULL the subject's outputs. */
void fa_judge_run_take(fa_judge_run *run, const fa_tensors *in, const fa_tensors *got);

/* Lays out what is uploaded at once, but what `with`, unless it is NULL, has in of_it already. */
void fa_judge_staged_lay_out(const fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *of_it,
                             fa_judge_arena *a, fa_judge_staged *s);
/* Whether inputs could be uploaded by turns; a turn's on the machine; all turns' on the host. */
bool fa_judge_staged_may_turn(const fa_judge_run *run);
void fa_judge_staged_lay_out_turn(fa_judge_run *run, fa_judge_arena *a);
size_t fa_judge_staged_turns_bytes(const fa_judge_run *run);
/* What is compared when all turns are done, where these were; fa_judge_staged_turns_bytes has it too. */
size_t fa_judge_staged_end_bytes(const fa_judge_run *run);
void fa_judge_staged_lay_out_end(fa_judge_run *run, fa_judge_arena *a);
fa_status fa_judge_staged_upload_end(fa_judge_run *run, fa_error *err);
void fa_judge_staged_fill(fa_judge_run *run, const fa_judge_run *with, const fa_judge_staged *here,
                          const fa_judge_staged *there, char *turns);
void fa_judge_staged_use(fa_judge_run *run, const fa_judge_staged *there);
fa_status fa_judge_staged_upload(fa_judge_run *run, const fa_judge_turn *turn, bool measured, fa_error *err);

/* Copies calls and their tensors to the machine, what several of them read once, and makes their outputs, with the shapes of
 * c->out, zeros there. All have one machine, of whose memory each has its share. */
fa_status fa_judge_run_open(fa_judge_run *const *runs, int n, fa_error *err);
/* Computes `wave` for all waves, after each turn's keys were loaded; after a turn's last one `end`, which may be NULL. */
typedef fa_status fa_judge_step(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                                fa_error *err);
fa_status fa_judge_run_turns(fa_judge_run *run, fa_judge_step *wave, fa_judge_step *end, fa_error *err);
/* Launches are over the blocks of wave n from here on. */
void fa_judge_run_wave(fa_judge_run *run, int64_t n);
/* Everything that is wanted of O and LSE, or of the gradients, on the machine, of a run that is open. */
fa_status fa_judge_compute_forward(fa_judge_run *run, fa_error *err);
fa_status fa_judge_compute_backward(fa_judge_run *run, fa_error *err);
/* Elements of an item of the comparison, and items of an output. */
int64_t fa_judge_piece(fa_tensor_id id, const fa_want *w);
int64_t fa_judge_items(fa_tensor_id id, const fa_want *w);
/* Waits, and copies an output back. */
fa_status fa_judge_run_fetch(fa_judge_run *run, const fa_judge_want *from, fa_want *to, fa_error *err);
/* Waits. What the kernels found; FA_ERR_UNSUPPORTED: that this call is the CPU's. _says: the latter alone. */
fa_status fa_judge_run_found(fa_judge_run *run, fa_judge_found *found, fa_error *err);
fa_status fa_judge_found_says(const fa_judge_found *found, fa_error *err);
void fa_judge_run_close(fa_judge_run *run);

/* Items of a kernel, after everything before; beside: or together with the launches before it that are of the same kernel. The
 * products of a form (ref/cuda/product.cuh): of one kernel, all beside each other. */
fa_status fa_judge_launch(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, fa_error *err);
fa_status fa_judge_launch_beside(fa_judge_run *run, fa_judge_kernel kernel, int64_t n, fa_error *err);
typedef enum fa_judge_form { FA_JUDGE_ROW_BY_KEY, FA_JUDGE_ROW, FA_JUDGE_KEY } fa_judge_form;
typedef struct fa_judge_factors {
  fa_judge_form form;
  bool f32;
  const void *a, *b;
  void *c;
  int64_t width;
  double alpha;
} fa_judge_factors;
fa_status fa_judge_multiply(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *wave,
                            const fa_judge_factors *list, int n, fa_error *err);

#endif
