#include "gpu/expr/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_score(const fa_flex_unit *u) {
  return u->has_score && fa_flex_has_score(u->program);
}

/* True only if a read of the buffer affects score_mod's value. */
static bool is_wanted(const fa_flex_unit *u, int buffer) {
  return u->has_slope && u->wanted[buffer] && fa_capture_is_float(&u->program->buffer[buffer]);
}

/* ---- the key ---- */

static void put_bytes(FILE *f, const void *bytes, size_t n) {
  fwrite(bytes, 1, n, f);
}

static void put_expr(FILE *f, const fa_expr *e) {
  put_bytes(f, &e->n, sizeof e->n);
  put_bytes(f, &e->root, sizeof e->root);
  for (int i = 0; i < e->n; ++i) {
    const fa_expr_node *t = &e->node[i];
    const unsigned char what[4] = {(unsigned char)t->op, (unsigned char)t->type, (unsigned char)t->n_args,
                                   (unsigned char)t->buffer};
    put_bytes(f, what, sizeof what);
    put_bytes(f, t->arg, (size_t)t->n_args * sizeof *t->arg);
    if (t->op == FA_EXPR_CONST) put_bytes(f, &t->value, sizeof t->value);
  }
}

static void put_key(FILE *f, const fa_flex_unit *u) {
  const fa_flex_program *p = u->program;
  put_bytes(f, u->source, strlen(u->source) + 1);
  const unsigned char what[5] = {has_score(u), has_score(u) && u->has_slope, fa_flex_has_mask(p),
                                 has_score(u) && u->speed == FA_EXPR_FAST, u->drops};
  put_bytes(f, what, sizeof what);
  put_bytes(f, &u->lacks, sizeof u->lacks);
  if (!p) return;
  for (int k = 0; k < p->n_buffers; ++k) {
    const fa_capture *c = &p->buffer[k];
    const unsigned char kind[3] = {(unsigned char)c->rank, (unsigned char)c->dtype,
                                   has_score(u) && is_wanted(u, k)};
    int64_t stride[FA_MAX_CAPTURE_RANK];
    fa_capture_strides(c, stride);
    put_bytes(f, kind, sizeof kind);
    put_bytes(f, c->shape, (size_t)c->rank * sizeof *c->shape);
    put_bytes(f, stride, (size_t)c->rank * sizeof *stride);
  }
  if (has_score(u)) put_expr(f, &p->score);
  if (fa_flex_has_mask(p)) put_expr(f, &p->mask);
}

/* ---- the text ---- */

/* false: out of memory. */
static bool put_function(FILE *f, char *text) {
  if (text) fputs(text, f);
  free(text);
  return text != NULL;
}

static bool put_slope(FILE *f, const fa_flex_unit *u) {
  const fa_flex_program *p = u->program;
  bool wanted[FA_FLEX_CAPTURED] = {false};
  int n = 0;
  for (int k = 0; k < p->n_buffers; ++k) wanted[k] = is_wanted(u, k);
  fputs("#define FA_FLEX_READ_BUFFERS", f);
  for (int r = 0; r < p->gradient.n_reads; ++r) {
    const int buffer = p->gradient.e.node[p->gradient.read[r].load].buffer;
    if (wanted[buffer]) fprintf(f, "%s %d", n++ ? "," : "", buffer);
  }
  fprintf(f, "\n#define FA_FLEX_READS %d\n", n);
  return put_function(f,
                      fa_expr_emit_gradient(&p->gradient, p->buffer, wanted, u->speed, "fa_flex_derivative"));
}

/* Short masks of many pairs overlap their loads; the code of long ones would not fit into the instruction cache. */
static int masks_at_once(const fa_expr *mask) {
  return mask->n <= 16 ? 8 : mask->n <= 48 ? 4 : 1;
}

static bool put_text(FILE *f, const fa_flex_unit *u, const char *kernel) {
  const fa_flex_program *p = u->program;
  const bool score = has_score(u), mask = fa_flex_has_mask(p);
  bool good = true;
  fprintf(f,
          "#define FA_FLEX_SCORE %d\n#define FA_FLEX_MASK %d\n#define FA_FLEX_DERIVATIVE %d\n"
          "#define FA_FLEX_DROPOUT %d\n#define FA_LACKS %u\n#define FA_FLEX_MASKS %d\n",
          score, mask, score && u->has_slope, u->drops, u->lacks, mask ? masks_at_once(&p->mask) : 1);
  fputs(fa_expr_prelude, f);
  if (score) good = put_function(f, fa_expr_emit_score(&p->score, p->buffer, u->speed, "fa_flex_score"));
  if (good && mask) good = put_function(f, fa_expr_emit_mask(&p->mask, p->buffer, "fa_flex_mask"));
  if (good && score && u->has_slope)
    good = put_slope(f, u);
  else
    fputs("#define FA_FLEX_READS 0\n", f);
  fprintf(f, "#line 1 \"%s.cu\"\n%s", u->source, kernel);
  return good;
}

/* ---- both, into memory ---- */

char *fa_flex_unit_key(const fa_flex_unit *u, size_t *n_bytes) {
  char *bytes = NULL;
  FILE *f = open_memstream(&bytes, n_bytes);
  if (!f) return NULL;
  put_key(f, u);
  if (fclose(f) == 0) return bytes;
  free(bytes);
  return NULL;
}

char *fa_flex_unit_text(const fa_flex_unit *u, const char *kernel) {
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  const bool good = put_text(f, u, kernel);
  if (fclose(f) == 0 && good) return text;
  free(text);
  return NULL;
}
