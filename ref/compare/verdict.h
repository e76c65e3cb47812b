/* The verdict on one output tensor: every element against its bound, statistics over all of them, where the
 * bad ones are, and whether the check could have failed at all. */
#ifndef FA_REF_COMPARE_VERDICT_H
#define FA_REF_COMPARE_VERDICT_H

#include "cases/arithmetic/profile.h"
#include "cases/vocabulary/problem.h"
#include "ref/engine/want.h"

#define FA_WORST_POINTS 10
#define FA_WHERE_TEXT 256

/* One element. err and bound are in the tensor's own unit; ratio = err / bound (inf when bound is 0 and err
 * is not). */
typedef struct fa_point {
  int64_t index[FA_MAX_RANK];
  uint64_t got_bits,
      poison; /* raw element bits; poison: 1 if they are still the poison pattern (nobody wrote it) */
  double got, want, err, bound, ratio;
  double quant, accum, half_ulp; /* the bound's parts */
  bool class_bad;                /* NaN/Inf class differs */
} fa_point;

/* Which statistic over all errors of a tensor left its band. */
typedef enum fa_statistic {
  FA_STATISTIC_FINE = 0,
  FA_STATISTIC_RMS_HIGH, /* errors too large together */
  FA_STATISTIC_RMS_LOW,  /* too small: more exact than the arithmetic that the kernel claims */
  FA_STATISTIC_BIAS,     /* one-sided */
  FA_N_STATISTICS
} fa_statistic;

typedef struct fa_axis_note { /* what the bad elements have in common along one axis */
  char axis[16];              /* "b", "q", "k", "h", "d" */
  char text[96];              /* "q % 64 == 63", "h == 1", "k >= 128", ... ; "" = nothing in common */
} fa_axis_note;

typedef struct fa_verdict {
  fa_tensor_id id;
  int rank;       /* of the tensor: how many entries of a point's index[] are used */
  fa_dtype dtype; /* of the subject's tensor */
  bool judged;
  int64_t count, bad, class_bad, unwritten;
  double worst_ratio; /* over all finite pairs; inf if class_bad */
  int n_worst;
  fa_point worst[FA_WORST_POINTS]; /* worst first */
  char where[FA_WHERE_TEXT];       /* "every bad row has q % 64 == 63 in head 1"; "" when nothing is bad */
  fa_axis_note by_axis[FA_MAX_RANK];
  /* Second tier: err / sigma over elements with sigma > 0, where sigma^2 = ulp^2/12 + 0.18 noise^2 +
   * (accum/3)^2. */
  int64_t n_stat;
  double rms, bias; /* root mean square and mean of err / sigma (signed) */
  bool stat_bad;    /* rms or bias left its band (only judged for generic fills and n_stat >= 4096) */
  fa_statistic stat_which;
  int64_t stat_count; /* elements that the statistic is of; 0 unless stat_bad, as all of these */
  double stat_value, stat_low,
      stat_high; /* the statistic, and the band that it left: chance is allowed for */
  bool
      finer; /* a foreign subject's errors are below the lower edge: no fault, but its profile is too coarse */
  char finer_why[160]; /* which edge, and what would fit; "" unless finer */
  double tightness; /* median over rows of max bound in the row / scale of the row: how blind the check is */
  char vacuous[96]; /* "" or the trivially wrong answer that the bound would let pass: "all zeros", "mean of
                        V", ... */
  bool fail;        /* bad, class_bad, or stat_bad */
} fa_verdict;

/* For people, "" or NULL unless v->stat_bad: what the errors are like ("the errors are systematically low"); the
 * statistic and its band; what would do that. Each is part of a sentence. */
#define FA_STATISTIC_TEXT 160
const char *fa_statistic_name(fa_statistic s); /* "rms_high", ..., in reports */
const char *fa_statistic_finding(const fa_verdict *v);
void fa_statistic_figures(const fa_verdict *v, char text[FA_STATISTIC_TEXT]);
const char *fa_statistic_meaning(const fa_verdict *v);

typedef struct fa_compare_options {
  fa_poison poison; /* which poison the output held before the run */
  bool generic;
  bool judge_stats; /* tier 2 counts toward fail */
  bool recorded;    /* from a file: of dropout's matrix, zeros have lost their signs (ref/cuda/try.h) */
  bool foreign;     /* not one of the project's kernels: to be more exact than its profile is no fault */
  const fa_profile *profile; /* the kernel's arithmetic: chooses the statistics' bands and the vacuity check's
                                floor; NULL = the widest */
  double slack;              /* bounds are multiplied by 1 + slack; 0 = the default, 2^-6 */
  double
      doubt; /* how far bounds may be off, relative (ref/cuda/try.h): statistics must then be inside their bands
                   by a hundredth. 0: not at all */
} fa_compare_options;

/* got has want's shape (else FA_ERR_INPUT) and any strides. in: pristine inputs, because some trivially wrong
 * answers are computed from V. A want with n == 0 is not judged. An element whose want is NaN is not
 * compared. Wants without bounds are judged exactly, and only for P_DEBUG (by sign bit) and DROPOUT_KEEP. */
fa_status fa_compare_tensor(fa_tensor_id id, const fa_problem *p, const fa_tensors *in, const fa_want *want,
                            const fa_tensor *got, const fa_compare_options *opt, fa_verdict *out,
                            fa_error *err);

#endif
