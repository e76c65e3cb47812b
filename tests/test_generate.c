/* The generator: every case valid and its text form stable, a pure function of (profile, seed, index), and
 * everything that matters drawn often enough. -v prints how often. */
#include "cases/case.h"
#include "fuzz/generate.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define N_CASES 20000

/* ---- coverage ---- */

typedef struct counter {
  const char *name;
  int64_t at_least, n;
} counter;

#define MAX_COUNTERS 400
static counter counters[MAX_COUNTERS];
static int n_counters;

/* Names are literals, or live as long as the program. */
static void count(const char *name, int64_t at_least, bool hit) {
  int k = 0;
  while (k < n_counters && strcmp(counters[k].name, name) != 0) ++k;
  if (k == n_counters) {
    REQUIRE(n_counters < MAX_COUNTERS);
    counters[n_counters++] = (counter){.name = name, .at_least = at_least};
  }
  counters[k].n += hit;
}

static char *label(const char *format, int64_t x) {
  char text[64];
  snprintf(text, sizeof text, format, (long long)x);
  for (int k = 0; k < n_counters; ++k) /* made before: the counter keeps the name */
    if (strcmp(counters[k].name, text) == 0) return (char *)(uintptr_t)counters[k].name;
  char *copy = strdup(text);
  REQUIRE(copy);
  return copy;
}

static void cover_lengths(const fa_problem *p) {
  static const int64_t edges[] = {0,  1,  2,  7,   8,   15,  16,  17,  31,  32,  33,  63, 64,
                                  65, 80, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257};
  for (size_t k = 0; k < sizeof edges / sizeof *edges; ++k) {
    count(label("seqlen_q %lld", edges[k]), 60, p->seqlen_q == edges[k]);
    count(label("seqlen_k %lld", edges[k]), 60, p->seqlen_k == edges[k]);
  }
  count("seqlen_k % 128 == 64", 300, p->seqlen_k % 128 == 64);
  count("seqlen_k % 64 == 1", 600, p->seqlen_k % 64 == 1);
  count("seqlen_k % 32 == 1", 800, p->seqlen_k % 32 == 1);
  count("seqlen_q % 64 == 63", 300, p->seqlen_q % 64 == 63);
  count("seqlen_q > 8 seqlen_k > 0", 600, p->seqlen_k > 0 && p->seqlen_q > 8 * p->seqlen_k);
  count("seqlen_k > 8 seqlen_q > 0", 600, p->seqlen_q > 0 && p->seqlen_k > 8 * p->seqlen_q);
  count("seqlen_q == seqlen_k", 2000, p->seqlen_q == p->seqlen_k);
  count("seqlen_k > 1000", 100, p->seqlen_k > 1000);
}

static void cover_heads(const fa_problem *p) {
  static const int64_t dims[] = {1,  2,  3,  4,  5,  6,  7,   8,   16,  24,  32,
                                 40, 48, 56, 72, 80, 96, 112, 128, 160, 192, 256};
  int64_t group = p->heads_q / p->heads_kv;
  for (size_t k = 0; k < sizeof dims / sizeof *dims; ++k)
    count(label("head_dim %lld", dims[k]), 150, p->head_dim == dims[k]);
  count("head_dim 64 or 128, flash, 16 bit", 4000,
        p->family == FA_FLASH && p->dtype != FA_F32 && (p->head_dim == 64 || p->head_dim == 128));
  count("head_dim_v > head_dim", 500, p->head_dim_v > p->head_dim);
  count("head_dim_v < head_dim", 500, p->head_dim_v < p->head_dim);
  for (int64_t g = 1; g <= 8; ++g)
    if (g != 6 && g != 7) count(label("group of %lld", g), 200, group == g);
  count("one KV head of many query heads", 1500, p->heads_kv == 1 && p->heads_q > 1);
  count("batch > 1", 4000, p->batch > 1);
  count("batch > 256", 8, p->batch > 256);
  for (int f = 0; f < FA_N_FAMILIES; ++f)
    count(fa_family_name((fa_family)f), 1500, p->family == (fa_family)f);
  count("f16", 5000, p->dtype == FA_F16);
  count("bf16", 5000, p->dtype == FA_BF16);
  count("f32", 1500, p->dtype == FA_F32);
}

static bool empty_entry(const fa_int32_array *cu, int64_t b) {
  return cu->v[b + 1] == cu->v[b];
}

