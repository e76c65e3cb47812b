/* Merges reports: shards of a run, or a run and its repetition. */
#include "report/json.h"
#include "report/kernels.h"
#include "report/maps.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* A case's entry in the merged report. */
typedef struct kept {
  const cJSON *entry, *failure; /* where it came from; failure: NULL after a pass or a skip */
  int report;
  int64_t occurrence; /* number of entries of the same case before it in its report */
  int64_t next;       /* another entry of the same group, -1: none */
} kept;

/* All entries of one case, on one backend and device. */
typedef struct group {
  int64_t first; /* of kept; -1: free */
  int report;    /* the last one visited, and how many of these it had so far */
  int64_t count;
} group;

typedef struct merge {
  cJSON *const *reports;
  const char *const *paths;
  cJSON *root, *cases, *failures, *summary, *contradictions;
  kept *kept;
  group *groups;
  int64_t n_kept, n_groups, n_dropped; /* n_groups: a power of two, at least twice the entries */
  bool out_of_memory;
} merge;

/* ---- entries of the same case ---- */

static bool same_text(const cJSON *a, const cJSON *b, const char *key) {
  return strcmp(fa_report_string(a, key), fa_report_string(b, key)) == 0;
}

static bool same_case(const merge *m, const kept *a, const cJSON *entry, int report) {
  const cJSON *mine = fa_report_at(m->reports[a->report], "backend"),
              *other = fa_report_at(m->reports[report], "backend");
  return same_text(a->entry, entry, "record") && same_text(a->entry, entry, "name") &&
         same_text(a->entry, entry, "backend") && same_text(mine, other, "device") &&
         same_text(mine, other, "driver");
}

static group *find_group(merge *m, const cJSON *entry, int report) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char *s = fa_report_string(entry, "record"); *s; ++s)
    hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
  int64_t at = (int64_t)(hash & (uint64_t)(m->n_groups - 1));
  while (m->groups[at].first >= 0 && !same_case(m, &m->kept[m->groups[at].first], entry, report))
    at = (at + 1) & (m->n_groups - 1);
  return &m->groups[at];
}

/* ---- equal results ---- */

static const char *const kernel_keys[] = {"kernel", "backward_kernel"};

/* Times and paths always differ, maps are kept of the first failures of a run alone, a field missing from a report of an older version is no difference, and what the
 * case has is in its record. */
static cJSON *comparable(const cJSON *o, const cJSON *other) {
  static const char *const keys[] = {"seconds", "dump", "repro", "shrunk", "features", "shape", "draw"};
  cJSON *copy = cJSON_Duplicate(o, 1);
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    cJSON_DeleteItemFromObjectCaseSensitive(copy, keys[k]);
  fa_report_forget_maps(copy);
  for (int k = 0; k < 2; ++k)
    if (!*fa_report_string(o, kernel_keys[k]) || !*fa_report_string(other, kernel_keys[k]))
      cJSON_DeleteItemFromObjectCaseSensitive(copy, kernel_keys[k]);
  return copy;
}

static bool same_result(const cJSON *a, const cJSON *b) {
  if (a == NULL || b == NULL) return a == b;
  cJSON *x = comparable(a, b), *y = comparable(b, a);
  const bool same = x && y && cJSON_Compare(x, y, 1);
  cJSON_Delete(x);
  cJSON_Delete(y);
  return same;
}

/* Results of two kernels, as with and without FA_HOPPER=off, do not contradict each other. */
static bool of_other_kernels(const cJSON *a, const cJSON *b) {
  for (int k = 0; k < 2; ++k)
    if (*fa_report_string(a, kernel_keys[k]) && *fa_report_string(b, kernel_keys[k]) &&
        !same_text(a, b, kernel_keys[k]))
      return true;
  return false;
}

