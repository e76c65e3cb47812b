#include "report/printed.h"
#include "report/sampling/record.h"
#include "report/text/brief.h"
#include "report/text/words.h"

#include <string.h>

static const char *state_color(fa_state s) {
  if (s == FA_PASS) return "\033[32m";
  if (s == FA_SKIP) return "\033[33m";
  return "\033[31m";
}

static const char *passes_text(unsigned passes) {
  static const char *const text[4] = {"-", "fwd", "bwd", "fwd+bwd"};
  return text[passes & 3];
}

/* "dq: 3 of 8192 bad (1 of them NaN/Inf), worst ratio 812 at [0,17,2,5] got 0.25 want 0.5; every bad row ..."
 */
static void print_verdict_headline(FILE *out, const fa_verdict *v, bool end_to_end) {
  fprintf(out, "%s%s: %lld of %lld bad", fa_tensor_id_name(v->id), end_to_end ? " (end to end)" : "",
          (long long)v->bad, (long long)v->count);
  if (v->class_bad) fprintf(out, ", %lld NaN/Inf where they must not be or missing", (long long)v->class_bad);
  if (v->unwritten) fprintf(out, ", %lld never written", (long long)v->unwritten);
  if (v->n_worst > 0 && (v->bad || v->class_bad)) {
    const fa_point *w = &v->worst[0];
    char index[128], got[FA_PAIR_TEXT], want[FA_PAIR_TEXT];
    fa_index_text(w->index, v->rank, index, sizeof index);
    fa_pair_text(w->got, w->want, got, want);
    fprintf(out, ", worst ratio %.4g at %s got %s want %s", w->ratio, index, got, want);
  }
  if (v->where[0]) fprintf(out, "; %s", v->where);
  if (v->stat_bad) fprintf(out, "; error statistics off: rms %.4g, bias %.4g", v->rms, v->bias);
}

static void print_headline(FILE *out, const fa_result *r) {
  const char *separator = "  ";
  if (r->reason[0]) {
    fputs(separator, out);
    fa_print_clean(out, r->reason);
    separator = "; ";
  }
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (!v->fail) continue;
    fputs(separator, out);
    print_verdict_headline(out, v, r->end_to_end[i]);
    separator = "; ";
  }
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (!v->vacuous[0]) continue;
    fprintf(out, "%s%s: the bound would let pass: %s", separator, fa_tensor_id_name(v->id), v->vacuous);
    separator = "; ";
  }
}

static void print_point(FILE *out, const fa_verdict *v, const fa_point *w) {
  char index[128], got[FA_PAIR_TEXT], want[FA_PAIR_TEXT];
  fa_index_text(w->index, v->rank, index, sizeof index);
  fa_pair_text(w->got, w->want, got, want);
  int digits = (int)fa_dtype_size(v->dtype) * 2;
  fprintf(out,
          "      %s  got %s (0x%0*llx)  want %s  err %.4g  bound %.4g = quant %.4g + accum %.4g + "
          "half-ulp %.4g",
          index, got, digits, (unsigned long long)w->got_bits, want, w->err, w->bound, w->quant, w->accum,
          w->half_ulp);
  if (w->class_bad) fputs("  (NaN/Inf class)", out);
  if (w->poison) fputs("  (never written)", out);
  fputc('\n', out);
}

static void print_statistic(FILE *out, const fa_verdict *v) {
  char figures[FA_STATISTIC_TEXT];
  if (!v->stat_bad || v->bad > 0) return; /* beside wrong elements it says nothing new */
  fa_statistic_figures(v, figures);
  fprintf(out, "      %s: %s; %s\n", fa_statistic_finding(v), figures, fa_statistic_meaning(v));
}

/* Whether mistakes were looked for that would give the wrong elements. */
static bool has_wrong_elements(const fa_result *r) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].fail && r->verdict[i].bad > 0) return true;
  return false;
}

static void print_details(FILE *out, const fa_result *r, const fa_line_style *style) {
  fa_brief_print_explanation(out, r);
  if (r->n_explanations == 0 && !style->unasked && has_wrong_elements(r)) fputs("    not explained\n", out);
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (!v->fail) continue;
    fprintf(out, "    %s%s\n", fa_tensor_id_name(v->id), v->where[0] ? ":" : "");
    if (v->where[0]) fprintf(out, "      %s\n", v->where);
    for (int k = 0; k < v->n_worst; ++k)
      if (v->worst[k].class_bad || !(v->worst[k].ratio <= 1)) print_point(out, v, &v->worst[k]);
    print_statistic(out, v);
  }
  if (r->dump[0]) fprintf(out, "    tensors: %s\n", r->dump);
}

static void print_statistics(FILE *out, const fa_result *r) {
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    fprintf(out, "    %-8s%s worst ratio %.4g, tightness %.4g", fa_tensor_id_name(v->id),
            r->end_to_end[i] ? " (end to end)" : "", v->worst_ratio, v->tightness);
    if (v->n_stat) fprintf(out, ", rms %.4g, bias %.4g over %lld", v->rms, v->bias, (long long)v->n_stat);
    fputc('\n', out);
  }
}

