/* The result of one case: the record that every printer and report reads. */
#ifndef FA_REPORT_RESULT_H
#define FA_REPORT_RESULT_H

#include "cases/recipe/case.h"
#include "cases/vocabulary/work.h"
#include "ref/compare/map.h"
#include "ref/compare/verdict.h"
#include "report/judges/record.h"
#include "report/sampling/record.h"

/* UNTESTED is the zero value: a result that nobody set counts as a failure. */
typedef enum fa_state {
  FA_UNTESTED = 0,
  FA_PASS,
  FA_FAIL, /* numbers out of bounds */
  FA_CRASH,
  FA_HANG,
  FA_OOB, /* wrote outside an output (guard, gap, other element), or the executor detected such an access */
  FA_INPUT_MODIFIED,
  FA_NONDETERMINISTIC, /* two runs with different poison differ where they must not */
  FA_RACE,
  FA_DEADLOCK,
  FA_VACUOUS,      /* the bound would accept a trivially wrong answer: a failure of the case */
  FA_NOT_REJECTED, /* expect: reject, but the backend ran it */
  FA_SKIP,         /* with a reason */
  FA_ERROR,        /* the world failed, not the subject */
  FA_N_STATES
} fa_state;

const char *fa_state_name(fa_state s); /* "PASS", "FAIL", "INPUT_MODIFIED", ... */
bool fa_state_from_name(const char *name, fa_state *out);
bool fa_state_is_failure(fa_state s); /* counts as failed: exit code 1 */

/* What the subject seems to have computed instead: a mistake whose own result, with its own bounds, has the elements
 * that are wrong. Several are given only if none explains more than the others. */
#define FA_EXPLANATIONS 4
typedef struct fa_explanation {
  char hypothesis[40];    /* its name in `fa-verify list hypotheses` */
  char text[160];         /* "window right edge one key short" */
  fa_tensor_bits tensors; /* bit 1 << fa_tensor_id: the failed tensors that it explains */
  int64_t wrong;          /* their wrong elements that were looked at */
  double share;           /* of these, within the bounds of the mistaken computation: 0.95 .. 1 */
  bool sampled;           /* looked at some of the rows only, for want of time */
} fa_explanation;

typedef struct fa_result {
  fa_state state;
  char reason[512]; /* why skipped, what crashed, ... ; "" for PASS */
  char *name;       /* owned */
  char *case_line;  /* owned: canonical case JSON */
  char backend[320], profile[32];
  char kernel[128], backward_kernel[32]; /* those that ran; "" = none, or unknown */
  char file[512];                        /* recorded runs: the file; "" otherwise */
  char features[512];                    /* what the case has, in words: "f16 flash causal gqa backward" */
  char place[512];                       /* of a case of a file: "cases/causal.json:12"; "" otherwise */
  char shape[384];                       /* its sizes and settings (report/causes/shape.h): "b=1 hq=2 ..." */
  fa_work work;                          /* of one run; all 0: not counted */
  unsigned passes;                       /* which fa_pass bits were judged */
  bool backward_left_out;                /* the case has a backward, but not on this backend */
  char notes[512];                       /* e.g. "backward not judged: host has no flash backward yet" */
  fa_tensor_bits not_delivered; /* bit 1 << fa_tensor_id: an output that the subject does not write */
  char record[20];  /* read from a report, which has no case_line: what identifies the case; "" otherwise */
  bool known;       /* waived because the baseline has the same failure */
  bool waived;      /* a waiver expects this failure: reported, not counted as one */
  char waiver[512]; /* text of the waiver that applies to this case; "" = there is none */
  bool malformed;   /* ERROR: the case itself is wrong, such as an expression without a value */
  bool dump_failed; /* --keep was given, but there is no dump; the notes say why */
  fa_law law;       /* the law that judged the case */
  fa_tensor_bits law_broken; /* bit 1 << fa_tensor_id: this tensor breaks it */
  fa_tensor_bits law_nan;    /* of these: by a NaN */
  double seconds, seconds_subject, seconds_reference;
  double worst_ratio;
  uint64_t schedule_seed;
  int64_t
      draw; /* of a random case: which draw, after 0 those that the backend supports (fuzz/generate/within.h) */
  fa_tensor_bits outputs; /* read from a report, which has no verdicts: bit 1 << id, it was judged */
  unsigned
      traps; /* bits 1 << fa_trap (report/untrusted/traps.h): those that the subject, untrusted, was tried with */
  fa_sampled sampled;
  fa_judged_how judged;
  int n_explanations;
  fa_explanation explanation[FA_EXPLANATIONS];
  fa_map *map[FA_T_COUNT]; /* owned: where verdict i is wrong; NULL: it is not, or nobody wants to see it */
  bool maps_left_out;      /* it had maps, and there are enough of them */
  int n_verdicts;
  fa_verdict verdict[FA_T_COUNT];
  bool end_to_end[FA_T_COUNT]; /* gradient verdict i was judged from the reference's forward, not the
                                  subject's */
  char dump[512];              /* path of the dumped tensors, "" = none */
} fa_result;

/* Why a random case was skipped that proves nothing of any kernel. It counts for nobody's coverage, and against nobody's. */
#define FA_REASON_VACUOUS "drawn at random, and its bounds would let a trivially wrong answer pass"
bool fa_result_proves_nothing(const fa_result *r);

void fa_result_init(fa_result *r);
void fa_result_free(fa_result *r);
void fa_result_drop_maps(fa_result *r);

/* Results by kernel, sorted by name. */
#define FA_KERNEL_ROWS 32
#define FA_NO_KERNEL "no kernel named" /* skipped, crashed, refused, or a program that does not say */
typedef struct fa_kernel_row {
  char name[64]; /* the name without arguments: "hopper_forward" */
  int64_t passed, failed, skipped, error, waived;
} fa_kernel_row;
typedef struct fa_kernel_counts {
  int n;
  fa_kernel_row row[FA_KERNEL_ROWS]; /* the last is "other kernels" if there are more */
} fa_kernel_counts;

/* Counts of results, and the reasons of the skipped ones. */
#define FA_SKIP_REASONS 32
typedef struct fa_summary {
  int64_t total, passed, failed, skipped, error, waived;
  int64_t known;             /* of the waived: in the baseline */
  int64_t malformed;         /* of the errors */
  int64_t backward_left_out; /* of the judged ones */
  int64_t sampled;           /* of these: only in a sample of their places */
  fa_judged_counts judged;   /* by whom, where a GPU was asked */
  int n_reasons;
  struct {
    char text[160];
    int64_t n;
  } reason[FA_SKIP_REASONS]; /* the last one collects "other reasons" */
  fa_kernel_counts kernels;
} fa_summary;

void fa_summary_add(fa_summary *s, const fa_result *r);
/* 1 after a failure, 3 after an error of the world, 2 after a malformed case, 4 if nothing was judged, else
 * 0. A waived failure was judged. */
int fa_summary_exit_code(const fa_summary *s);

#endif
