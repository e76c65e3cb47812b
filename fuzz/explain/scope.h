/* The elements that a hypothesis is tried on: all, or some rows and keys of a large case. */
#ifndef FA_FUZZ_EXPLAIN_SCOPE_H
#define FA_FUZZ_EXPLAIN_SCOPE_H

#include "fuzz/explain/failure.h"

enum { FA_SCOPE_PARTS = 8 };

typedef struct fa_scope {
  bool whole;
  int n_rows, n_keys;
  fa_ref_part rows[FA_SCOPE_PARTS], keys[FA_SCOPE_PARTS];
} fa_scope;

void fa_scope_whole(fa_scope *s);
/* Rows and keys around elements that are wrong, and some others. */
void fa_scope_sample(const fa_failure *x, fa_scope *s);
/* Two of a sample's runs of rows, and one of keys. */
void fa_scope_glance(const fa_scope *sample, fa_scope *s);

/* Calls visit with the elements of the tensor in the scope: first .. first + n - 1 each time. False: none of its
 * elements can be had by scope. */
typedef void fa_scope_visit(void *context, int64_t first, int64_t n);
bool fa_scope_each(const fa_failure *x, const fa_scope *s, const fa_failed *t, fa_scope_visit *visit,
                   void *context);

#endif
