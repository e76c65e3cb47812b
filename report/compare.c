#include "report/compare.h"
#include "cases/codec/count.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

#define MUCH 2        /* a case is slower if it takes so many times as long, */
#define NOTABLE_S 0.1 /* and so many seconds more */
#define TOLD_ROWS 20  /* of a kind, unless all are wanted */

typedef struct entry {
  const cJSON *json, *failure; /* failure: NULL after a pass or a skip */
  const char *backend;         /* "" if both reports have one backend alone: then it need not be the same */
  int64_t place;               /* in its report */
} entry;

typedef struct side {
  entry *v;
  int64_t n;
} side;

typedef struct comparing {
  side a, b;
  cJSON *rows, *counts;
  int64_t same;
} comparing;

/* ---- pairs ---- */

static int by_case(const entry *a, const entry *b) {
  static const char *const keys[] = {"record", "name"};
  for (int k = 0; k < 2; ++k) {
    const int order = strcmp(fa_report_string(a->json, keys[k]), fa_report_string(b->json, keys[k]));
    if (order) return order;
  }
  return strcmp(a->backend, b->backend);
}

static int by_case_and_place(const void *x, const void *y) {
  const entry *a = x, *b = y;
  const int order = by_case(a, b);
  return order ? order : (a->place > b->place) - (a->place < b->place);
}

static bool has_one_backend(const cJSON *report) {
  const cJSON *cases = fa_report_at(report, "cases"), *c;
  const char *first = cases ? fa_report_string(cases->child, "backend") : "";
  cJSON_ArrayForEach(c, cases) {
    if (strcmp(fa_report_string(c, "backend"), first) != 0) return false;
  }
  return true;
}

static bool collect(const cJSON *report, bool any_backend, side *s) {
  const cJSON *cases = fa_report_at(report, "cases"), *failures = fa_report_at(report, "failures"), *c;
  const cJSON *failure = failures ? failures->child : NULL;
  s->v = malloc(((size_t)cJSON_GetArraySize(cases) + 1) * sizeof *s->v);
  if (!s->v) return false;
  cJSON_ArrayForEach(c, cases) {
    const cJSON *mine = fa_report_is_good(c) ? NULL : failure;
    s->v[s->n] = (entry){c, mine, any_backend ? "" : fa_report_string(c, "backend"), s->n};
    ++s->n;
    if (mine) failure = failure->next;
  }
  qsort(s->v, (size_t)s->n, sizeof *s->v, by_case_and_place);
  return true;
}

/* ---- kinds ---- */

const fa_compared fa_compared_absent = {.grade = FA_GRADE_ABSENT};

static fa_grade grade_of(fa_state state) {
  return state == FA_SKIP ? FA_GRADE_SKIPPED : state == FA_PASS ? FA_GRADE_PASSED : FA_GRADE_FAILED;
}

fa_compared fa_compared_of(const fa_result *r) {
  return (fa_compared){.grade = grade_of(r->state),
                       .state = r->state,
                       .has_class = fa_state_is_failure(r->state),
                       .class = fa_failure_class_of(r),
                       .seconds = r->seconds};
}

fa_compared fa_compared_of_entry(const cJSON *entry, const cJSON *failure) {
  fa_compared c = {.state = FA_ERROR, .seconds = fa_report_number(entry, "seconds")};
  fa_state_from_name(fa_report_string(entry, "state"), &c.state);
  c.grade = grade_of(c.state);
  c.has_class = failure && fa_failure_class_from_json(failure, &c.class);
  return c;
}

static bool fail_alike(const fa_compared *a, const fa_compared *b) {
  return a->state == b->state &&
         (!a->has_class || !b->has_class || fa_failure_class_equal(&a->class, &b->class));
}

