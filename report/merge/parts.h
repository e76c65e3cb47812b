/* Private to report/merge: what is known of the reports while they are merged. */
#ifndef FA_REPORT_MERGE_PARTS_H
#define FA_REPORT_MERGE_PARTS_H

#include "report/merge/input.h"

struct cJSON;

/* Where a value stands in the reports. */
typedef struct fa_spot {
  int64_t offset;
  uint32_t n;
  int32_t report;
} fa_spot;

typedef struct fa_spots {
  fa_spot *v; /* owned */
  int64_t n, capacity;
} fa_spots;

/* A case's entry in the merged report. */
typedef struct fa_kept {
  fa_spot at;
  int32_t failure;    /* its place in the failures that are kept; -1: none */
  int32_t occurrence; /* number of entries of the same case before it in its report */
  int32_t next;       /* another entry of the same case, -1: none */
} fa_kept;

/* All entries of one case, on one backend and device. */
typedef struct fa_twin {
  uint64_t hash;
  int32_t first;         /* of the kept entries: the last one kept */
  int32_t report, count; /* the last report visited, and how many of these it had so far */
} fa_twin;

/* Found by hash; what is found is then compared. */
typedef struct fa_twins {
  fa_twin *v;    /* owned */
  int32_t *slot; /* owned: open addressing, place in v; -1: free */
  int64_t n, capacity, n_slots;
} fa_twins;

struct fa_merged {
  fa_input *input; /* owned, n_inputs */
  char **subject;  /* owned: device and driver of each report, as one text; NULL until it is known */
  int n_inputs;
  struct cJSON *head;
  struct cJSON *rules; /* owned until the end: what each report says of an untrusted candidate */
  fa_kept *kept;       /* owned */
  int64_t n_kept, kept_capacity;
  fa_spots failures, dropped; /* dropped: of the report that is read */
  fa_twins twins;
  fa_view here, there; /* the report that is read; entries of others that it is compared with */
  fa_kernel_counts kernels;
  int64_t n_dropped;
  bool zero_times;
  fa_merged_visit *visit;
  void *ctx;
  struct cJSON *contradictions; /* in the head; NULL: none so far */
};

/* ---- lists; false: out of memory, or too many ---- */

bool fa_spots_add(fa_spots *list, fa_spot at);
bool fa_kept_add(fa_merged *m, fa_kept kept);

/* ---- twins.c ---- */

uint64_t fa_twin_hash(const char *record, const char *name, const char *backend, const char *subject);
/* The twin with this hash that `is` accepts; NULL: none has been seen. */
fa_twin *fa_twins_find(const fa_twins *t, uint64_t hash, bool (*is)(void *ctx, const fa_twin *twin),
                       void *ctx);
/* The one just looked for in vain. NULL: out of memory. */
fa_twin *fa_twins_add(fa_twins *t, uint64_t hash);

/* ---- walk.c ---- */

/* Reads report i: its entries go to fa_merge_take, everything else into *head, with empty "cases" and "failures". */
fa_status fa_merge_walk(fa_merged *m, int report, struct cJSON **head, fa_error *err);

/* ---- take.c ---- */

/* Keeps an entry unless it is already there. failure: where its item of "failures" is; NULL: it has none. */
fa_status fa_merge_take(fa_merged *m, const struct cJSON *entry, fa_spot at, const fa_spot *failure,
                        fa_error *err);
/* ---- streamed.c ---- */

/* Shows the visitor a case that is kept, with its failure. */
fa_status fa_merge_show(fa_merged *m, struct cJSON *entry, const fa_kept *kept, fa_merged_visit *visit,
                        void *ctx, fa_error *err);
/* Reads the value at a place again. */
fa_status fa_merge_read(fa_merged *m, fa_view *w, fa_spot at, struct cJSON **out, fa_error *err);

#endif