static void add_side(merge *m, cJSON *to, const cJSON *entry, int report) {
  cJSON *side = cJSON_CreateObject();
  cJSON_AddStringToObject(side, "report", m->paths[report]);
  cJSON_AddStringToObject(side, "state", fa_report_string(entry, "state"));
  cJSON_AddItemToObject(side, "worst_ratio", cJSON_Duplicate(fa_report_at(entry, "worst_ratio"), 1));
  cJSON_AddItemToArray(to, side);
}

static void add_contradiction(merge *m, const kept *a, const cJSON *entry, int report) {
  if (m->contradictions == NULL) m->contradictions = cJSON_AddArrayToObject(m->root, "contradictions");
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", fa_report_string(entry, "name"));
  cJSON_AddStringToObject(o, "backend", fa_report_string(entry, "backend"));
  cJSON *sides = cJSON_AddArrayToObject(o, "results");
  add_side(m, sides, a->entry, a->report);
  add_side(m, sides, entry, report);
  cJSON_AddItemToArray(m->contradictions, o);
}

/* ---- counts ---- */

static void add_to(cJSON *o, const char *key, double n) {
  cJSON *old = cJSON_GetObjectItemCaseSensitive(o, key);
  if (n == 0) return;
  if (cJSON_IsNumber(old)) { /* add it in place */
    cJSON_SetNumberValue(old, old->valuedouble + n);
    return;
  }
  cJSON_DeleteItemFromObjectCaseSensitive(o, key);
  cJSON_AddNumberToObject(o, key, n);
}

static void add_numbers(cJSON *to, const cJSON *from) {
  const cJSON *n;
  cJSON_ArrayForEach(n, from) if (cJSON_IsNumber(n)) add_to(to, n->string, n->valuedouble);
}

