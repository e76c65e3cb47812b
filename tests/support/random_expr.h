/* Random expressions as text, over a fixed set of buffers, for tests of everything that evaluates them. */
#ifndef FA_TESTS_SUPPORT_RANDOM_EXPR_H
#define FA_TESTS_SUPPORT_RANDOM_EXPR_H

#include "cases/base/rng.h"
#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

enum { RANDOM_EXPR_BUFFERS = 8, RANDOM_EXPR_HEADS = 4 };
extern const fa_capture random_expr_captures[RANDOM_EXPR_BUFFERS];

/* A score expression of at most the given depth into text[size]; mild: without operations that may have no
 * value, and with arguments of moderate size. */
void random_expr_score(fa_rng *r, int depth, bool mild, char *text, size_t size);
void random_expr_mask(fa_rng *r, int depth, char *text, size_t size);
/* The buffers, filled. */
void random_expr_tensors(fa_rng *r, fa_tensors *set);

#endif
