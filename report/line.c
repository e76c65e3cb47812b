#include "report/line.h"

#include <math.h>
#include <string.h>

static bool is_plain_word(const char *word) {
  if (!*word) return false;
  for (const char *c = word; *c; ++c) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                 strchr("-_./:+=,@%", *c);
    if (!plain) return false;
  }
  return true;
}

void fa_print_shell_word(FILE *out, const char *word) {
  if (is_plain_word(word)) {
    fputs(word, out);
    return;
  }
  fputc('\'', out);
  for (const char *c = word; *c; ++c) {
    if (*c == '\'')
      fputs("'\\''", out);
    else
      fputc(*c, out);
  }
  fputc('\'', out);
}

void fa_index_text(const int64_t *index, int rank, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int a = 0; a < rank && used < size; ++a)
    used += (size_t)snprintf(text + used, size - used, "%s%lld", a ? "," : "[", (long long)index[a]);
  if (used < size) snprintf(text + used, size - used, rank ? "]" : "[]");
}

static const char *state_color(fa_state s) {
  if (s == FA_PASS) return "\033[32m";
  if (s == FA_SKIP) return "\033[33m";
  return "\033[31m";
}

static const char *passes_text(unsigned passes) {
  static const char *const text[4] = {"-", "fwd", "bwd", "fwd+bwd"};
  return text[passes & 3];
}

/* Case names come from the user: with control characters one could forge lines. */
static void print_clean(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c)
    fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
}

static void print_ratio(FILE *out, const char *label, double x) {
  fprintf(out, "%s%.3g", label, x);
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
    char index[128];
    fa_index_text(w->index, v->rank, index, sizeof index);
    fprintf(out, ", worst ratio %.3g at %s got %.9g want %.9g", w->ratio, index, w->got, w->want);
  }
  if (v->where[0]) fprintf(out, "; %s", v->where);
  if (v->stat_bad) fprintf(out, "; error statistics off: rms %.3g, bias %.3g", v->rms, v->bias);
}

static void print_headline(FILE *out, const fa_result *r) {
  const char *separator = "  ";
  if (r->reason[0]) {
    fputs(separator, out);
    print_clean(out, r->reason);
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

/* The regular expression that matches exactly this name. */
static void regex_for_name(const char *name, char *out, size_t size) {
  size_t n = 0;
  out[n++] = '^';
  for (; *name && n + 4 < size; ++name) {
    if (strchr("\\^$.[]|()*+?{}", *name)) out[n++] = '\\';
    out[n++] = *name;
  }
  if (!*name) out[n++] = '$';
  out[n] = 0;
}

static void print_repro(FILE *out, const fa_result *r, const fa_line_style *style) {
  fputs("  repro: ", out);
  fa_print_shell_word(out, style->program);
  if (r->file[0]) {
    char filter[300];
    regex_for_name(r->name ? r->name : "", filter, sizeof filter);
    fputs(strcmp(r->backend, "golden") == 0 ? " golden check " : " check ", out);
    fa_print_shell_word(out, r->file);
    fputs(" --filter ", out);
    fa_print_shell_word(out, filter);
    return;
  }
  fputs(" run --backend ", out);
  fa_print_shell_word(out, r->backend);
  if (r->schedule_seed) fprintf(out, " --schedule-seed %llu", (unsigned long long)r->schedule_seed);
  fputs(" --case ", out);
  fa_print_shell_word(out, r->case_line ? r->case_line : "{}");
}

static void print_point(FILE *out, const fa_verdict *v, const fa_point *w) {
  char index[128];
  fa_index_text(w->index, v->rank, index, sizeof index);
  int digits = (int)fa_dtype_size(v->dtype) * 2;
  fprintf(out,
          "      %s  got %.9g (0x%0*llx)  want %.9g  err %.3g  bound %.3g = quant %.3g + accum %.3g + "
          "half-ulp %.3g",
          index, w->got, digits, (unsigned long long)w->got_bits, w->want, w->err, w->bound, w->quant,
          w->accum, w->half_ulp);
  if (w->class_bad) fputs("  (NaN/Inf class)", out);
  if (w->poison) fputs("  (never written)", out);
  fputc('\n', out);
}

static void print_details(FILE *out, const fa_result *r) {
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (!v->fail) continue;
    fprintf(out, "    %s%s\n", fa_tensor_id_name(v->id), v->where[0] ? ":" : "");
    if (v->where[0]) fprintf(out, "      %s\n", v->where);
    for (int k = 0; k < v->n_worst; ++k)
      if (v->worst[k].class_bad || !(v->worst[k].ratio <= 1)) print_point(out, v, &v->worst[k]);
  }
  if (r->dump[0]) fprintf(out, "    tensors: %s\n", r->dump);
}

static void print_statistics(FILE *out, const fa_result *r) {
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    fprintf(out, "    %-8s%s worst ratio %.3g, tightness %.3g", fa_tensor_id_name(v->id),
            r->end_to_end[i] ? " (end to end)" : "", v->worst_ratio, v->tightness);
    if (v->n_stat) fprintf(out, ", rms %.3g, bias %.3g over %lld", v->rms, v->bias, (long long)v->n_stat);
    fputc('\n', out);
  }
}

void fa_line_print(FILE *out, const fa_result *r, const fa_line_style *style) {
  bool good = r->state == FA_PASS || r->state == FA_SKIP;
  if (good && style->verbosity < 0) return;
  if (style->color) fputs(state_color(r->waived ? FA_SKIP : r->state), out);
  fputs(r->waived ? "WAIVED" : fa_state_name(r->state), out);
  if (style->color) fputs("\033[0m", out);
  fputc(' ', out);
  print_clean(out, r->name && r->name[0] ? r->name : "(unnamed)");
  fprintf(out, "  %s", r->backend);
  if (r->state != FA_SKIP) {
    fprintf(out, "  %s", passes_text(r->passes));
    if (r->n_verdicts) print_ratio(out, "  r=", r->worst_ratio);
    fprintf(out, "  %.0f ms", r->seconds * 1e3);
  }
  if (r->waived) fprintf(out, "  %s", fa_state_name(r->state));
  print_headline(out, r);
  if (r->waiver[0]) {
    fputs("  ", out);
    print_clean(out, r->waiver);
  }
  if (r->notes[0] && (!good || style->verbosity > 0)) {
    fputs("  note: ", out);
    print_clean(out, r->notes);
  }
  if (!good && style->program) print_repro(out, r, style);
  fputc('\n', out);
  for (int i = 0; i < r->n_explanations; ++i)
    fprintf(out, "    explained by: %s (%.3g %% of %lld elements within bounds; without it 0 %%)\n",
            r->explanation[i].text, 100 * r->explanation[i].share, (long long)r->explanation[i].wrong);
  if (!good) print_details(out, r);
  if (style->verbosity > 0) print_statistics(out, r);
}

/* "kernel flash_forward: passed:12 failed:0 skipped:0 error:0" */
static void print_kernels(FILE *out, const fa_kernel_counts *kernels) {
  if (kernels->n == 1 && strcmp(kernels->row[0].name, FA_NO_KERNEL) == 0) return;
  for (int i = 0; i < kernels->n; ++i) {
    const fa_kernel_row *k = &kernels->row[i];
    fputs("kernel ", out);
    print_clean(out, k->name);
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
  fprintf(out, "tests:%lld passed:%lld failed:%lld skipped:%lld error:%lld", (long long)s->total,
          (long long)s->passed, (long long)s->failed, (long long)s->skipped, (long long)s->error);
  if (s->waived) fprintf(out, " waived:%lld", (long long)s->waived);
  fputc('\n', out);
}
