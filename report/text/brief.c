#include "report/text/brief.h"

#include "report/printed.h"
#include "report/text/words.h"

#include <stdlib.h>
#include <string.h>

/* ---- which tensor is shown ---- */

static bool is_wrong(const fa_verdict *v) {
  return v->fail || v->vacuous[0];
}

/* Outputs stand in the order in which a call makes them, so that the first with a wrong element is nearest to the
 * cause. -1: none is wrong. */
static int find_shown(const fa_result *r) {
  int shown = -1;
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (v->fail && v->bad > 0) return i;
    if (is_wrong(v) && (shown < 0 || (v->fail && !r->verdict[shown].fail))) shown = i;
  }
  return shown;
}

/* ---- what is wrong, and where ---- */

/* Text that ends with counts: "every bad row has q >= 128: 4096 of 8192 elements there". */
static void print_counts(FILE *out, const char *text) {
  while (*text) {
    const size_t n = strspn(text, "0123456789");
    char digits[FA_COUNT_TEXT];
    if (n > 0 && n < 19)
      fputs(fa_count_text(strtoll(text, NULL, 10), digits), out);
    else
      fwrite(text, 1, n > 0 ? n : 1, out);
    text += n > 0 ? n : 1;
  }
}

/* How many elements are bad is said already: of "17 of 90 elements, all over" only the end is news. */
static void print_where(FILE *out, const fa_verdict *v) {
  const char *counts = strstr(v->where, ": "), *after = strstr(v->where, " elements, ");
  if (strncmp(v->where, "every ", 6) != 0) {
    if (after) fprintf(out, ", %s", after + strlen(" elements, "));
    if (!after && counts) fprintf(out, ": %s", counts + 2);
    return;
  }
  fprintf(out, "; %.*s", counts ? (int)(counts - v->where) : -1, v->where);
  if (counts) print_counts(out, counts);
}

static void print_wrong(FILE *out, const fa_result *r, int i) {
  const fa_verdict *v = &r->verdict[i];
  char bad[FA_COUNT_TEXT], count[FA_COUNT_TEXT];
  fprintf(out, "%s%s", fa_tensor_id_name(v->id), r->end_to_end[i] ? " (end to end)" : "");
  if (!v->fail) {
    fprintf(out, ": the bound would let pass: %s", v->vacuous);
    return;
  }
  if (v->bad == 0 && v->stat_bad) {
    fprintf(out, ": no element is out of bounds, but %s", fa_statistic_finding(v));
    return;
  }
  fprintf(out, ": %s of %s bad", fa_count_text(v->bad, bad), fa_count_text(v->count, count));
  if (v->class_bad)
    fprintf(out, ", %s NaN/Inf where they must not be or missing", fa_count_text(v->class_bad, count));
  if (v->unwritten) fprintf(out, ", %s never written", fa_count_text(v->unwritten, count));
  print_where(out, v);
}

static void print_others(FILE *out, const fa_result *r, int shown) {
  const char *separator = "; also ";
  bool end_to_end = false;
  for (int i = 0; i < r->n_verdicts; ++i) {
    if (i == shown || !is_wrong(&r->verdict[i])) continue;
    fprintf(out, "%s%s", separator, fa_tensor_id_name(r->verdict[i].id));
    separator = ", ";
    end_to_end |= r->end_to_end[i];
  }
  if (end_to_end) fputs(" (gradients end to end)", out);
}

static void print_what(FILE *out, const fa_result *r, int shown) {
  if (shown < 0) return;
  fputs("    ", out);
  print_wrong(out, r, shown);
  print_others(out, r, shown);
  fputc('\n', out);
}

/* ---- what explains it ---- */

static void print_tensors(FILE *out, fa_tensor_bits tensors) {
  const char *separator = " of ";
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!(tensors >> id & 1)) continue;
    fprintf(out, "%s%s", separator, fa_tensor_id_name((fa_tensor_id)id));
    separator = ", ";
  }
}

static fa_tensor_bits failed_tensors(const fa_result *r) {
  fa_tensor_bits failed = 0;
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].fail) failed |= FA_TENSOR_BIT(r->verdict[i].id);
  return failed;
}

/* By definition no wrong element is within the bounds of what was asked for. Several explain equally well: the
 * figures are the first one's. */
