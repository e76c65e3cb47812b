/* Heads, sequences and pages mistaken for others, and one operand for another. */
#include "fuzz/explain/hypothesis.h"

static bool modulo(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (x->place.group == 1 || x->place.heads_kv == 1) return false;
  m->twist.heads_modulo = true;
  fa_mistake_say(m, "key/value head h %% heads_kv instead of h / group");
  return true;
}

/* number: heads further on; of which operands: bit 0 keys, bit 1 values */
static void read_neighbour(const fa_ref_twist *t, const fa_ref_call *c, fa_tensor_id id,
                           const fa_ref_sequence **e, int64_t *head) {
  (void)e;
  if (!(t->number[1] & (id == FA_T_K ? 1 : 2))) return;
  *head = (*head + t->number[0] + c->heads_kv) % c->heads_kv;
}

static bool neighbour(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"key/value head", "key/value head read", "key head", "value head"};
  const int by = v % 2 ? -1 : 1;
  if (x->place.heads_kv == 1 || (by < 0 && x->place.heads_kv == 2)) return false;
  fa_mistake_say(m, "%s is the one %s", what[v / 2], by > 0 ? "after" : "before");
  if (v < 2) {
    m->twist.heads_shift = by;
    return true;
  }
  m->twist.source = read_neighbour;
  m->twist.number[0] = by;
  m->twist.number[1] = v < 4 ? 3 : v < 6 ? 1 : 2;
  return true;
}

static void read_first(const fa_ref_twist *t, const fa_ref_call *c, fa_tensor_id id,
                       const fa_ref_sequence **e, int64_t *head) {
  (void)c, (void)e;
  if (t->number[1] & (id == FA_T_K ? 1 : 2)) *head = 0;
}

static bool first_for_all(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"key/value head", "key head", "value head"};
  static const int which[] = {3, 1, 2};
  if (x->place.heads_kv == 1) return false;
  m->twist.source = read_first;
  m->twist.number[1] = which[v];
  fa_mistake_say(m, "first %s for all", what[v]);
  return true;
}

/* number: sequences further on, or 0: the first for all; of which operands. One that is too short is not read. */
static void read_sequence(const fa_ref_twist *t, const fa_ref_call *c, fa_tensor_id id,
                          const fa_ref_sequence **e, int64_t *head) {
  (void)head;
  if (!(t->number[1] & (id == FA_T_K ? 1 : 2))) return;
  const int64_t n = c->p->batch, b = t->number[0] ? ((*e)->b + t->number[0] + n) % n : 0;
  if (c->entry[b].sk >= (*e)->sk) *e = &c->entry[b];
}

static bool other_sequence(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"keys and values", "keys", "values"};
  static const int by[] = {1, -1, 0}, which[] = {3, 1, 2};
  if (x->p->batch == 1) return false;
  if (v == 9) {
    fa_mistake_say(m, "cache_batch_idx ignored");
    m->p.kvcache.batch_idx.n = 0;
    return x->p->kvcache.present && x->p->kvcache.batch_idx.n > 0;
  }
  if (by[v % 3] < 0 && x->p->batch == 2) return false;
  m->twist.source = read_sequence;
  m->twist.number[0] = by[v % 3];
  m->twist.number[1] = which[v / 3];
  fa_mistake_say(m, "%s of %s", what[v / 3],
                 by[v % 3] == 0  ? "the first sequence"
                 : by[v % 3] > 0 ? "the sequence after"
                                 : "the sequence before");
  return true;
}

/* Pages that sequence b fills, and with the last one those that it has. */
static int64_t pages_filled(const fa_failure *x, int64_t b, bool whole) {
  const int64_t size = x->p->kvcache.page_size, n = x->place.entry[b].k_first + x->place.entry[b].sk;
  return whole ? n / size : (n + size - 1) / size;
}

/* Which physical page is read for page `page` of sequence b: the entry of another place, or one made up. */
static int64_t page_astray(const fa_failure *x, const fa_tensor *table, int64_t b, int64_t page, int v) {
  const int64_t n = table->shape[1];
  int64_t index[FA_MAX_RANK] = {b, page};
  if (v < 2 && page + 1 < pages_filled(x, b, v == 0)) index[1] = page + 1;
  if (v == 2 && page > 0) index[1] = page - 1;
  if (v == 3) index[1] = 0;
  if (v == 4) index[0] = 0;
  const int64_t entry = (int64_t)fa_tensor_get(table, index); /* behind the last page it may be any int32 */
  if (v == 5 || v == 6) return v == 5 ? page : b * n + page;
  return v == 7 ? entry + 1 : v == 8 ? entry - 1 : entry;
}

static const char *const pages[] = {"page after the right one",
                                    "page after the right one",
                                    "page before the right one",
                                    "first page for all",
                                    "pages of the first sequence",
                                    "page table ignored",
                                    "page table ignored, sequences one after another",
                                    "page number one too large",
                                    "page number one too small"};
enum { N_PAGES = sizeof pages / sizeof *pages };

static bool other_page(const fa_failure *x, int v, fa_mistake *m) {
  const fa_tensor table = x->in->t[FA_T_BLOCK_TABLE];
  const int64_t n_pages = x->in->t[FA_T_K].shape[0];
  if (x->p->kvcache.page_size == 0 || !fa_mistake_copy_input(m, FA_T_BLOCK_TABLE)) return false;
  for (int64_t b = 0; b < table.shape[0]; ++b)
    for (int64_t page = 0; page < table.shape[1]; ++page) {
      const int64_t index[FA_MAX_RANK] = {b, page};
      const int64_t astray = page_astray(x, &table, b, page, v);
      if (astray >= 0 && astray < n_pages) fa_tensor_set(&m->in.t[FA_T_BLOCK_TABLE], index, astray);
    }
  fa_mistake_say(m, "%s", pages[v]);
  return true;
}

static bool exchange(const fa_failure *x, fa_tensor_id is, fa_tensor_id for_what, const char *text,
                     fa_mistake *m) {
  if (!fa_mistake_fits(&x->in->t[is], &x->in->t[for_what])) return false;
  m->in.t[for_what] = x->in->t[is];
  fa_mistake_say(m, "%s", text);
  return true;
}

static bool k_for_v(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return exchange(x, FA_T_K, FA_T_V, "keys in place of the values", m);
}

static bool v_for_k(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return exchange(x, FA_T_V, FA_T_K, "values in place of the keys", m);
}

static bool q_for_k(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return exchange(x, FA_T_Q, FA_T_K, "queries in place of the keys", m);
}

const fa_hypothesis fa_hypotheses_of_heads[] = {
    {"other_kv_head_modulo", "query head h reads head h % heads_kv", FA_OF_ALL, 1, modulo},
    {"other_kv_head_neighbour", "the key/value head next to the right one is read", FA_OF_ALL, 8, neighbour},
    {"first_kv_head_for_all", "all query heads read the first key/value head", FA_OF_ALL, 3, first_for_all},
    {"other_sequence", "keys or values of another sequence are read", FA_OF_ALL, 10, other_sequence},
    {"other_page", "another page of the cache is read", FA_OF_ALL, N_PAGES, other_page},
    {"k_for_v", "the keys are taken for the values", FA_OF_ALL, 1, k_for_v},
    {"v_for_k", "the values are taken for the keys", FA_OF_ALL, 1, v_for_k},
    {"q_for_k", "the queries are taken for the keys", FA_OF_ALL, 1, q_for_k},
    {.name = NULL}};