static void cover_varlen(const fa_problem *p) {
  bool varlen = fa_problem_is_varlen(p), first = false, last = false, middle = false, q_only = false,
       k_only = false, both = false;
  for (int64_t b = 0; varlen && b < p->batch; ++b) {
    bool q = empty_entry(&p->cu_seqlens_q, b), k = empty_entry(&p->cu_seqlens_k, b);
    first |= b == 0 && p->batch > 1 && (q || k);
    last |= b == p->batch - 1 && b > 0 && (q || k);
    middle |= b > 0 && b < p->batch - 1 && (q || k);
    q_only |= q && !k;
    k_only |= k && !q;
    both |= q && k;
  }
  count("variable length", 2500, varlen);
  count("varlen: 8 entries and more", 250, varlen && p->batch >= 8);
  count("varlen: first entry empty", 300, first);
  count("varlen: middle entry empty", 300, middle);
  count("varlen: last entry empty", 300, last);
  count("varlen: no queries, but keys", 300, q_only);
  count("varlen: queries, but no keys", 300, k_only);
  count("varlen: neither", 300, both);
  count("varlen: no query at all", 30, varlen && fa_problem_total_q(p) == 0);
  count("varlen: no key at all", 30, varlen && fa_problem_total_k(p) == 0);
  count("seqused_k", 700, p->seqused_k.n > 0);
  count("leftpad_k, not in a cache", 150, p->leftpad_k.n > 0 && p->family != FA_KVCACHE);
}

static void cover_masks(const fa_problem *p) {
  const fa_mask *m = &p->mask;
  bool window = m->type == FA_MASK_WINDOW;
  count("no mask", 3000, m->type == FA_MASK_NONE);
  count("causal", 4000, m->type == FA_MASK_CAUSAL);
  count("causal, top left", 500, m->type == FA_MASK_CAUSAL && m->align == FA_ALIGN_TOP_LEFT);
  count("causal, seqlen_q > seqlen_k: rows without keys", 800,
        m->type == FA_MASK_CAUSAL && m->align == FA_ALIGN_BOTTOM_RIGHT && p->seqlen_q > p->seqlen_k);
  count("window", 2000, window);
  count("window, top left", 100, window && m->align == FA_ALIGN_TOP_LEFT);
  count("window: left open", 150, window && m->left == -1);
  count("window: right open", 80, window && m->right == -1);
  count("window: left 0", 200, window && m->left == 0);
  count("window: right 0", 300, window && m->right == 0);
  count("window: left seqlen_k - 1", 150, window && m->left == p->seqlen_k - 1);
  count("window: left seqlen_k", 150, window && m->left == p->seqlen_k);
  count("window: left > seqlen_k", 150, window && m->left > p->seqlen_k);
  count("window: right seqlen_q - 1", 80, window && m->right == p->seqlen_q - 1);
  count("window: right > seqlen_q", 80, window && m->right > p->seqlen_q);
  count("window (0, 0)", 50, window && m->left == 0 && m->right == 0);
  count("window, variable length", 300, window && fa_problem_is_varlen(p));
}

static void cover_score(const fa_problem *p) {
  const double plain = fa_default_scale(p->head_dim);
  count("scale 0", 200, p->scale == 0);
  count("scale negative", 300, p->scale < 0);
  count("scale larger than usual", 300, p->scale > plain);
  count("softcap", 800, p->softcap > 0);
  count("ALiBi, standard slopes", 500, p->alibi.present && p->alibi.standard);
  count("ALiBi, own slopes", 300, p->alibi.present && !p->alibi.standard && p->alibi.n == p->heads_q);
  count("ALiBi, own slopes per entry", 80, p->alibi.present && p->alibi.n > p->heads_q);
  const fa_bias *b = &p->bias;
  for (int k = 0; k < 8; ++k) {
    static const char *const names[] = {"bias [1,1,1,k]", "bias [b,1,1,k]", "bias [1,h,1,k]",
                                        "bias [b,h,1,k]", "bias [1,1,q,k]", "bias [b,1,q,k]",
                                        "bias [1,h,q,k]", "bias [b,h,q,k]"};
    count(names[k], 60, b->present && (int)b->per_batch + 2 * (int)b->per_head + 4 * (int)b->per_query == k);
  }
  count("bias with gradient", 1000, b->present && b->grad && p->backward);
  count("bias without gradient", 400, b->present && !b->grad);
}

