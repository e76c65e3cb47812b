/* Number formats as hypotheses: what a value becomes in each, and which of them explains a set of answers. */
#ifndef FA_FUZZ_PROBE_FORMAT_H
#define FA_FUZZ_PROBE_FORMAT_H

#include "fuzz/probe/ask.h"

int probe_fraction_bits(fa_format f, fa_dtype io); /* stored fraction bits; of F32 and 3XTF32: 23 */
const char *probe_format_name(fa_format f);
/* IO instead of the 16-bit element type. */
fa_format probe_io_format(fa_format f, fa_dtype io);
double probe_round(double x, fa_format f, fa_rounding how, fa_dtype io);

/* One operand's way: rounded so, after a multiplication by scale. */
typedef struct probe_rounding {
  fa_format format;
  fa_rounding how;
  double scale;
  bool normalised; /* P divided by its sum before it is rounded */
} probe_rounding;

/* An answer: factor (v1 A(u) + v0 A(w)), where A rounds. normalised_*: the same if P is divided first. */
typedef struct probe_sample {
  double u, w, factor;
  double normalised_u, normalised_w, normalised_factor;
  double v1, v0, got;
  int row;
} probe_sample;

/* The hypothesis that explains most rows, and how many of n_rows it explains: every sample of the row within the
 * output's own rounding. others: how many the next best one of another kind explains. normalised: also try that. */
typedef struct probe_match {
  probe_rounding best;
  int rows, best_rows, other_rows;
  probe_rounding other;
} probe_match;
probe_match probe_explain(const probe *x, const probe_sample *sample, int n, int n_rows, bool normalised);
/* "bf16", "e4m3 x 256, truncated" ... */
void probe_rounding_text(const probe_rounding *r, fa_dtype io, char *text, size_t size);

#endif
