/* The LSE of a foreign kernel becomes the harness's: each convention by itself, and seen to matter. */
#include "cases/tensors/guard.h"
#include "gpu/contract/lse.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { B = 2, H = 2, SQ = 3, SK = 5 };

/* What our own tensor must hold. */
static double wanted(int64_t b, int64_t h, int64_t i) {
  return 0.5 + (double)(b * 7 + h * 3 + i) / 8;
}

typedef struct fixture {
  fa_problem p;
  fa_tensors t; /* LSE and slopes */
  fa_contract c;
  fa_tensor theirs;
  char memory[1024];
} fixture;

static void set_up(fixture *f) {
  const int64_t shape[3] = {B, H, SQ};
  fa_error err;
  memset(f, 0, sizeof *f);
  fa_problem_init(&f->p);
  f->p.batch = B, f->p.heads_q = f->p.heads_kv = H, f->p.seqlen_q = SQ, f->p.seqlen_k = SK;
  f->p.scale = 0.25;
  REQUIRE(fa_tensors_add(&f->t, FA_T_LSE, FA_F32, 3, shape, NULL, 0, &err) == FA_OK);
  fa_contract_init(&f->c);
}

static void make_varlen(fixture *f) {
  static const int32_t cu_q[] = {0, 1, 4}, cu_k[] = {0, 5, 7};
  const int64_t shape[2] = {H, 4};
  fa_error err;
  fa_tensors_free(&f->t);
  REQUIRE(fa_int32_array_set(&f->p.cu_seqlens_q, cu_q, 3) == FA_OK);
  REQUIRE(fa_int32_array_set(&f->p.cu_seqlens_k, cu_k, 3) == FA_OK);
  REQUIRE(fa_tensors_add(&f->t, FA_T_LSE, FA_F32, 2, shape, NULL, 0, &err) == FA_OK);
}

static void add_slopes(fixture *f) {
  static float slopes[H] = {0.5f, 0.25f};
  const int64_t shape[1] = {H};
  fa_error err;
  f->p.alibi.present = true, f->p.alibi.n = H;
  REQUIRE(fa_tensors_add(&f->t, FA_T_ALIBI_SLOPES, FA_F32, 1, shape, NULL, 0, &err) == FA_OK);
  memcpy(f->t.t[FA_T_ALIBI_SLOPES].data, slopes, sizeof slopes);
  f->p.mask.type = FA_MASK_CAUSAL;
}

static void tear_down(fixture *f) {
  fa_tensors_free(&f->t);
  fa_problem_free(&f->p);
}

static int64_t rows_of(const fixture *f, int64_t b) {
  return f->p.cu_seqlens_q.n ? f->p.cu_seqlens_q.v[b + 1] - f->p.cu_seqlens_q.v[b] : SQ;
}
static int64_t keys_of(const fixture *f, int64_t b) {
  return f->p.cu_seqlens_k.n ? f->p.cu_seqlens_k.v[b + 1] - f->p.cu_seqlens_k.v[b] : SK;
}

/* Writes what a kernel of these conventions writes for the wanted values, by this test's own arithmetic. */
static void write_theirs(fixture *f) {
  fa_contract_lse_describe(&f->p, &f->c, &f->theirs);
  f->theirs.data = f->memory;
  memset(f->memory, 0x11, sizeof f->memory);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < rows_of(f, b); ++i) {
        const int64_t start = f->p.cu_seqlens_q.n ? f->p.cu_seqlens_q.v[b] : 0;
        double x = wanted(b, h, i);
        if (f->c.lse_alibi == FA_LSE_ALIBI_COLUMN)
          x += (h == 0 ? 0.5 : 0.25) *
               (double)(i + (f->p.mask.align == FA_ALIGN_TOP_LEFT ? 0 : keys_of(f, b) - rows_of(f, b)));
        if (f->c.lse_unscaled) x /= f->p.scale;
        if (f->c.lse_base_2) x *= log2(exp(1));
        int64_t at[3] = {b, h, i};
        if (f->theirs.rank == 2) at[0] = h, at[1] = start + i;
        if (f->c.lse_layout == FA_LSE_TOKENS_HEADS) {
          if (f->theirs.rank == 2)
            at[0] = start + i, at[1] = h;
          else
            at[1] = i, at[2] = h;
        }
        fa_tensor_set(&f->theirs, at, x);
      }
}

/* The largest difference between what came out and what was wanted. */
static double distance(const fixture *f) {
  double worst = 0;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < rows_of(f, b); ++i) {
        int64_t at[3] = {b, h, i};
        if (f->p.cu_seqlens_q.n) at[0] = h, at[1] = f->p.cu_seqlens_q.v[b] + i;
        const double d = fabs(fa_tensor_get(&f->t.t[FA_T_LSE], at) - wanted(b, h, i));
        if (!(d <= worst)) worst = d;
      }
  return worst;
}

static double taken(fixture *f) {
  fa_error err = {""};
  CHECK_MSG(fa_contract_take_lse(&f->p, &f->c, &f->t, &f->theirs, &f->t.t[FA_T_LSE], &err) == FA_OK, "%s",
            err.text);
  return distance(f);
}

typedef struct convention {
  const char *name;
  fa_contract c;
  bool varlen, alibi, top_left;
  double allowed;
} convention;

