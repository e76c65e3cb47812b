#include "report/text/words.h"

#include <stdlib.h>
#include <string.h>

void fa_pair_text(double got, double want, char got_text[FA_PAIR_TEXT], char want_text[FA_PAIR_TEXT]) {
  for (int digits = 4; digits <= 17; ++digits) {
    snprintf(got_text, FA_PAIR_TEXT, "%.*g", digits, got);
    snprintf(want_text, FA_PAIR_TEXT, "%.*g", digits, want);
    if (strcmp(got_text, want_text) != 0 || got == want) return;
  }
}

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

/* "out.json:3" as one word for the shell. */
static void print_failure_word(FILE *out, const fa_line_style *style) {
  const size_t n = strlen(style->report) + 24;
  char *word = malloc(n);
  if (word) snprintf(word, n, "%s:%lld", style->report, (long long)style->number);
  fa_print_shell_word(out, word ? word : style->report);
  free(word);
}

void fa_print_sample(FILE *out, const fa_sample *s) {
  char text[FA_SAMPLE_TEXT];
  if (!fa_sample_is_asked(s)) return;
  fa_sample_text(s, text);
  fprintf(out, " --sample %s", text);
}

void fa_print_repro(FILE *out, const fa_result *r, const fa_line_style *style) {
  fa_print_shell_word(out, style->program);
  if (r->file[0]) {
    char filter[300];
    regex_for_name(r->name ? r->name : "", filter, sizeof filter);
    fputs(strcmp(r->backend, "golden") == 0 ? " golden check " : " check ", out);
    fa_print_shell_word(out, r->file);
    fputs(" --filter ", out);
    fa_print_shell_word(out, filter);
    fa_print_sample(out, &r->sampled.asked);
    return;
  }
  if (style->report) {
    fputs(" repro ", out);
    print_failure_word(out, style);
    return;
  }
  fprintf(out, " run %s%s--backend ", style->mode ? style->mode : "", style->mode ? " " : "");
  fa_print_shell_word(out, r->backend);
  if (r->schedule_seed) fprintf(out, " --schedule-seed %llu", (unsigned long long)r->schedule_seed);
  fa_print_sample(out, &r->sampled.asked);
  fputs(" --case ", out);
  fa_print_shell_word(out, r->case_line ? r->case_line : "{}");
}