static void cover_dropout(const fa_problem *p) {
  static const double chances[] = {0.1, 0.17, 0.5, 0.9, 0.001, 1e-5, 0.99};
  static const char *const names[] = {"dropout 0.1",   "dropout 0.17", "dropout 0.5", "dropout 0.9",
                                      "dropout 0.001", "dropout 1e-5", "dropout 0.99"};
  const fa_dropout *d = &p->dropout;
  for (int k = 0; k < 7; ++k) count(names[k], 80, d->p == chances[k]);
  count("dropout, flash", 800, d->p > 0 && p->family == FA_FLASH);
  count("dropout, memeff", 800, d->p > 0 && p->family == FA_MEMEFF);
  count("dropout, variable length", 200, d->p > 0 && fa_problem_is_varlen(p));
  count("dropout seed > 2^32", 500, d->p > 0 && d->seed >> 32);
  count("dropout offset > 2^32", 500, d->p > 0 && d->offset >> 32);
  count("dropout offset just below 2^32", 50, d->p > 0 && d->offset < 1ull << 32 && d->offset >> 31);
  count("return_softmax", 300, p->return_softmax);
}

static void cover_families(const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  const fa_block_sparse *s = &p->block_sparse;
  count("cache: append", 800, c->n_new > 0);
  count("cache: pages", 600, c->page_size > 0);
  count("cache: page of 1", 30, c->page_size == 1);
  count("cache: pages and append", 300, c->page_size > 0 && c->n_new > 0);
  count("cache: other rows", 250, c->batch_idx.n > 0);
  count("cache: leftpad", 250, c->present && p->leftpad_k.n > 0);
  count("cache: rotary", 200, c->rotary_dim > 0 && !c->rotary_interleaved);
  count("cache: rotary, interleaved", 200, c->rotary_interleaved);
  count("cache: rotary of a part", 200, c->rotary_dim > 0 && c->rotary_dim < p->head_dim);
  count("cache: splits", 600, c->present && p->splits > 1);
  count("cache: one query", 350, c->present && p->seqlen_q == 1);
  count("splits elsewhere", 200, !c->present && p->splits > 1);
  count("blocks: density", 600, s->present && s->source == FA_BLOCKS_DENSITY);
  count("blocks: lists", 300, s->present && s->source == FA_BLOCKS_LISTS);
  count("blocks: density 0", 80, s->present && s->source == FA_BLOCKS_DENSITY && s->density == 0);
  count("blocks: density 1", 80, s->present && s->source == FA_BLOCKS_DENSITY && s->density == 1);
  count("blocks: lists per head", 90, s->present && s->source == FA_BLOCKS_LISTS && s->list_heads > 1);
  count("forward only", 300, !p->backward && p->family != FA_KVCACHE);
  count("grad_lse", 1500, p->grad_lse);
  count("empty_lse 0", 150, p->empty_lse == FA_EMPTY_ZERO);
  count("memeff: empty_lse -inf", 150, p->family == FA_MEMEFF && p->empty_lse == FA_EMPTY_NEG_INF);
}

static void cover_memory(const fa_case *c) {
  bool gap[3] = {false}, expand[3] = {false}, offset = false, odd = false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_stride_recipe *r = &c->strides[id];
    for (int a = 0; a < 3; ++a) gap[a] |= r->gap[a] > 0, expand[a] |= r->expand[a];
    offset |= r->offset > 0;
    odd |= r->offset % 2 == 1;
  }
  count("layout bhsd", 1500, c->layout == FA_LAYOUT_BHSD);
  count("layout sbhd", 1500, c->layout == FA_LAYOUT_SBHD);
  count("packed qkv", 300, c->packing == FA_PACK_QKV);
  count("packed kv", 500, c->packing == FA_PACK_KV);
  count("gap after entries", 2000, gap[0]);
  count("gap after rows", 2000, gap[1]);
  count("gap after heads", 2000, gap[2]);
  count("expanded over entries", 400, expand[0]);
  count("expanded over rows", 400, expand[1]);
  count("expanded over heads", 400, expand[2]);
  count("offset base", 1500, offset);
  count("odd base", 800, odd);
  count("k and v with different strides", 1000,
        memcmp(&c->strides[FA_T_K], &c->strides[FA_T_V], sizeof c->strides[0]) != 0);
  count("o and do with different strides", 1000,
        memcmp(&c->strides[FA_T_O], &c->strides[FA_T_DO], sizeof c->strides[0]) != 0);
  count("generic data", 6000, fa_case_is_generic(c));
  for (int f = 0; f < FA_N_FILLS; ++f) {
    bool used = false;
    for (int id = 0; id < FA_T_COUNT; ++id)
      used |=
          fa_case_has_fill((fa_tensor_id)id) && fa_case_uses(c, (fa_tensor_id)id) && (int)c->fill[id] == f;
    count(label("fill %lld", f), 25, used);
  }
}