const char *fa_compare_kind(const fa_compared *before, const fa_compared *now) {
  const fa_grade a = before->grade, b = now->grade;
  if (b == FA_GRADE_FAILED && a != FA_GRADE_FAILED) return "new";
  if (a == FA_GRADE_FAILED && b == FA_GRADE_PASSED) return "fixed";
  if (a == FA_GRADE_ABSENT) return "added";
  if (b == FA_GRADE_ABSENT) return "gone";
  if (b == FA_GRADE_FAILED) return fail_alike(before, now) ? NULL : "changed";
  if (a != b) return b == FA_GRADE_SKIPPED ? "skipped" : "judged";
  return NULL;
}

bool fa_compare_is_slower(const fa_compared *before, const fa_compared *now, double times, double seconds) {
  return now->seconds > times * before->seconds && now->seconds > before->seconds + seconds;
}

/* NULL: nothing that matters changed. */
static const char *kind_of(const entry *a, const entry *b) {
  const fa_compared before = a ? fa_compared_of_entry(a->json, a->failure) : fa_compared_absent;
  const fa_compared now = b ? fa_compared_of_entry(b->json, b->failure) : fa_compared_absent;
  const char *kind = fa_compare_kind(&before, &now);
  if (kind || !a || !b) return kind;
  if (fa_compare_is_slower(&before, &now, MUCH, NOTABLE_S)) return "slower";
  return fa_compare_is_slower(&now, &before, MUCH, NOTABLE_S) ? "faster" : NULL;
}

static void add_side(cJSON *row, const char *key, const cJSON *entry) {
  if (!entry) return;
  cJSON *o = cJSON_AddObjectToObject(row, key);
  cJSON_AddStringToObject(o, "state", fa_report_string(entry, "state"));
  if (fa_report_at(entry, "worst_ratio"))
    cJSON_AddItemToObject(o, "worst_ratio", cJSON_Duplicate(fa_report_at(entry, "worst_ratio"), 1));
  cJSON_AddNumberToObject(o, "seconds", fa_report_number(entry, "seconds"));
}

static void count(cJSON *counts, const char *kind) {
  cJSON *n = cJSON_GetObjectItemCaseSensitive(counts, kind);
  if (n) cJSON_SetNumberValue(n, n->valuedouble + 1);
}

static void add_pair(comparing *x, const entry *a, const entry *b) {
  const char *kind = kind_of(a, b);
  const cJSON *either = b ? b->json : a->json;
  if (!kind) {
    ++x->same;
    return;
  }
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "kind", kind);
  cJSON_AddStringToObject(row, "name", fa_report_string(either, "name"));
  cJSON_AddStringToObject(row, "backend", fa_report_string(either, "backend"));
  cJSON_AddStringToObject(row, "kernel", fa_report_string(either, "kernel"));
  add_side(row, "a", a ? a->json : NULL);
  add_side(row, "b", b ? b->json : NULL);
  cJSON_AddItemToArray(x->rows, row);
  count(x->counts, kind);
}

static void add_pairs(comparing *x) {
  int64_t i = 0, k = 0;
  while (i < x->a.n || k < x->b.n) {
    const int order = i == x->a.n ? 1 : k == x->b.n ? -1 : by_case(&x->a.v[i], &x->b.v[k]);
    add_pair(x, order <= 0 ? &x->a.v[i] : NULL, order >= 0 ? &x->b.v[k] : NULL);
    i += order <= 0;
    k += order >= 0;
  }
}

/* ---- the comparison ---- */

static const char *const kinds[] = {"new",     "changed", "fixed", "slower", "faster",
                                    "skipped", "judged",  "added", "gone"};
enum { N_KINDS = sizeof kinds / sizeof *kinds, N_TOLD = 5 };

static void add_head(cJSON *out, const char *key, const cJSON *report, const char *path) {
  cJSON *o = cJSON_AddObjectToObject(out, key);
  cJSON_AddStringToObject(o, "path", path);
  cJSON_AddStringToObject(o, "command", fa_report_string(report, "command"));
  cJSON_AddStringToObject(o, "started", fa_report_string(report, "started"));
  cJSON_AddStringToObject(o, "backend", fa_report_string(fa_report_at(report, "backend"), "name"));
  cJSON_AddStringToObject(o, "device", fa_report_string(fa_report_at(report, "backend"), "device"));
  cJSON_AddStringToObject(o, "git", fa_report_string(fa_report_at(report, "tool"), "git"));
}