/* What scripts read of every result: state, name, backend, passes, worst ratio, time. */
static void print_head(FILE *out, const fa_result *r, const fa_line_style *style) {
  if (style->color) fputs(state_color(r->waived ? FA_SKIP : r->state), out);
  fputs(r->known ? "KNOWN" : r->waived ? "WAIVED" : fa_state_name(r->state), out);
  if (style->color) fputs("\033[0m", out);
  fputc(' ', out);
  fa_print_clean(out, r->name && r->name[0] ? r->name : "(unnamed)");
  fprintf(out, "  %s", r->backend);
  if (r->state != FA_SKIP) {
    fprintf(out, "  %s", passes_text(r->passes));
    if (r->n_verdicts) fprintf(out, "  r=%.4g", r->worst_ratio);
    fprintf(out, "  %.0f ms", r->seconds * 1e3);
  }
  if (r->waived) fprintf(out, "  %s", fa_state_name(r->state));
  char sampled[FA_SAMPLED_TEXT];
  fa_sampled_text(&r->sampled, sampled);
  if (sampled[0]) fprintf(out, "  %s", sampled);
}

static void print_labelled(FILE *out, const char *label, const char *text) {
  if (!text[0]) return;
  fputs(label, out);
  fa_print_clean(out, text);
}

static void print_good(FILE *out, const fa_result *r, const fa_line_style *style) {
  print_head(out, r, style);
  print_headline(out, r);
  print_labelled(out, "  ", r->waiver);
  if (style->verbosity > 0) print_labelled(out, "  note: ", r->notes);
  fputc('\n', out);
}

static void print_brief(FILE *out, const fa_result *r, const fa_line_style *style) {
  print_head(out, r, style);
  print_labelled(out, "  ", r->reason);
  print_labelled(out, "  ", r->waiver);
  print_labelled(out, "  tensors: ", r->dump);
  fputc('\n', out);
  if (!r->known) fa_brief_print(out, r, style);
}

static void print_full(FILE *out, const fa_result *r, const fa_line_style *style) {
  fa_line_style whole = *style;
  whole.report = NULL; /* the command needs no file then */
  print_head(out, r, style);
  print_headline(out, r);
  print_labelled(out, "  ", r->waiver);
  print_labelled(out, "  note: ", r->notes);
  if (style->program) fputs("  repro: ", out);
  if (style->program) fa_print_repro(out, r, &whole);
  fputc('\n', out);
  print_details(out, r, style);
}

void fa_line_print(FILE *out, const fa_result *r, const fa_line_style *style) {
  const bool good = r->state == FA_PASS || r->state == FA_SKIP;
  if ((good || r->known) && style->verbosity < 0) return;
  if (good)
    print_good(out, r, style);
  else if (style->verbosity > 0)
    print_full(out, r, style);
  else
    print_brief(out, r, style);
  if (style->verbosity > 0) print_statistics(out, r);
}

/* "kernel flash_forward: passed:12 failed:0 skipped:0 error:0" */
static void print_kernels(FILE *out, const fa_kernel_counts *kernels) {
  if (kernels->n == 1 && strcmp(kernels->row[0].name, FA_NO_KERNEL) == 0) return;
  for (int i = 0; i < kernels->n; ++i) {
    const fa_kernel_row *k = &kernels->row[i];
    fputs("kernel ", out);
    fa_print_clean(out, k->name);
    fprintf(out, ": passed:%lld failed:%lld skipped:%lld error:%lld", (long long)k->passed,
            (long long)k->failed, (long long)k->skipped, (long long)k->error);
    if (k->waived) fprintf(out, " waived:%lld", (long long)k->waived);
    fputc('\n', out);
  }
}

void fa_line_summary(FILE *out, const fa_summary *s, const fa_line_style *style) {
  if (style->verbosity > 0) {
    for (int i = 0; i < s->n_reasons; ++i)
      fprintf(out, "skipped %lld: %s\n", (long long)s->reason[i].n, s->reason[i].text);
    print_kernels(out, &s->kernels);
  }
  if (s->backward_left_out && style->verbosity >= 0)
    fprintf(out, "only the forward pass judged: %lld (-v says why)\n", (long long)s->backward_left_out);
  char judged[FA_JUDGED_TEXT];
  fa_judged_text(&s->judged, judged);
  if (judged[0] && style->verbosity >= 0) fprintf(out, "%s\n", judged);
  fprintf(out, "tests:%lld passed:%lld failed:%lld skipped:%lld error:%lld", (long long)s->total,
          (long long)s->passed, (long long)s->failed, (long long)s->skipped, (long long)s->error);
  if (s->waived > s->known) fprintf(out, " waived:%lld", (long long)(s->waived - s->known));
  if (s->known) fprintf(out, " known:%lld", (long long)s->known);
  if (s->sampled) fprintf(out, " sampled:%lld", (long long)s->sampled);
  fputc('\n', out);
}
