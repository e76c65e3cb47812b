/* What a predicate holds for, what it costs, and how it is said. */
#include "report/causes/features.h"
#include "report/causes/fit.h"

#include <math.h>
#include <stdio.h>

enum { OTHERS_PER_FAILURE = 8 };

/* Bits to say which of a + b cases are the a. */
static double entropy(double a, double b) {
  if (a <= 0 || b <= 0) return 0;
  return a * log2((a + b) / a) + b * log2((a + b) / b);
}

double fa_predicate_cost(const fa_fit *f, int bits, int64_t inside, int64_t other_failures, double others) {
  const double elsewhere = (double)(fa_cause_rows_failing(f->rows) - f->n_group);
  const double in = others + (double)other_failures / OTHERS_PER_FAILURE;
  const double all = (double)fa_cause_rows_passing(f->rows) + elsewhere / OTHERS_PER_FAILURE;
  return bits + entropy((double)inside, in) + entropy((double)(f->n_group - inside), all - in);
}

void fa_fit_evaluate(const fa_fit *f, fa_predicate *p) {
  const int64_t n_failing = fa_cause_rows_failing(f->rows), n_passing = fa_cause_rows_passing(f->rows);
  const int64_t f_words = FA_WORDS_OF(n_failing);
  int bits = 0;
  p->failing = p->others = p->other_failures = 0;
  for (int i = 0; i < p->n; ++i) bits += p->literal[i]->bits;
  for (int64_t w = 0; w < f_words; ++w) {
    uint64_t in = w + 1 < f_words || n_failing % 64 == 0 ? ~UINT64_C(0) : (UINT64_C(1) << n_failing % 64) - 1;
    for (int i = 0; i < p->n; ++i) in &= p->literal[i]->failing[w];
    p->failing += __builtin_popcountll(in & f->group[w]);
    p->other_failures += __builtin_popcountll(in & ~f->group[w]);
  }
  for (int64_t w = 0; p->n > 0 && w < FA_WORDS_OF(n_passing); ++w) {
    uint64_t in = ~UINT64_C(0);
    for (int i = 0; i < p->n; ++i) in &= p->literal[i]->passing[w];
    p->others += __builtin_popcountll(in);
  }
  if (p->n == 0) p->others = n_passing;
  p->cost = fa_predicate_cost(f, bits, p->failing, p->other_failures, (double)p->others);
}

/* In the order of the table, which is the natural one. */
void fa_predicate_sort(fa_predicate *p) {
  for (int i = 1; i < p->n; ++i)
    for (int k = i; k > 0 && p->literal[k - 1] > p->literal[k]; --k) {
      const fa_literal *l = p->literal[k];
      p->literal[k] = p->literal[k - 1];
      p->literal[k - 1] = l;
    }
}

int fa_fit_alternatives(const fa_fit *f, const fa_predicate *p, fa_predicate *out, int most) {
  const fa_literal *all;
  const int n_all = fa_cause_rows_literals(f->rows, &all);
  int n = 0;
  for (int i = 0; i < p->n; ++i)
    for (int l = 0; l < n_all && n < most; ++l) {
      fa_predicate other = *p;
      bool twice = false;
      other.literal[i] = &all[l];
      for (int k = 0; k < p->n; ++k) twice |= p->literal[k]->feature == all[l].feature;
      if (twice) continue;
      fa_fit_evaluate(f, &other);
      if (other.failing != p->failing || other.others != p->others ||
          other.other_failures != p->other_failures)
        continue;
      fa_predicate_sort(&other);
      out[n++] = other;
    }
  return n;
}

double fa_predicate_precision(const fa_predicate *p) {
  return p->failing > 0 ? (double)p->failing / (double)(p->failing + p->others) : 0;
}

bool fa_predicate_holds(const fa_predicate *p, int64_t failing_case) {
  for (int i = 0; i < p->n; ++i)
    if (!fa_bit(p->literal[i]->failing, failing_case)) return false;
  return true;
}

void fa_predicate_say(const fa_cause_rows *rows, const fa_predicate *p, int literal, char *text,
                      size_t size) {
  bool uneven = false;
  for (int64_t i = 0; i < fa_cause_rows_failing(rows) && !uneven; ++i)
    uneven = fa_cause_rows_uneven(rows, i) && fa_predicate_holds(p, i);
  if (uneven)
    fa_cause_say_of_many(p->literal[literal]->text, text, size);
  else
    snprintf(text, size, "%s", p->literal[literal]->text);
}

void fa_predicate_text(const fa_cause_rows *rows, const fa_predicate *p, char *text, size_t size) {
  char one[160];
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < p->n && used < size; ++i) {
    fa_predicate_say(rows, p, i, one, sizeof one);
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " && " : "", one);
  }
}
