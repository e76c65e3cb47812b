#include "report/kernels.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <string.h>

/* Kernels that reports and journals of version 0.1 know by another name. */
static const char *const renamed[][2] = {{"kv_forward", "cache_forward"},
                                         {"wide_forward", "memeff_forward"},
                                         {"wide_backward", "memeff_backward"}};

/* "flash_forward" of "flash_forward<f16,64,causal>": with the arguments there would be hundreds of names. */
static void stem_of(const char *kernel, char *out, size_t size) {
  snprintf(out, size, "%.*s", (int)strcspn(kernel, "<"), kernel);
  for (size_t i = 0; i < sizeof renamed / sizeof *renamed; ++i)
    if (strcmp(out, renamed[i][0]) == 0) snprintf(out, size, "%s", renamed[i][1]);
}

/* The row of this name, inserted in order. A program behind exec: may use any names: the last row collects
 * those that do not fit. */
static fa_kernel_row *row_of(fa_kernel_counts *c, const char *name) {
  int at = 0;
  while (at < c->n && strcmp(c->row[at].name, name) < 0) ++at;
  if (at < c->n && strcmp(c->row[at].name, name) == 0) return &c->row[at];
  if (c->n >= FA_KERNEL_ROWS - 1 && strcmp(name, "other kernels") != 0) return row_of(c, "other kernels");
  FA_ASSERT(c->n < FA_KERNEL_ROWS);
  memmove(&c->row[at + 1], &c->row[at], (size_t)(c->n++ - at) * sizeof c->row[0]);
  c->row[at] = (fa_kernel_row){0};
  snprintf(c->row[at].name, sizeof c->row[at].name, "%s", name);
  return &c->row[at];
}

static void count(fa_kernel_counts *c, const char *name, fa_state state, bool waived) {
  fa_kernel_row *row = row_of(c, name);
  if (state == FA_PASS)
    row->passed++;
  else if (state == FA_SKIP)
    row->skipped++;
  else if (!fa_state_is_failure(state))
    row->error++;
  else if (waived)
    row->waived++;
  else
    row->failed++;
}

static void count_both(fa_kernel_counts *c, const char *kernel, const char *backward_kernel, fa_state state,
                       bool waived) {
  char name[2][sizeof c->row[0].name];
  stem_of(kernel, name[0], sizeof name[0]);
  stem_of(backward_kernel, name[1], sizeof name[1]);
  if (!*name[0] && !*name[1]) snprintf(name[0], sizeof name[0], "%s", FA_NO_KERNEL);
  for (int i = 0; i < 2; ++i)
    if (*name[i] && (i == 0 || strcmp(name[0], name[1]) != 0)) count(c, name[i], state, waived);
}

void fa_kernel_counts_add(fa_kernel_counts *c, const fa_result *r) {
  count_both(c, r->kernel, r->backward_kernel, r->state, r->waived);
}

void fa_kernel_counts_add_entry(fa_kernel_counts *c, const cJSON *entry) {
  fa_state state = FA_ERROR;
  fa_state_from_name(fa_report_string(entry, "state"), &state);
  count_both(c, fa_report_string(entry, "kernel"), fa_report_string(entry, "backward_kernel"), state,
             cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "waived")));
}

void fa_kernel_counts_add_cases(fa_kernel_counts *c, const cJSON *cases) {
  const cJSON *entry;
  cJSON_ArrayForEach(entry, cases) fa_kernel_counts_add_entry(c, entry);
}

cJSON *fa_kernel_counts_to_json(const fa_kernel_counts *c) {
  cJSON *o = cJSON_CreateObject();
  for (int i = 0; i < c->n; ++i) {
    const fa_kernel_row *k = &c->row[i];
    cJSON *row = cJSON_AddObjectToObject(o, k->name);
    cJSON_AddNumberToObject(row, "passed", (double)k->passed);
    cJSON_AddNumberToObject(row, "failed", (double)k->failed);
    cJSON_AddNumberToObject(row, "skipped", (double)k->skipped);
    cJSON_AddNumberToObject(row, "error", (double)k->error);
    if (k->waived) cJSON_AddNumberToObject(row, "waived", (double)k->waived);
  }
  return o;
}

void fa_kernels_add_names(cJSON *entry, const fa_result *r) {
  if (r->kernel[0]) cJSON_AddStringToObject(entry, "kernel", r->kernel);
  if (r->backward_kernel[0]) cJSON_AddStringToObject(entry, "backward_kernel", r->backward_kernel);
}

void fa_kernels_read_names(const cJSON *entry, fa_result *r) {
  snprintf(r->kernel, sizeof r->kernel, "%s", fa_report_string(entry, "kernel"));
  snprintf(r->backward_kernel, sizeof r->backward_kernel, "%s", fa_report_string(entry, "backward_kernel"));
}
