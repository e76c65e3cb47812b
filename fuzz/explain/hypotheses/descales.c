/* Operands of 8 bits: what stored numbers are multiplied by. */
#include "fuzz/explain/hypothesis.h"

static const fa_tensor_id ids[] = {FA_T_Q_DESCALE, FA_T_K_DESCALE, FA_T_V_DESCALE};
static const char *const letters[] = {"q", "k", "v"};
enum { N_IDS = 3 };

/* Of all the elements of a descale: what becomes of x. at: its index, of which the last is the head. */
typedef double change(const fa_failure *x, const fa_tensor *right, const int64_t *at, int which);

/* Variant v is change number v / N_IDS of descale v % N_IDS. False: there is none, or nothing changes. */
static bool change_all(const fa_failure *x, int v, fa_mistake *m, change *f) {
  const fa_tensor_id id = ids[v % N_IDS];
  const fa_tensor *right = &x->in->t[id];
  bool any = false;
  if (!fa_mistake_copy_input(m, id)) return false;
  for (int64_t e = 0, n = fa_tensor_count(right); e < n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(right, e, at);
    const double was = fa_tensor_get(right, at), is = f(x, right, at, v / N_IDS);
    fa_tensor_set(&m->in.t[id], at, is);
    any |= was == was && was != is;
  }
  return any;
}

static double other_value(const fa_failure *x, const fa_tensor *right, const int64_t *at, int which) {
  (void)x;
  const double is = fa_tensor_get(right, at), becomes[] = {1, is * is, 1 / is};
  return becomes[which];
}

static bool descale_otherwise(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"not applied", "applied twice", "divided by, not multiplied by"};
  fa_mistake_say(m, "%s_descale %s", letters[v % N_IDS], what[v / N_IDS]);
  return change_all(x, v, m, other_value);
}

static bool o_scale_otherwise(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"not applied", "applied twice", "divided by, not multiplied by"};
  const int64_t first = 0;
  if (!fa_mistake_copy_input(m, FA_T_O_SCALE)) return false;
  const double is = other_value(x, &x->in->t[FA_T_O_SCALE], &first, v);
  fa_tensor_set(&m->in.t[FA_T_O_SCALE], &first, is);
  fa_mistake_say(m, "o_scale %s", what[v]);
  return is != fa_tensor_get(&x->in->t[FA_T_O_SCALE], &first);
}

/* The element as far along an axis, around its end; or the first. */
static double along(const fa_tensor *right, const int64_t *at, int axis, int64_t by) {
  int64_t other[FA_MAX_RANK];
  for (int a = 0; a < right->rank; ++a) other[a] = at[a];
  const int64_t n = right->shape[axis];
  other[axis] = by == 0 ? 0 : (at[axis] + by + n) % n;
  return fa_tensor_get(right, other);
}

static double of_head(const fa_failure *x, const fa_tensor *right, const int64_t *at, int which) {
  static const int64_t by[] = {1, -1, 0};
  (void)x;
  return right->rank > 1 ? along(right, at, right->rank - 1, by[which]) : fa_tensor_get(right, at);
}

static bool descale_of_other_head(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"the head after", "the head before", "the first head"};
  fa_mistake_say(m, "%s_descale of %s", letters[v % N_IDS], what[v / N_IDS]);
  return change_all(x, v, m, of_head);
}

static double of_row(const fa_failure *x, const fa_tensor *right, const int64_t *at, int which) {
  static const int64_t by[] = {1, -1, 0};
  (void)x;
  return right->rank > 1 ? along(right, at, right->rank - 2, by[which]) : fa_tensor_get(right, at);
}

/* The axis before the heads': sequences or pages, and where each row has one, rows. */
static bool descale_of_other_row(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const where[] = {"after", "before", "that is the first"};
  const fa_descale_per per = x->p->quantized.per;
  const char *what = per == FA_PER_TOKEN ? "row" : per == FA_PER_PAGE ? "page" : "sequence";
  fa_mistake_say(m, "%s_descale of the %s %s", letters[v % N_IDS], what, where[v / N_IDS]);
  return change_all(x, v, m, of_row);
}

static bool descale_of_other_tensor(const fa_failure *x, int v, fa_mistake *m) {
  static const fa_tensor_id pairs[][2] = {
      {FA_T_K_DESCALE, FA_T_V_DESCALE}, {FA_T_Q_DESCALE, FA_T_K_DESCALE}, {FA_T_Q_DESCALE, FA_T_V_DESCALE}};
  static const char *const what[] = {"k_descale and v_descale", "q_descale and k_descale",
                                     "q_descale and v_descale"};
  const fa_tensor *a = &x->in->t[pairs[v][0]], *b = &x->in->t[pairs[v][1]];
  m->in.t[pairs[v][0]] = *b;
  m->in.t[pairs[v][1]] = *a;
  fa_mistake_say(m, "%s exchanged", what[v]);
  return fa_mistake_fits(a, b);
}

const fa_hypothesis fa_hypotheses_of_descales[] = {
    {"descale_otherwise", "a descale is not applied, or twice, or inverted", FA_OF_FORWARD, 3 * N_IDS,
     descale_otherwise},
    {"descale_of_other_head", "a descale is that of another head", FA_OF_FORWARD, 3 * N_IDS,
     descale_of_other_head},
    {"descale_of_other_row", "a descale is that of another sequence, row or page", FA_OF_FORWARD, 3 * N_IDS,
     descale_of_other_row},
    {"o_scale_otherwise", "the scale of O is not applied, or twice, or inverted", FA_BIT(FA_T_O), 3,
     o_scale_otherwise},
    {"descale_of_other_tensor", "two descales are exchanged", FA_OF_FORWARD, 3, descale_of_other_tensor},
    {0}};
