#include "report/causes/rows.h"

#include "report/causes/features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a feature comes from: a case whose facts lack this says nothing about it. */
typedef enum source {
  FROM_SHAPE,
  FROM_WORDS,
  FROM_KERNEL,
  FROM_BACKWARD_KERNEL,
  FROM_BACKEND,
  N_SOURCES
} source;

typedef struct column {
  char *text, *negation; /* owned; negation: NULL = none */
  int bits;
  source source;
} column;

typedef struct side {
  int64_t n, words;           /* words: allocated for each column */
  uint64_t **holds;           /* owned, by column */
  uint64_t *known[N_SOURCES]; /* owned */
  uint64_t *uneven;           /* owned */
} side;

enum {
  MOST_COLUMNS = 1500,
  SLOTS = 4096,
  SAMPLE = 8192,
  NAMED_BITS = 10,
  KERNEL_BITS = 9,
  INSTANCE_BITS = 11
};

struct fa_cause_rows {
  column *column;
  int n_columns, capacity;
  int slot[SLOTS]; /* by the text's hash: a column's number + 1 */
  side side[2];    /* passing, failing */
  bool failed;     /* out of memory */
  fa_literal *literal;
  int n_literals;
  int64_t n_sample, step;
  side *now; /* while a case is added */
  source from;
};

/* ---- columns ---- */

static bool grow_columns(fa_cause_rows *r) {
  const int capacity = r->capacity ? 2 * r->capacity : 256;
  column *columns = realloc(r->column, (size_t)capacity * sizeof *columns);
  if (columns) r->column = columns;
  for (int s = 0; s < 2; ++s) {
    uint64_t **holds = realloc(r->side[s].holds, (size_t)capacity * sizeof *holds);
    if (holds) r->side[s].holds = holds;
    if (!holds || !columns) return false;
  }
  r->capacity = capacity;
  return true;
}

/* -1: there is no memory or room for it. */
static int add_column(fa_cause_rows *r, const char *text, const char *negation, int bits, source from) {
  if (r->n_columns == MOST_COLUMNS) return -1;
  r->failed |= r->n_columns == r->capacity && !grow_columns(r);
  if (r->failed) return -1;
  column *c = &r->column[r->n_columns];
  *c = (column){strdup(text), negation ? strdup(negation) : NULL, bits, from};
  r->failed |= !c->text || (negation && !c->negation);
  for (int s = 0; s < 2; ++s) {
    side *at = &r->side[s];
    at->holds[r->n_columns] = calloc((size_t)at->words + 1, sizeof(uint64_t));
    r->failed |= !at->holds[r->n_columns];
  }
  return r->n_columns++;
}

static int *slot_of(fa_cause_rows *r, const char *text) {
  uint32_t hash = 2166136261u;
  for (const char *c = text; *c; ++c) hash = (hash ^ (unsigned char)*c) * 16777619u;
  uint32_t at = hash % SLOTS;
  while (r->slot[at] && strcmp(r->column[r->slot[at] - 1].text, text) != 0) at = (at + 1) % SLOTS;
  return &r->slot[at];
}

static bool grow_rows(fa_cause_rows *r, side *s) {
  const int64_t words = s->words ? 2 * s->words : 16;
  const size_t bytes = (size_t)(words + 1) * sizeof(uint64_t), old = (size_t)s->words * sizeof(uint64_t);
  for (int c = -1; c < r->n_columns + N_SOURCES; ++c) {
    uint64_t **at = c < 0 ? &s->uneven : c < r->n_columns ? &s->holds[c] : &s->known[c - r->n_columns];
    uint64_t *more = realloc(*at, bytes);
    if (!more) return false;
    memset((char *)more + old, 0, bytes - old);
    *at = more;
  }
  s->words = words;
  return true;
}

fa_cause_rows *fa_cause_rows_make(void) {
  fa_cause_rows *r = calloc(1, sizeof *r);
  const fa_cause_feature *f;
  for (int i = 0; r && (f = fa_cause_feature_at(i)); ++i)
    add_column(r, f->text, f->negation, f->bits, FROM_SHAPE);
  if (r && !r->failed && grow_rows(r, &r->side[0]) && grow_rows(r, &r->side[1])) return r;
  fa_cause_rows_free(r);
  return NULL;
}

