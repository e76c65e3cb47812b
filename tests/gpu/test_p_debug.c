/* The debug copy of P is 0, without the sign of a pair that is dropped, where the mask hides a pair and in the padding to 128
 * rows and keys: the judge asks only for visible pairs, and gpu/fa.h promises more. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <math.h>

enum { K = 150, HEADS = 2, ROWS = 128, KEYS = 256 };

#define CASE                                                                                                 \
  "{\"seqlen_q\":%d,\"seqlen_k\":150,\"heads_q\":2,\"dtype\":\"%s\",\"head_dim\":%d,\"return_softmax\":"     \
  "true,"                                                                                                    \
  "\"dropout\":{\"p\":%s,\"seed\":\"5\"},\"mask\":{\"type\":\"window\",\"left\":40,\"right\":3}}"

static bool sees(int n_rows, int row, int key) {
  const int on = row + K - n_rows;
  return row < n_rows && key < K && key >= on - 40 && key <= on + 3;
}

static void check_head(const fa_tensor *p, int n_rows, int head) {
  int hidden = 0, zeros = 0;
  for (int row = 0; row < ROWS; ++row) {
    for (int key = 0; key < KEYS; ++key) {
      const double x = fa_tensor_get(p, (int64_t[FA_MAX_RANK]){0, head, row, key});
      if (sees(n_rows, row, key))
        zeros += x == 0;
      else
        hidden += !(x == 0) || signbit(x);
    }
  }
  CHECK_MSG(hidden == 0, "head %d: %d masked or padding elements are not 0", head, hidden);
  CHECK_MSG(zeros == 0, "head %d: %d visible ones are", head, zeros);
}

static void check(int n_rows, const char *type, int head_dim, const char *dropped) {
  char text[400], why[256];
  fa_case c;
  fa_tensors t;
  fa_error err;
  fa_outcome out = {0};
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .schedule_seed = 1, .n_threads = 1};
  snprintf(text, sizeof text, CASE, n_rows, type, head_dim, dropped);
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK && fa_case_build(&c, &t, &err) == FA_OK);
  REQUIRE(fa_backend_host.supports(NULL, &c.problem, why, sizeof why) & FA_PASS_FORWARD);
  REQUIRE(fa_backend_host.run(NULL, &c.problem, &t, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_OK, "%s", out.text);
  for (int head = 0; head < HEADS; ++head) check_head(&t.t[FA_T_P_DEBUG], n_rows, head);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

int main(void) {
  check(70, "f16", 64, "0.25");
  check(70, "bf16", 96, "0.5");
  check(40, "f16", 64, "0.25"); /* a block of 64 rows has more than its own to clear */
  check(40, "bf16", 256, "0.5");
  return check_done();
}
