#include "tests/held/digest.h"

#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { SHARES = 7 };

static double share_of(int64_t element) {
  return 1 + (double)(element % SHARES) / SHARES;
}

void digest_add(digest *d, int which, double x, int64_t element) {
  if (isfinite(x))
    d->sum[which] += share_of(element) * fabs(x);
  else
    d->odd += which + 1;
}

digest digest_of(const fa_want *w) {
  digest d = {.n = w->n};
  const int64_t columns = w->rank > 0 && w->shape[w->rank - 1] > 0 ? w->shape[w->rank - 1] : 1;
  for (int64_t e = 0; e < w->n; ++e) {
    digest_add(&d, 0, w->value[e], e);
    if (!w->quant) continue;
    digest_add(&d, 1, w->quant[e], e);
    digest_add(&d, 2, w->accum[e], e);
    if (w->noise) digest_add(&d, 3, w->noise[e], e);
    if (w->scale && e % columns == 0) digest_add(&d, 4, w->scale[e / columns], e / columns);
  }
  return d;
}

digest digest_of_inputs(const fa_tensors *in) {
  digest d = {.n = 0};
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_tensor_id_is_output((fa_tensor_id)id) || !in->t[id].data) continue;
    const int which = id == FA_T_Q ? 0 : id == FA_T_K ? 1 : id == FA_T_V ? 2 : id == FA_T_DO ? 3 : 4;
    const int64_t n = fa_tensor_count(&in->t[id]);
    d.n += n;
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(&in->t[id], e, index);
      digest_add(&d, which, fa_tensor_get(&in->t[id], index), e + id);
    }
  }
  return d;
}

static void format(const digest *d, const char *name, const char *way, fa_tensor_id id, char *line,
                   size_t size) {
  snprintf(line, size, "%s %s %s %lld %lld %.7g %.7g %.7g %.7g %.7g", name, way, fa_tensor_id_name(id), d->n,
           d->odd, d->sum[0], d->sum[1], d->sum[2], d->sum[3], d->sum[4]);
  const size_t n = strlen(name);
  for (size_t i = 0; i < n && i < size; ++i)
    if (line[i] == ' ') line[i] = '_';
}

/* Up to the last bits, which the processor's own order of a sum may change, and what is left where terms cancel is nothing else. */
static bool alike(const char *a, const char *b) {
  char name[2][300];
  double x[2][DIGEST_SUMS];
  long long n[2][2];
  const char *const from[2] = {a, b};
  for (int i = 0; i < 2; ++i)
    if (sscanf(from[i], "%299[^ ] %*s %*s %lld %lld %lf %lf %lf %lf %lf", name[i], &n[i][0], &n[i][1],
               &x[i][0], &x[i][1], &x[i][2], &x[i][3], &x[i][4]) != 3 + DIGEST_SUMS)
      return false;
  const double least = 1e-10 * (x[1][1] + x[1][2] + x[1][4]) + 1e-30;
  for (int k = 0; k < DIGEST_SUMS; ++k)
    if (!(fabs(x[0][k] - x[1][k]) <= 1e-5 * fabs(x[1][k]) + least)) return false;
  return strcmp(name[0], name[1]) == 0 && n[0][0] == n[1][0] && n[0][1] == n[1][1];
}

void digest_hold(digest_book *b, const char *name, const char *way, fa_tensor_id id, const digest *d) {
  char line[600], recorded[600];
  format(d, name, way, id, line, sizeof line);
  if (b->writes) {
    fprintf(b->f, "%s\n", line);
    return;
  }
  REQUIRE(fgets(recorded, sizeof recorded, b->f) != NULL);
  recorded[strcspn(recorded, "\n")] = '\0';
  CHECK_MSG(alike(line, recorded), "\n  now      %s\n  recorded %s", line, recorded);
}

static digest digest_of_more(const fa_want *w) {
  digest d = {.n = w->n};
  for (int64_t e = 0; e < w->n; ++e) {
    if (w->sum_error) digest_add(&d, 0, w->sum_error[e], e);
    if (w->least && w->most) digest_add(&d, 1, w->least[e], e);
    if (w->least && w->most) digest_add(&d, 2, w->most[e], e);
  }
  digest_add(&d, 3, w->steepest, 0);
  return d;
}

void digest_hold_all(digest_book *b, const char *name, const char *way, const fa_wants *w) {
  char more[100];
  snprintf(more, sizeof more, "%s+", way);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_want *x = &w->t[id];
    const digest d = digest_of(x), rest = digest_of_more(x);
    if (x->n > 0) digest_hold(b, name, way, (fa_tensor_id)id, &d);
    if (x->n > 0 && (x->sum_error || x->least || x->steepest != 0))
      digest_hold(b, name, more, (fa_tensor_id)id, &rest);
  }
}

fa_tensor digest_tensor_of(const fa_want *w) {
  fa_tensor t = {.dtype = FA_F64, .rank = w->rank, .data = (char *)w->value};
  int64_t stride = 1;
  for (int a = w->rank - 1; a >= 0; --a) {
    t.shape[a] = w->shape[a];
    t.stride[a] = stride;
    stride *= w->shape[a];
  }
  return t;
}

/* A bound that is one part in 2,000 larger, two elements exchanged, and one that is no number any more. */
void digest_check(void) {
  double value[3] = {1, 2, 3};
  float quant[3] = {1e-3f, 1e-3f, 1e-3f}, accum[3] = {0};
  const fa_want w = {.n = 3, .value = value, .quant = quant, .accum = accum};
  char line[600], other[600];
  const digest d = digest_of(&w);
  format(&d, "case", "set", FA_T_O, line, sizeof line);
  CHECK(alike(line, line));
  for (int change = 0; change < 3; ++change) {
    value[0] = change == 1 ? 2 : change == 2 ? NAN : 1, value[1] = change == 1 ? 1 : 2;
    quant[1] = change == 0 ? 1.0005e-3f : 1e-3f;
    const digest now = digest_of(&w);
    format(&now, "case", "set", FA_T_O, other, sizeof other);
    CHECK_MSG(!alike(line, other), "change %d: %s", change, other);
  }
}