void fa_cause_rows_free(fa_cause_rows *r) {
  if (!r) return;
  for (int c = 0; c < r->n_columns; ++c) {
    free(r->column[c].text);
    free(r->column[c].negation);
    for (int s = 0; s < 2; ++s) free(r->side[s].holds[c]);
  }
  for (int s = 0; s < 2; ++s) {
    for (int k = 0; k < N_SOURCES; ++k) free(r->side[s].known[k]);
    free(r->side[s].holds);
    free(r->side[s].uneven);
  }
  for (int l = 0; l < r->n_literals; ++l) {
    if (r->literal[l].sample != r->literal[l].passing) free(r->literal[l].sample);
    free(r->literal[l].failing);
    free(r->literal[l].passing);
  }
  free(r->literal);
  free(r->column);
  free(r);
}

/* ---- a case ---- */

static void see(fa_cause_rows *r, const char *text, const char *negation, int bits) {
  int *slot = slot_of(r, text);
  if (!*slot) *slot = add_column(r, text, negation, bits, r->from) + 1;
  if (*slot && !r->failed) fa_set_bit(r->now->holds[*slot - 1], r->now->n);
}

static void see_named(void *ctx, const char *text) {
  see(ctx, text, NULL, NAMED_BITS);
}

static void see_shape(fa_cause_rows *r, const char *text) {
  const fa_cause_feature *f;
  fa_shape s;
  if (!fa_shape_parse(text, &s)) return;
  r->from = FROM_SHAPE;
  fa_set_bit(r->now->known[FROM_SHAPE], r->now->n);
  if (fa_cause_is_uneven(&s)) fa_set_bit(r->now->uneven, r->now->n);
  for (int i = 0; (f = fa_cause_feature_at(i)); ++i)
    if (f->holds(&s, f->of, f->n)) fa_set_bit(r->now->holds[i], r->now->n);
  fa_cause_named_features(&s, see_named, r);
}

static void see_word(fa_cause_rows *r, const char *word, bool backward_left_out) {
  char text[80], negation[80];
  const fa_cause_sentence *s = fa_cause_sentence_of(word);
  if (strcmp(word, "backward") == 0 && backward_left_out) return;
  if (s) {
    if (s->text) see(r, s->text, s->negation, 8);
    return;
  }
  snprintf(text, sizeof text, "%s", word);
  snprintf(negation, sizeof negation, "no %s", word);
  see(r, text, negation, 8);
}

static void see_words(fa_cause_rows *r, const fa_cause_facts *facts) {
  const char *text = facts->features;
  if (!*text) return;
  r->from = FROM_WORDS;
  fa_set_bit(r->now->known[FROM_WORDS], r->now->n);
  while (*(text += strspn(text, " "))) {
    const size_t n = strcspn(text, " ");
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    see_word(r, word, facts->backward_left_out);
    text += n;
  }
}

/* "flash_forward<f16,64>": the kernel by its name, and this instance of it. */
static void see_kernel(fa_cause_rows *r, const char *label, const char *kernel, source from) {
  char text[200];
  const int stem = (int)strcspn(kernel, "<");
  if (!*kernel) return;
  r->from = from;
  fa_set_bit(r->now->known[from], r->now->n);
  snprintf(text, sizeof text, "%s is %.*s", label, stem, kernel);
  see(r, text, NULL, KERNEL_BITS);
  if (!kernel[stem]) return;
  snprintf(text, sizeof text, "%s is %s", label, kernel);
  see(r, text, NULL, INSTANCE_BITS);
}

fa_status fa_cause_rows_add(fa_cause_rows *r, bool failing, const fa_cause_facts *facts) {
  side *s = &r->side[failing];
  if (s->n == 64 * s->words && !grow_rows(r, s)) r->failed = true;
  if (r->failed) return FA_ERR_MEMORY;
  r->now = s;
  see_shape(r, facts->shape);
  see_words(r, facts);
  see_kernel(r, "the kernel", facts->kernel, FROM_KERNEL);
  see_kernel(r, "the backward kernel", facts->backward_kernel, FROM_BACKWARD_KERNEL);
  see_kernel(r, "the backend", facts->backend, FROM_BACKEND);
  ++s->n;
  return r->failed ? FA_ERR_MEMORY : FA_OK;
}

/* ---- literals ---- */

enum { RANK_WORD, RANK_SENTENCE, RANK_VALUE, RANK_KERNEL };

