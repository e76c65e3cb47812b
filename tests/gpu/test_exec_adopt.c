/* What a probe has found out about a child holds for the next child too; what a child says itself is kept. */
#include "gpu/backends/exec_subject.h"
#include "gpu/backends/plugin_backend.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char *const command =
    "python3 tests/exec/child2.py --hello '{\"arithmetic\":{},\"lse\":{\"layout\":\"tokens_heads\"}}'";

static fa_declaration declared(void *self, fa_dtype dtype) {
  fa_problem p;
  fa_declaration d;
  fa_problem_init(&p);
  p.dtype = dtype;
  fa_backend_exec.declare(self, &p, &d);
  fa_problem_free(&p);
  return d;
}

static void check_adopted(void *self) {
  const fa_declaration half = declared(self, FA_F16), full = declared(self, FA_F32);
  CHECK(half.contract.lse_base_2 && half.contract.lse_layout == FA_LSE_TOKENS_HEADS);
  CHECK(half.arithmetic_given && strcmp(half.arithmetic.name, "mma-ampere") == 0);
  CHECK(!full.contract.lse_base_2 && !full.arithmetic_given);
}

int main(void) {
  void *self = NULL;
  fa_error err = {""};
  if (system("command -v python3 >/dev/null") != 0) return 77;
  signal(SIGPIPE, SIG_DFL);
  REQUIRE(fa_backend_exec.open(command, &self, &err) == FA_OK);
  fa_declaration found = declared(self, FA_F16);
  CHECK(!found.arithmetic_given && found.contract_given == (FA_CONTRACT_LSE_LAYOUT | FA_CONTRACT_O_OF_EMPTY));
  found.contract_given = FA_CONTRACT_LSE_BASE | FA_CONTRACT_LSE_LAYOUT;
  found.contract.lse_base_2 = true;
  found.contract.lse_layout = FA_LSE_PADDED;
  found.arithmetic_given = fa_arithmetic_named("mma-ampere", FA_F16, &found.arithmetic);
  fa_backend_exec.adopt(self, FA_F16, &found);
  check_adopted(self);
  fa_exec_subject *x = self;
  x->reach->close(x, true, NULL, 0);
  x->lines = NULL;
  REQUIRE(fa_exec_need(x, &err) == FA_OK);
  check_adopted(self);
  fa_backend_exec.close(self);
  return check_done();
}
