#include "fuzz/workers/suspects.h"

#include "fuzz/workers/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(fa_suspects *s, const fa_worker_job *job) {
  s->slot[s->n] = job->slot;
  s->item[s->n++] = job->item;
}

fa_suspects *fa_suspects_of(const fa_worker *w, int64_t slot, const char *what) {
  fa_suspects *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  for (int i = 0; i < w->n_lanes; ++i)
    if (w->job[i].slot >= 0 && (slot < 0 || w->job[i].slot == slot)) add(s, &w->job[i]);
  s->n_again = s->n_open = s->n;
  for (int i = 0; i < w->n_lanes && slot >= 0; ++i)
    if (w->job[i].slot >= 0 && w->job[i].slot != slot) add(s, &w->job[i]);
  snprintf(s->what, sizeof s->what, "%s", what);
  return s;
}

void fa_suspects_free(fa_suspects *s) {
  for (int i = 0; s && i < s->n_again; ++i) free(s->alone[i]);
  free(s);
}

static bool is_good(const fa_result *r) {
  return r->state == FA_PASS || r->state == FA_SKIP;
}

/* That a judge cannot be relied on is no lane's doing, and need not show again. */
bool fa_is_suspect(const fa_result *r) {
  return !is_good(r) && !r->judged.broken;
}

fa_status fa_suspects_back(fa_suspects *s, int64_t slot, const fa_result *r, fa_error *err) {
  for (int i = 0; i < s->n_again; ++i) {
    if (s->slot[i] != slot) continue;
    s->found |= !is_good(r);
    s->n_open--;
    s->alone[i] = fa_wire_pack(r, &s->n_bytes[i]);
    if (!s->alone[i]) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  return FA_OK;
}

/* ", beside it: A, B" */
static void append_beside(const fa_suspects *s, int from, const fa_pool_config *c, char *text, size_t size) {
  fa_result *r = malloc(sizeof *r);
  for (int i = 0; r && i < s->n; ++i) {
    const size_t n = strlen(text);
    if (i == from) continue;
    fa_result_init(r);
    c->identify(c->ctx, s->item[i], r);
    snprintf(text + n, size - n, "%s%s",
             strstr(text, "; beside it: ") ? ", " : "; beside it: ", r->name ? r->name : "?");
    fa_result_free(r);
  }
  free(r);
}

/* A kernel of one lane may have written into another's memory, or be wrong only now and then. */
static void accuse(const fa_suspects *s, const fa_pool_config *c, fa_result *r) {
  r->state = FA_ERROR;
  snprintf(
      r->reason, sizeof r->reason,
      "passes alone, not beside others (does a kernel write elsewhere, or is it not always the same?): %s",
      s->what);
  append_beside(s, 0, c, r->reason, sizeof r->reason);
}

fa_status fa_suspects_result(const fa_suspects *s, int i, const fa_pool_config *c, fa_result *r,
                             fa_error *err) {
  const fa_status status = fa_wire_unpack(s->alone[i], s->n_bytes[i], r, err);
  if (status == FA_OK && i == 0 && !s->found && !s->excused) accuse(s, c, r);
  return status;
}