static void cover(const fa_case *c) {
  cover_lengths(&c->problem);
  cover_heads(&c->problem);
  cover_varlen(&c->problem);
  cover_masks(&c->problem);
  cover_score(&c->problem);
  cover_dropout(&c->problem);
  cover_families(&c->problem);
  cover_memory(c);
}

/* ---- the checks ---- */

static void generate(const char *profile, uint64_t seed, int64_t index, fa_case *c) {
  fa_error err = {""};
  fa_status status = fa_generate(profile, seed, index, c, &err);
  CHECK_MSG(status == FA_OK, "%s %lld: %s", profile, (long long)index, err.text);
  REQUIRE(status == FA_OK);
}

static void check_case(const char *profile, int64_t index) {
  fa_case c, again;
  fa_error err = {""};
  char name[128];
  generate(profile, 11, index, &c);
  snprintf(name, sizeof name, "%s-11-%lld", profile, (long long)index);
  CHECK_MSG(strcmp(c.name, name) == 0, "%s is not %s", c.name, name);
  CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s: %s", c.name, err.text);
  char *line = fa_case_to_line(&c), *line_again = NULL;
  REQUIRE(line);
  fa_status status = fa_case_from_text(line, &again, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", c.name, err.text);
  if (status == FA_OK) {
    CHECK_MSG(fa_case_equal(&c, &again), "%s: text and back is another case: %s", c.name, line);
    line_again = fa_case_to_line(&again);
    CHECK_MSG(line_again && strcmp(line, line_again) == 0, "%s", c.name);
    fa_case_free(&again);
  }
  cover(&c);
  free(line);
  free(line_again);
  fa_case_free(&c);
}

/* Case i is the same alone, after others, and in another order; other seeds give other cases. */
static void check_purity(const char *profile) {
  enum { N = 40 };
  fa_case forward[N], c;
  int n_same = 0;
  for (int i = 0; i < N; ++i) generate(profile, 5, i, &forward[i]);
  for (int i = N - 1; i >= 0; --i) {
    generate(profile, 5, i, &c);
    CHECK_MSG(fa_case_equal(&c, &forward[i]), "%s %d depends on the calls before it", profile, i);
    fa_case_free(&c);
    generate(profile, 6, i, &c);
    n_same += c.data_seed == forward[i].data_seed;
    fa_case_free(&c);
  }
  CHECK_MSG(n_same == 0, "%s: the seed does nothing", profile);
  for (int i = 0; i < N; ++i) fa_case_free(&forward[i]);
}

static void check_errors(void) {
  fa_case c;
  fa_error err = {""};
  CHECK(fa_generate("no such profile", 1, 0, &c, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "varlen") && strstr(err.text, "everything"), "%s", err.text);
  CHECK(fa_generate("causal", 1, -1, &c, &err) == FA_ERR_INPUT);
}

int main(int argc, char **argv) {
  int n_profiles = 0;
  while (fa_generate_profiles[n_profiles].name) ++n_profiles;
  for (int k = 0; k < n_profiles; ++k)
    for (int64_t i = 0; i < N_CASES / n_profiles + 1; ++i) check_case(fa_generate_profiles[k].name, i);
  for (int k = 0; k < n_profiles; ++k) check_purity(fa_generate_profiles[k].name);
  check_errors();
  for (int k = 0; k < n_counters; ++k) {
    CHECK_MSG(counters[k].n >= counters[k].at_least, "%s: drawn %lld times, at least %lld expected",
              counters[k].name, (long long)counters[k].n, (long long)counters[k].at_least);
    if (argc > 1 && strcmp(argv[1], "-v") == 0)
      printf("%7lld (>= %4lld)  %s\n", (long long)counters[k].n, (long long)counters[k].at_least,
             counters[k].name);
  }
  return check_done();
}