static void add_summary(cJSON *to, const cJSON *from) {
  static const char *const keys[] = {"total", "passed", "failed",    "skipped",
                                     "error", "waived", "malformed", "backward_left_out"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    add_to(to, keys[k], fa_report_number(from, keys[k]));
  if (fa_report_at(from, "skip_reasons") == NULL) return;
  cJSON *reasons = cJSON_GetObjectItemCaseSensitive(to, "skip_reasons");
  if (reasons == NULL) reasons = cJSON_AddObjectToObject(to, "skip_reasons");
  add_numbers(reasons, fa_report_at(from, "skip_reasons"));
}

static void add_coverage(cJSON *to, const cJSON *from) {
  const cJSON *part;
  add_numbers(to, from);
  cJSON_ArrayForEach(part, from) {
    cJSON *mine = cJSON_GetObjectItemCaseSensitive(to, part->string);
    if (cJSON_IsObject(part) && cJSON_IsObject(mine)) add_numbers(mine, part);
  }
}

/* {"causal": {"wanted": 3, "judged": 2}, ...}: a word that only one report has is copied. */
static void add_tried(cJSON *to, const cJSON *from) {
  const cJSON *one;
  cJSON_ArrayForEach(one, from) {
    cJSON *mine = cJSON_GetObjectItemCaseSensitive(to, one->string);
    if (mine)
      add_numbers(mine, one);
    else
      cJSON_AddItemToObject(to, one->string, cJSON_Duplicate(one, 1));
  }
}

/* Merges a skip's reason into the summary's list, whose last item collects other reasons. */
static void take_reason(cJSON *summary, const char *reason) {
  char text[160];
  cJSON *reasons = cJSON_GetObjectItemCaseSensitive(summary, "skip_reasons");
  snprintf(text, sizeof text, "%s", *reason ? reason : "no reason given");
  const char *key = fa_report_at(reasons, text) ? text : "other reasons";
  if (fa_report_at(reasons, key) == NULL) return;
  add_to(reasons, key, -1);
  if (fa_report_number(reasons, key) <= 0) cJSON_DeleteItemFromObjectCaseSensitive(reasons, key);
}

/* Subtracts an entry that its report's summary counted, but that is already in the merged report. */
static void uncount(merge *m, const cJSON *entry) {
  const char *name = fa_report_string(entry, "state");
  fa_state state = FA_ERROR;
  fa_state_from_name(name, &state);
  const bool waived = cJSON_IsTrue(fa_report_at(entry, "waived"));
  const char *key = state == FA_PASS              ? "passed"
                    : state == FA_SKIP            ? "skipped"
                    : !fa_state_is_failure(state) ? "error"
                    : waived                      ? "waived"
                                                  : "failed";
  add_to(m->summary, "total", -1);
  add_to(m->summary, key, -1);
  if (state == FA_SKIP) take_reason(m->summary, fa_report_string(entry, "reason"));
  if (cJSON_IsTrue(fa_report_at(entry, "malformed"))) add_to(m->summary, "malformed", -1);
  if (cJSON_IsTrue(fa_report_at(entry, "backward_left_out"))) add_to(m->summary, "backward_left_out", -1);
  ++m->n_dropped;
}

/* ---- merging ---- */

static void append_copy(merge *m, cJSON *to, const cJSON *item) {
  if (item == NULL) return;
  cJSON *copy = cJSON_Duplicate(item, 1);
  if (copy == NULL || !cJSON_AddItemToArray(to, copy)) m->out_of_memory = true;
}

static void keep(merge *m, group *g, const cJSON *entry, const cJSON *failure, int report,
                 int64_t occurrence) {
  append_copy(m, m->cases, entry);
  append_copy(m, m->failures, failure);
  if (g == NULL) return;
  m->kept[m->n_kept] = (kept){entry, failure, report, occurrence, g->first};
  g->first = m->n_kept++;
}

static void take_entry(merge *m, const cJSON *entry, const cJSON *failure, int report) {
  /* The case of an entry without a record is unknown: keep the entry. */
  group *g = *fa_report_string(entry, "record") ? find_group(m, entry, report) : NULL;
  if (g == NULL) {
    keep(m, NULL, entry, failure, report, 0);
    return;
  }
  if (g->report != report) g->count = 0;
  g->report = report;
  const int64_t occurrence = g->count++;
  const kept *against = NULL;
  for (int64_t k = g->first; k >= 0; k = m->kept[k].next) {
    const kept *a = &m->kept[k];
    if (a->occurrence != occurrence || a->report == report || of_other_kernels(a->entry, entry)) continue;
    against = a;
    if (!same_result(a->entry, entry) || !same_result(a->failure, failure)) continue;
    uncount(m, entry);
    return;
  }
  if (against) add_contradiction(m, against, entry, report);
  keep(m, g, entry, failure, report, occurrence);
}

/* Failures are in the order of their cases. */
static void take_report(merge *m, int report) {
  const cJSON *failures = fa_report_at(m->reports[report], "failures"), *failure = failures->child, *entry;
  cJSON_ArrayForEach(entry, fa_report_at(m->reports[report], "cases")) {
    const cJSON *mine = fa_report_is_good(entry) ? NULL : failure;
    take_entry(m, entry, mine, report);
    if (mine) failure = failure->next;
  }
  for (; failure; failure = failure->next) append_copy(m, m->failures, failure);
}

static void count_kernels(const merge *m) {
  fa_kernel_counts counts = {0};
  fa_kernel_counts_add_cases(&counts, m->cases);
  cJSON_DeleteItemFromObjectCaseSensitive(m->root, "kernels");
  cJSON_AddItemToObject(m->root, "kernels", fa_kernel_counts_to_json(&counts));
}

/* Copies everything of the first report except what is merged afterwards. */
static bool begin(merge *m, int n) {
  int64_t entries = 0;
  for (int i = 0; i < n; ++i) entries += cJSON_GetArraySize(fa_report_at(m->reports[i], "cases"));
  for (m->n_groups = 16; m->n_groups < 2 * entries;) m->n_groups *= 2;
  m->kept = calloc((size_t)entries + 1, sizeof *m->kept);
  m->groups = malloc((size_t)m->n_groups * sizeof *m->groups);
  m->root = cJSON_CreateObject();
  if (!m->kept || !m->groups || !m->root) return false;
  for (int64_t i = 0; i < m->n_groups; ++i) m->groups[i] = (group){-1, -1, 0};
  const cJSON *item;
  cJSON_ArrayForEach(item, m->reports[0]) {
    const bool list = strcmp(item->string, "cases") == 0 || strcmp(item->string, "failures") == 0;
    const bool of_one_run = strcmp(item->string, "run") == 0 || strcmp(item->string, "finished") == 0;
    if (n > 1 && of_one_run) continue;
    cJSON *copy = list ? cJSON_CreateArray() : cJSON_Duplicate(item, 1);
    if (copy == NULL || !cJSON_AddItemToObject(m->root, item->string, copy)) return false;
  }
  m->cases = cJSON_GetObjectItemCaseSensitive(m->root, "cases");
  m->failures = cJSON_GetObjectItemCaseSensitive(m->root, "failures");
  m->summary = cJSON_GetObjectItemCaseSensitive(m->root, "summary");
  m->contradictions = cJSON_GetObjectItemCaseSensitive(m->root, "contradictions");
  return true;
}

/* Counts what the reports required over all their cases: a shard need not have judged everything itself. Without
 * one requirement of all, there is none. */
static fa_status merge_required(merge *m, int n, fa_error *err) {
  const cJSON *first = fa_report_at(fa_report_at(m->reports[0], "require"), "wanted");
  bool same = first != NULL;
  for (int i = 1; same && i < n; ++i) {
    const cJSON *other = fa_report_at(fa_report_at(m->reports[i], "require"), "wanted");
    same = other && cJSON_Compare(first, other, 1);
  }
  fa_require r;
  if (n == 1) return FA_OK;
  cJSON_DeleteItemFromObjectCaseSensitive(m->root, "require");
  if (!same) return FA_OK;
  fa_status status = fa_require_from_json(fa_report_at(m->reports[0], "require"), &r, err);
  if (status == FA_OK) status = fa_require_recount(&r, m->root, err);
  fa_require_free(&r);
  return status;
}

fa_status fa_report_merge(cJSON *const *reports, const char *const *paths, int n, cJSON **out,
                          fa_error *err) {
  FA_ASSERT(n >= 1);
  merge m = {.reports = reports, .paths = paths};
  m.out_of_memory = !begin(&m, n);
  for (int i = 0; i < n && !m.out_of_memory; ++i) {
    if (i > 0) add_summary(m.summary, fa_report_at(reports[i], "summary"));
    if (i > 0) add_to(m.root, "seconds", fa_report_number(reports[i], "seconds"));
    take_report(&m, i);
  }
  if (!m.out_of_memory) count_kernels(&m);
  cJSON *coverage = cJSON_GetObjectItemCaseSensitive(m.root, "coverage");
  for (int i = 1; coverage && i < n && !m.n_dropped; ++i)
    add_coverage(coverage, fa_report_at(reports[i], "coverage"));
  cJSON *tried = cJSON_GetObjectItemCaseSensitive(m.root, "tried");
  for (int i = 1; tried && i < n && !m.n_dropped; ++i) add_tried(tried, fa_report_at(reports[i], "tried"));
  if (m.n_dropped) { /* what was counted twice? */
    cJSON_DeleteItemFromObjectCaseSensitive(m.root, "coverage");
    cJSON_DeleteItemFromObjectCaseSensitive(m.root, "tried");
  }
  fa_status status =
      m.out_of_memory ? fa_fail(err, FA_ERR_MEMORY, "merge: out of memory") : merge_required(&m, n, err);
  free(m.kept);
  free(m.groups);
  if (status == FA_OK) status = fa_report_check("merge", m.root, err);
  if (status == FA_OK)
    *out = m.root;
  else
    cJSON_Delete(m.root);
  return status;
}