/* Rows by kind, in the order of the table of kinds. */
static cJSON *by_kind(cJSON *rows) {
  cJSON *sorted = cJSON_CreateArray(), *row, *next;
  for (int k = 0; k < N_KINDS; ++k)
    for (row = rows->child; row; row = next) {
      next = row->next;
      if (strcmp(fa_report_string(row, "kind"), kinds[k]) == 0)
        cJSON_AddItemToArray(sorted, cJSON_DetachItemViaPointer(rows, row));
    }
  cJSON_Delete(rows);
  return sorted;
}

fa_status fa_report_compare(const cJSON *a, const cJSON *b, const char *path_a, const char *path_b,
                            cJSON **out, fa_error *err) {
  comparing x = {.rows = cJSON_CreateArray()};
  cJSON *o = cJSON_CreateObject();
  const bool any = has_one_backend(a) && has_one_backend(b);
  bool good = o && x.rows && collect(a, any, &x.a) && collect(b, any, &x.b);
  if (good) {
    add_head(o, "a", a, path_a);
    add_head(o, "b", b, path_b);
    x.counts = cJSON_AddObjectToObject(o, "counts");
    for (int k = 0; k < N_KINDS; ++k) cJSON_AddNumberToObject(x.counts, kinds[k], 0);
    add_pairs(&x);
    cJSON_AddNumberToObject(o, "same", (double)x.same);
    good = cJSON_AddItemToObject(o, "rows", by_kind(x.rows));
  } else {
    cJSON_Delete(x.rows);
  }
  free(x.a.v);
  free(x.b.v);
  if (good) *out = o;
  if (!good) cJSON_Delete(o);
  return good ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "compare: out of memory");
}

int64_t fa_report_new_failures(const cJSON *comparison) {
  return fa_count_at(fa_report_at(comparison, "counts"), "new");
}

/* ---- as text ---- */

static void print_text(FILE *out, const char *text) {
  for (; *text; ++text) fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static void print_row(FILE *out, const cJSON *row) {
  const cJSON *a = fa_report_at(row, "a"), *b = fa_report_at(row, "b");
  const bool time = a && b && strcmp(fa_report_string(a, "state"), fa_report_string(b, "state")) == 0;
  fprintf(out, "%-8s", fa_report_string(row, "kind"));
  print_text(out, fa_report_string(row, "name"));
  fputs("  ", out);
  print_text(out, fa_report_string(row, "backend"));
  if (time)
    fprintf(out, "  %.4g s -> %.4g s\n", fa_report_number(a, "seconds"), fa_report_number(b, "seconds"));
  else
    fprintf(out, "  %s -> %s\n", a ? fa_report_string(a, "state") : "absent",
            b ? fa_report_string(b, "state") : "absent");
}

void fa_report_print_comparison(FILE *out, const cJSON *comparison, bool verbose) {
  const cJSON *row, *counts = fa_report_at(comparison, "counts");
  for (int k = 0; k < (verbose ? N_KINDS : N_TOLD); ++k) {
    int n = 0;
    cJSON_ArrayForEach(row, fa_report_at(comparison, "rows")) {
      if (strcmp(fa_report_string(row, "kind"), kinds[k]) == 0 && (n++ < TOLD_ROWS || verbose))
        print_row(out, row);
    }
    if (n > TOLD_ROWS && !verbose) fprintf(out, "%-8sand %d more (-v)\n", kinds[k], n - TOLD_ROWS);
  }
  for (int k = 0; k < N_KINDS; ++k) {
    const double n = fa_report_number(counts, kinds[k]);
    if (k < N_TOLD || n > 0) fprintf(out, "%s:%.0f ", kinds[k], n);
  }
  fprintf(out, "same:%.0f\n", fa_report_number(comparison, "same"));
}
