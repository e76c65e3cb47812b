#include "fuzz/coverage/table.h"

#include <stdio.h>
#include <string.h>

const char *fa_bias_kind_name(fa_bias_kind kind) {
  static const char *const names[FA_COVER_N_KINDS] = {
      [FA_COVER_LENGTHS] = "lengths", [FA_COVER_VARLEN] = "variable length",
      [FA_COVER_MASKS] = "masks",     [FA_COVER_LAYOUT] = "layout",
      [FA_COVER_OFFSETS] = "offsets", [FA_COVER_DATA] = "data",
      [FA_COVER_MEMORY] = "memory",   [FA_COVER_REPETITION] = "repetition",
      [FA_COVER_HEADS] = "heads",     [FA_COVER_DROPOUT] = "dropout",
      [FA_COVER_CACHE] = "cache",     [FA_COVER_SPLITS] = "splits",
      [FA_COVER_SCORES] = "scores"};
  FA_ASSERT(kind > 0 && kind < FA_COVER_N_KINDS);
  return names[kind];
}

void fa_coverage_see(fa_coverage *v, fa_bias_kind kind, int64_t expected, const char *name, bool has) {
  /* Every case names all features in the same order, so it nearly always is the row after the last one. */
  int k = v->next < v->n_rows && strcmp(v->row[v->next].name, name) == 0 ? v->next : 0;
  while (k < v->n_rows && strcmp(v->row[k].name, name) != 0) ++k;
  if (k == v->n_rows) {
    FA_ASSERT(v->n_rows < FA_MAX_FEATURES && strlen(name) < sizeof v->row[0].name);
    fa_coverage_row *row = &v->row[v->n_rows++];
    *row = (fa_coverage_row){.kind = kind, .expected = expected};
    snprintf(row->name, sizeof row->name, "%s", name);
  }
  v->row[k].n += has;
  v->next = k + 1;
}

void fa_coverage_see_number(fa_coverage *v, fa_bias_kind kind, int64_t expected, const char *name,
                            int64_t number, bool has) {
  char text[sizeof v->row[0].name];
  snprintf(text, sizeof text, "%s%lld", name, (long long)number);
  fa_coverage_see(v, kind, expected, text, has);
}

void fa_coverage_add(fa_coverage *v, const fa_case *c) {
  v->next = 0;
  fa_coverage_problem(v, &c->problem);
  fa_coverage_memory(v, c);
  ++v->n_cases;
}

void fa_coverage_print(FILE *out, const fa_coverage *v) {
  fprintf(out, "coverage: %lld cases\n", (long long)v->n_cases);
  for (int kind = 1; kind < FA_COVER_N_KINDS; ++kind) {
    fprintf(out, "  %s\n", fa_bias_kind_name((fa_bias_kind)kind));
    for (int k = 0; k < v->n_rows; ++k)
      if ((int)v->row[k].kind == kind) fprintf(out, "  %9lld  %s\n", (long long)v->row[k].n, v->row[k].name);
  }
}
