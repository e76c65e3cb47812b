/* Random cases inside what the backends support: who draws them, and how the parent learns which they were.
 *
 * Workers draw, because only they have opened backends. What one chooses depends on nothing but the case's number
 * and the backend, so any worker, and any later process that resumes the run, chooses the same. */
#include "cases/codec/file.h"
#include "fuzz/campaign/session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned able(void *ctx, const fa_problem *p) {
  const fa_subject *subject = ctx;
  char why[256];
  if (subject->rules &&
      fa_rules_have(subject->rules, FA_LAYER_CONTRACT)) /* what it would rather not do counts */
    return fa_rules_promised(subject->rules, p, why, sizeof why);
  return subject->backend->supports(subject->self, p, why, sizeof why);
}

static void *share(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

fa_status fa_session_draw_begin(fa_session *s, fa_error *err) {
  const fa_source *source = &s->source;
  const fa_status begun = fa_session_begin_rules(s, err);
  if (begun != FA_OK) return begun;
  s->draws = !s->cli->as_drawn && (!source->list || source->origin || source->tier);
  if (!s->draws) return FA_OK;
  s->drawn = share(FA_POOL_MAX_PENDING * sizeof *s->drawn);
  if (!s->drawn) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t i = 0; i < FA_POOL_MAX_PENDING; ++i) s->drawn[i].item = -1;
  return FA_OK;
}

void fa_session_draw_end(fa_session *s) {
  if (s->drawn) munmap(s->drawn, FA_POOL_MAX_PENDING * sizeof *s->drawn);
  s->drawn = NULL;
}

/* ---- in the process that has the backend ---- */

static fa_status choose(fa_session *s, fa_lane *lane, fa_item item, int64_t *draw, fa_error *err) {
  fa_case_origin origin;
  *draw = 0;
  if (!s->draws || !fa_source_origin(&s->source, item.case_index, &origin)) return FA_OK;
  fa_subject *subject = &lane->subject[item.backend];
  *subject = (fa_subject){s->choice[item.backend].backend, lane->self[item.backend], s->rules};
  fa_drawing *drawing = &lane->drawing[item.backend];
  drawing->able = able;
  drawing->ctx = subject;
  return fa_drawing_choose(drawing, origin.profile, origin.seed, origin.index, draw, err);
}

fa_status fa_session_draw(fa_session *s, int lane, int64_t number, fa_item item, int64_t *draw,
                          fa_error *err) {
  *draw = item.draw;
  if (item.draw != FA_DRAW_LATER) return FA_OK;
  const fa_status status = choose(s, &s->lane[lane], item, draw, err);
  if (status != FA_OK) *draw = 0;
  if (s->drawn) s->drawn[number % FA_POOL_MAX_PENDING] = (fa_drawn){number, *draw};
  return status;
}

int64_t fa_session_drawn_last(const fa_session *s, int64_t number) {
  const fa_drawn *d = s->drawn ? &s->drawn[number % FA_POOL_MAX_PENDING] : NULL;
  return d && d->item == number ? d->draw : 0;
}

/* ---- before the run ---- */

static void draw_all(fa_session *s, int64_t *draw) {
  fa_error ignored;
  for (int64_t i = 0; i < s->n_items; ++i) {
    int64_t chosen;
    if (fa_session_open_backend(s, 0, s->item[i].backend, &ignored) != FA_OK) continue;
    if (choose(s, s->lane, s->item[i], &chosen, &ignored) == FA_OK) draw[i] = chosen;
  }
  for (int b = 0; b < s->n_choices; ++b)
    if (s->lane->opened[b]) s->choice[b].backend->close(s->lane->self[b]);
}

fa_status fa_session_draw_ahead(fa_session *s, fa_error *err) {
  if (!s->draws || s->n_items == 0) return FA_OK;
  const size_t bytes = (size_t)s->n_items * sizeof(int64_t);
  int64_t *draw = share(bytes);
  if (!draw) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t i = 0; i < s->n_items; ++i) draw[i] = FA_DRAW_LATER;
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    draw_all(s, draw);
    _exit(0);
  }
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
  for (int64_t i = 0; i < s->n_items; ++i) s->item[i].draw = draw[i];
  munmap(draw, bytes);
  return FA_OK;
}

/* ---- --emit ---- */

fa_status fa_session_keep_draw(fa_session *s, int64_t draw, fa_error *err) {
  if (!s->cli->emit || s->item || !s->draws) return FA_OK;
  if ((s->n_kept & (s->n_kept + 1)) == 0) { /* full at 1, 3, 7, ...: double the capacity */
    int64_t *bigger = realloc(s->kept_draw, (size_t)(2 * s->n_kept + 1) * sizeof *bigger);
    if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    s->kept_draw = bigger;
  }
  s->kept_draw[s->n_kept++] = draw;
  return FA_OK;
}

static int64_t draw_of(const fa_session *s, int64_t i) {
  if (s->item) return s->item[i].draw > 0 ? s->item[i].draw : 0;
  return i < s->n_kept ? s->kept_draw[i] : 0;
}

/* Which case an item has. Several backends may have the same one, or draws of their own. */
typedef struct own_case {
  int64_t case_index, draw, item;
} own_case;

static int compare_cases(const void *a, const void *b) {
  const own_case *x = a, *y = b;
  if (x->case_index != y->case_index) return x->case_index < y->case_index ? -1 : 1;
  return x->draw < y->draw ? -1 : x->draw > y->draw;
}

static int compare_items(const void *a, const void *b) {
  const own_case *x = a, *y = b;
  const int order = compare_cases(a, b);
  return order ? order : x->item < y->item ? -1 : 1;
}

/* For each of n items whether one before it has the same case; to be freed. NULL: out of memory. */
static bool *find_repeated(const fa_session *s, int64_t n) {
  own_case *all = malloc((size_t)(n + 1) * sizeof *all);
  bool *repeated = all ? calloc((size_t)(n + 1), sizeof *repeated) : NULL;
  for (int64_t i = 0; repeated && i < n; ++i)
    all[i] = (own_case){fa_session_item(s, i).case_index, draw_of(s, i), i};
  if (repeated) qsort(all, (size_t)n, sizeof *all, compare_items);
  for (int64_t i = 1; repeated && i < n; ++i)
    repeated[all[i].item] = compare_cases(&all[i - 1], &all[i]) == 0;
  free(all);
  return repeated;
}

static fa_status emit_case(const fa_session *s, int64_t i, fa_case_list *list, fa_error *err) {
  fa_case c;
  fa_status status = fa_source_get(&s->source, fa_session_item(s, i).case_index, draw_of(s, i), &c, err);
  if (status != FA_OK) return status;
  status = fa_case_list_push(list, &c);
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
}

fa_status fa_session_emit(const fa_session *s, const char *path, fa_error *err) {
  fa_case_list list = {0};
  fa_status status = FA_OK;
  const int64_t n = s->item ? s->n_items : s->draws ? s->n_kept : s->next_item;
  bool *repeated = find_repeated(s, n);
  if (!repeated) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t i = 0; status == FA_OK && i < n; ++i)
    if (!repeated[i]) status = emit_case(s, i, &list, err);
  free(repeated);
  if (status == FA_OK) status = fa_case_file_save(path, list.v, list.n, err);
  fa_case_list_free(&list);
  return status;
}