static int rank_of(const fa_cause_rows *r, int c) {
  const source from = r->column[c].source;
  if (from == FROM_WORDS) return RANK_WORD;
  if (from != FROM_SHAPE) return RANK_KERNEL + (int)from;
  return fa_cause_feature_at(c) ? RANK_SENTENCE : RANK_VALUE;
}

static uint64_t *bits_of(const side *s, int c, source from, bool positive, bool unknown) {
  const int64_t words = FA_WORDS_OF(s->n);
  uint64_t *bits = calloc((size_t)words + 1, sizeof *bits);
  for (int64_t w = 0; bits && w < words; ++w) {
    const uint64_t known = s->known[from][w], holds = s->holds[c][w];
    bits[w] = (positive ? holds : known & ~holds) | (unknown ? ~known : 0);
  }
  if (bits && s->n % 64) bits[words - 1] &= (UINT64_C(1) << (s->n % 64)) - 1;
  return bits;
}

static uint64_t *sample_of(const fa_cause_rows *r, uint64_t *passing) {
  if (r->step == 1) return passing;
  uint64_t *sample = calloc((size_t)FA_WORDS_OF(r->n_sample) + 1, sizeof *sample);
  for (int64_t i = 0; sample && i < r->n_sample; ++i)
    if (fa_bit(passing, i * r->step)) fa_set_bit(sample, i);
  return sample;
}

static void add_literal(fa_cause_rows *r, int c, bool positive) {
  const column *at = &r->column[c];
  fa_literal *l = &r->literal[r->n_literals++];
  *l = (fa_literal){.text = positive ? at->text : at->negation, .bits = at->bits + !positive, .feature = c};
  l->failing = bits_of(&r->side[1], c, at->source, positive, false);
  l->passing = bits_of(&r->side[0], c, at->source, positive, true);
  if (l->passing) l->sample = sample_of(r, l->passing);
  r->failed |= !l->failing || !l->passing || !l->sample;
}

/* With millions of cases its bits are large, and the literals have them now. */
static void forget_column(fa_cause_rows *r, int c) {
  for (int s = 0; s < 2; ++s) {
    free(r->side[s].holds[c]);
    r->side[s].holds[c] = NULL;
  }
}

/* Words first, then sentences in the order of their table, then values that occur, then kernels: an order that does
 * not depend on which case came first. */
static int in_order(const void *a, const void *b, void *rows) {
  const fa_cause_rows *r = rows;
  const fa_literal *x = a, *y = b;
  const int rank_x = rank_of(r, x->feature), rank_y = rank_of(r, y->feature);
  if (rank_x != rank_y) return rank_x < rank_y ? -1 : 1;
  if (rank_x == RANK_SENTENCE && x->feature != y->feature) return x->feature < y->feature ? -1 : 1;
  const int order = strcmp(r->column[x->feature].text, r->column[y->feature].text);
  return order ? order : (x->text != r->column[x->feature].text) - (y->text != r->column[y->feature].text);
}

fa_status fa_cause_rows_close(fa_cause_rows *r) {
  const int64_t n = r->side[0].n;
  r->step = n > 2 * SAMPLE ? n / SAMPLE : 1;
  r->n_sample = (n + r->step - 1) / r->step;
  r->literal = calloc((size_t)r->n_columns * 2 + 1, sizeof *r->literal);
  if (!r->literal) return FA_ERR_MEMORY;
  for (int c = 0; c < r->n_columns && !r->failed; ++c) {
    add_literal(r, c, true);
    if (r->column[c].negation && !r->failed) add_literal(r, c, false);
    forget_column(r, c);
  }
  qsort_r(r->literal, (size_t)r->n_literals, sizeof *r->literal, in_order, r);
  return r->failed ? FA_ERR_MEMORY : FA_OK;
}

int64_t fa_cause_rows_failing(const fa_cause_rows *r) {
  return r->side[1].n;
}

bool fa_cause_rows_uneven(const fa_cause_rows *r, int64_t failing_case) {
  return fa_bit(r->side[1].uneven, failing_case);
}

int64_t fa_cause_rows_passing(const fa_cause_rows *r) {
  return r->side[0].n;
}

int64_t fa_cause_rows_sampled(const fa_cause_rows *r) {
  return r->n_sample;
}

int fa_cause_rows_literals(const fa_cause_rows *r, const fa_literal **out) {
  *out = r->literal;
  return r->n_literals;
}