/* Each must be undone, and must not be when it is not declared: then the values or the shape are wrong. */
static void test_conventions(void) {
  static const convention all[] = {
      {.name = "none", .c = {.lse_dtype = FA_F32}},
      {.name = "none, varlen", .c = {.lse_dtype = FA_F32}, .varlen = true},
      {.name = "base 2", .c = {.lse_dtype = FA_F32, .lse_base_2 = true}, .allowed = 1e-6},
      {.name = "unscaled", .c = {.lse_dtype = FA_F32, .lse_unscaled = true}},
      {.name = "both", .c = {.lse_dtype = FA_F32, .lse_unscaled = true, .lse_base_2 = true}, .allowed = 1e-6},
      {.name = "padded", .c = {.lse_dtype = FA_F32, .lse_layout = FA_LSE_PADDED}, .varlen = true},
      {.name = "tokens", .c = {.lse_dtype = FA_F32, .lse_layout = FA_LSE_TOKENS_HEADS}},
      {.name = "tokens, varlen",
       .c = {.lse_dtype = FA_F32, .lse_layout = FA_LSE_TOKENS_HEADS},
       .varlen = true},
      {.name = "f16", .c = {.lse_dtype = FA_F16}},
      {.name = "bf16", .c = {.lse_dtype = FA_BF16}},
      {.name = "f64", .c = {.lse_dtype = FA_F64}},
      {.name = "f64, base 2", .c = {.lse_dtype = FA_F64, .lse_base_2 = true}, .allowed = 1e-6},
      {.name = "column", .c = {.lse_dtype = FA_F32, .lse_alibi = FA_LSE_ALIBI_COLUMN}, .alibi = true},
      {.name = "column, top left",
       .c = {.lse_dtype = FA_F32, .lse_alibi = FA_LSE_ALIBI_COLUMN},
       .alibi = true,
       .top_left = true},
      {.name = "column, base 2, padded",
       .c = {.lse_dtype = FA_F32,
             .lse_alibi = FA_LSE_ALIBI_COLUMN,
             .lse_base_2 = true,
             .lse_layout = FA_LSE_PADDED},
       .alibi = true,
       .allowed = 1e-6},
  };
  for (size_t k = 0; k < sizeof all / sizeof *all; ++k) {
    fixture f;
    fa_error err = {""};
    set_up(&f);
    f.c = all[k].c;
    if (all[k].varlen) make_varlen(&f);
    if (all[k].alibi) add_slopes(&f);
    if (all[k].top_left) f.p.mask.align = FA_ALIGN_TOP_LEFT;
    write_theirs(&f);
    const double good = taken(&f);
    CHECK_MSG(good <= all[k].allowed, "%s: off by %g", all[k].name, good);
    if (k < 2) CHECK(fa_contract_lse_is_ours(&f.c));
    if (k >= 2) {
      CHECK_MSG(!fa_contract_lse_is_ours(&f.c), "%s", all[k].name);
      fa_contract_init(&f.c);
      const fa_status status = fa_contract_take_lse(&f.p, &f.c, &f.t, &f.theirs, &f.t.t[FA_T_LSE], &err);
      CHECK_MSG(status == FA_ERR_INPUT || distance(&f) > 0.01, "%s makes no difference", all[k].name);
    }
    tear_down(&f);
  }
}

/* Poison stays that poison; infinities, NaN and rows without keys are only moved. */
static void test_special_values(void) {
  fixture f;
  set_up(&f);
  f.c.lse_base_2 = true, f.c.lse_dtype = FA_F64, f.c.lse_alibi = FA_LSE_ALIBI_COLUMN;
  add_slopes(&f);
  f.p.seqlen_k = 2; /* the first row sees no key */
  write_theirs(&f);
  const int64_t first[3] = {0, 0, 0}, second[3] = {0, 0, 1}, third[3] = {0, 0, 2}, next[3] = {0, 1, 1};
  fa_tensor_set(&f.theirs, first, 0);
  fa_tensor_set(&f.theirs, second, INFINITY);
  fa_tensor_set(&f.theirs, third, NAN);
  fa_pattern_fill(f.theirs.data + fa_tensor_offset(&f.theirs, next), 8, FA_PATTERN_WORD(FA_PATTERN_POISON_B));
  taken(&f);
  const fa_tensor *ours = &f.t.t[FA_T_LSE];
  CHECK(fa_tensor_get(ours, first) == 0);
  CHECK(fa_tensor_get(ours, second) == INFINITY);
  CHECK(isnan(fa_tensor_get(ours, third)) && !fa_tensor_is_poison(ours, third, FA_POISON_A) &&
        !fa_tensor_is_poison(ours, third, FA_POISON_B));
  CHECK(fa_tensor_is_poison(ours, next, FA_POISON_B));
  tear_down(&f);
}

/* A case that pads the LSE has no total: three axes in every layout. */
static void test_padded_case(void) {
  const fa_lse_layout layouts[] = {FA_LSE_AS_CALL, FA_LSE_PADDED, FA_LSE_TOKENS_HEADS};
  for (int i = 0; i < 3; ++i) {
    fixture f;
    set_up(&f);
    make_varlen(&f);
    f.p.lse_padded = true;
    f.c.lse_layout = layouts[i];
    fa_contract_lse_describe(&f.p, &f.c, &f.theirs);
    CHECK(f.theirs.rank == 3 && f.theirs.shape[0] == B);
    CHECK(f.theirs.shape[i == 2 ? 2 : 1] == H && f.theirs.shape[i == 2 ? 1 : 2] == SQ);
    tear_down(&f);
  }
}

static void test_roundoff(void) {
  fa_contract c;
  fa_contract_init(&c);
  CHECK(fa_contract_lse_roundoff(&c) == 0);
  c.lse_base_2 = true;
  CHECK(fa_contract_lse_roundoff(&c) == 0x1p-23);
  c.lse_dtype = FA_BF16;
  CHECK(fa_contract_lse_roundoff(&c) == 0x1p-8 + 0x1p-23);
}

int main(void) {
  test_conventions();
  test_special_values();
  test_padded_case();
  test_roundoff();
  return check_done();
}
