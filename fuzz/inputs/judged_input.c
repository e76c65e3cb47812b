#include "fuzz/inputs/judged_input.h"

#include "fuzz/inputs/fuzzer.h"
#include "fuzz/one/run_case.h"

#include <math.h>
#include <stdio.h>

enum { N_MASKS = 6, N_RESIDUES = 4, N_NEARNESS = 40, N_FLAGS = 12 };

typedef struct counters {
  uint8_t tile[FA_INPUT_KINDS][N_MASKS][N_RESIDUES][N_RESIDUES];
  uint8_t flags[FA_INPUT_KINDS][N_FLAGS];
  uint8_t nearness[FA_INPUT_KINDS][FA_T_COUNT][N_NEARNESS];
} counters;

__attribute__((section("__libfuzzer_extra_counters"))) static counters seen;

static int mask_of(const fa_mask *m) {
  if (!fa_mask_has_edges(m)) return m->type;
  return 2 + (m->left >= 0) + 2 * (m->right >= 0);
}

static int residue_of(int64_t n) {
  const int64_t r = n % 64;
  return n == 0 ? 0 : r == 0 ? 1 : r == 1 || r == 63 ? 2 : 3;
}

/* Half octaves below half of the bound; above that, half octaves of the rest. */
static int nearness_of(double ratio) {
  if (!(ratio > 0)) return 0;
  const double x = ratio < 0.5 ? 20 + 2 * log2(ratio * 2)
                   : ratio < 1 ? 20 - 2 * log2(2 * (1 - ratio))
                               : N_NEARNESS - 1;
  return x < 0 ? 0 : x >= N_NEARNESS ? N_NEARNESS - 1 : (int)x;
}

static void count(const fa_case *c, const fa_result *r, int kind) {
  const fa_problem *p = &c->problem;
  const bool flags[N_FLAGS] = {p->backward,        p->heads_q > p->heads_kv,  p->batch > 1,
                               p->seqused_k.n > 0, p->leftpad_k.n > 0,        p->deterministic,
                               p->grad_lse,        p->seqlen_q > p->seqlen_k, c->packing != FA_PACK_NONE,
                               p->scale < 0,       p->dtype == FA_BF16,       p->head_dim % 32 != 0};
  if (r->state == FA_SKIP) return;
  seen.tile[kind][mask_of(&p->mask) % N_MASKS][residue_of(p->seqlen_q)][residue_of(p->seqlen_k)] = 1;
  for (int i = 0; i < N_FLAGS; ++i) seen.flags[kind][i] = flags[i];
  for (int i = 0; i < r->n_verdicts; ++i)
    seen.nearness[kind][r->verdict[i].id][nearness_of(r->verdict[i].worst_ratio)] = 1;
}

void fa_judged_input_run(const uint8_t *data, size_t size, const fa_judged_target *target) {
  static fa_result r; /* large */
  fa_case c;
  fa_error err = {""};
  if (target->input->to_case(data, size, &c, &err) != FA_OK) return;
  const fa_run_config config = {
      .backend = target->backend, .backend_self = target->backend_self, .n_threads = 1};
  fa_result_init(&r);
  const fa_status status = fa_run_case(&c, &config, &r, &err);
  snprintf(r.backend, sizeof r.backend, "%s", target->name);
  if (fa_fuzzer_is_finding(&r, status)) fa_fuzzer_finding(&c, &r);
  count(&c, &r, target->kind_of(&c, &r));
  fa_result_free(&r);
  fa_case_free(&c);
}