void fa_brief_print_explanation(FILE *out, const fa_result *r) {
  const fa_explanation *first = &r->explanation[0];
  char count[FA_COUNT_TEXT];
  if (r->n_explanations == 0) return;
  fputs("    explained by: ", out);
  fa_print_clean(out, first->text);
  fprintf(out, " (%.4g %% of %s elements", 100 * first->share, fa_count_text(first->wrong, count));
  if (first->tensors != failed_tensors(r)) print_tensors(out, first->tensors);
  fprintf(out, "%s within bounds; without it 0 %%)", first->sampled ? " looked at" : "");
  for (int i = 1; i < r->n_explanations; ++i) {
    fputs(i == 1 ? "; just as well by: " : "; ", out);
    fa_print_clean(out, r->explanation[i].text);
  }
  fputc('\n', out);
}

/* Notes that say what was left out help nobody to understand what is wrong. */
static bool is_about_what_is_left_out(const char *note) {
  static const char *const beginnings[] = {"backward not judged", "not delivered"};
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; ++i)
    if (strncmp(note, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return false;
}

/* Without an explanation, a note such as "lse seems to be in base 2" is the nearest to one. */
static void print_hints(FILE *out, const fa_result *r) {
  const char *separator = "    note: ";
  for (const char *note = r->notes, *end; *note; note = *end ? end + 2 : end) {
    char text[sizeof r->notes];
    end = strstr(note, "; ");
    if (!end) end = note + strlen(note);
    if (is_about_what_is_left_out(note)) continue;
    snprintf(text, sizeof text, "%.*s", (int)(end - note), note);
    fputs(separator, out);
    fa_print_clean(out, text);
    separator = "; ";
  }
  if (separator[0] == ';') fputc('\n', out);
}

/* ---- the worst element and its bound, or the statistic ---- */

/* "(b,q,h,d)"; nothing where the tensor's axes are not those of the description, as with variable length. */
static void print_axes(FILE *out, const fa_verdict *v) {
  int n = 0;
  while (n < FA_MAX_RANK && v->by_axis[n].axis[0]) ++n;
  for (int a = 0; n == v->rank && a < n; ++a) fprintf(out, "%s%s", a ? "," : " (", v->by_axis[a].axis);
  if (n > 0 && n == v->rank) fputc(')', out);
}

static void print_worst(FILE *out, const fa_verdict *v) {
  const fa_point *w = &v->worst[0];
  char index[128], got[FA_PAIR_TEXT], want[FA_PAIR_TEXT];
  if (v->n_worst == 0) return;
  fa_index_text(w->index, v->rank, index, sizeof index);
  fa_pair_text(w->got, w->want, got, want);
  fprintf(out, "    worst: %s%s", fa_tensor_id_name(v->id), index);
  print_axes(out, v);
  if (w->poison)
    fputs(" was never written", out);
  else
    fprintf(out, " got %s", got);
  fprintf(out, ", want %s\n", want);
}

static void print_bound(FILE *out, const fa_verdict *v) {
  const fa_point *w = &v->worst[0];
  if (v->n_worst == 0 || w->class_bad) return;
  if (!(w->bound > 0)) {
    fprintf(out, "    bound: err %.4g, and none is allowed\n", w->err);
    return;
  }
  fprintf(out, "    bound: err %.4g is %.4g times the bound %.4g (quant %.4g + accum %.4g + half ulp %.4g)\n",
          w->err, w->ratio, w->bound, w->quant, w->accum, w->half_ulp);
}

static void print_statistic(FILE *out, const fa_verdict *v) {
  char figures[FA_STATISTIC_TEXT];
  fa_statistic_figures(v, figures);
  fprintf(out, "    statistic: %s\n    means: %s\n", figures, fa_statistic_meaning(v));
}

void fa_brief_print(FILE *out, const fa_result *r, const fa_line_style *style) {
  const int shown = find_shown(r);
  print_what(out, r, shown);
  if (r->waived) return;
  fa_brief_print_explanation(out, r);
  if (r->n_explanations == 0) print_hints(out, r);
  if (shown >= 0 && r->verdict[shown].bad > 0) {
    print_worst(out, &r->verdict[shown]);
    print_bound(out, &r->verdict[shown]);
  } else if (shown >= 0 && r->verdict[shown].stat_bad) {
    print_statistic(out, &r->verdict[shown]);
  }
  if (!style->program) return;
  fputs("    repro: ", out);
  fa_print_repro(out, r, style);
  fputc('\n', out);
}
