/* plugin_fuzzer's plugin: what its script says becomes of a case what it should, so that the target reaches every answer. */
#include "fuzz/inputs/hostile_plugin.h"

#include "cases/codec/json.h"
#include "fuzz/one/run_case.h"
#include "gpu/backends/plugin_backend.h"
#include "report/result.h"
#include "tests/support/check.h"

#include <string.h>

static fa_result result; /* large */

typedef struct script {
  uint8_t head[FA_HOSTILE_PLUGIN_HEAD];
  const char *texts;
} script;

#define SOUND "mine\n\n{\"outputs\": [\"o\"], \"passes\": [\"forward\"]}\nnot this\na reason\na_kernel\no\n"

static fa_status open_it(const script *s, void **self, fa_error *err) {
  static uint8_t bytes[9000];
  const size_t n = strlen(s->texts);
  memcpy(bytes, s->head, sizeof s->head);
  memcpy(bytes + sizeof s->head, s->texts, n);
  return fa_plugin_open_table(fa_hostile_plugin_table(bytes, sizeof s->head + n), "hostile", self, err);
}

static void expect_refusal(const script *s, fa_status want, const char *text) {
  void *self = NULL;
  fa_error err = {""};
  CHECK(open_it(s, &self, &err) == want);
  CHECK_MSG(strstr(err.text, text), "\"%s\" is not \"%s\"", err.text, text);
}

static void expect_state(const script *s, fa_state want, const char *reason) {
  void *self = NULL;
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"dtype\":\"f32\",\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}", &c,
                            &err) == FA_OK);
  REQUIRE(open_it(s, &self, &err) == FA_OK);
  const fa_run_config config = {.backend = &fa_backend_plugin, .backend_self = self, .n_threads = 1};
  fa_result_init(&result);
  fa_run_case(&c, &config, &result, &err);
  CHECK_MSG(result.state == want && strstr(result.reason, reason), "%s: %s", fa_state_name(result.state),
            result.reason);
  fa_result_free(&result);
  fa_backend_plugin.close(self);
  fa_case_free(&c);
}

static void test_tables(void) {
  expect_refusal(&(script){{2, 9}, SOUND}, FA_ERR_INPUT, "made for version 9");
  expect_refusal(&(script){{0, 0, 1, 30}, SOUND}, FA_ERR_INPUT, "fa_plugin_table has");
  expect_refusal(&(script){{0, 0, 0, 0, 1}, SOUND}, FA_ERR_INPUT, "name and run");
  expect_refusal(&(script){{1, 0, 0, 0, 16}, SOUND}, FA_ERR_INPUT, "name, supports and run");
  expect_refusal(&(script){{0, 0, 0, 0, 0, 1}, "mine\nno card\n"}, FA_ERR_DEVICE, "hostile: no card");
  /* A text without its NUL fills the buffer and ends with it. */
  expect_refusal(&(script){{0, 0, 0, 0, 0, 1, 0, 0, 2}, "mine\nno card,\n"}, FA_ERR_DEVICE,
                 "hostile: no card,no card,");
  expect_refusal(&(script){{0}, "mine\n\n{\"outputs\": 3}\n"}, FA_ERR_INPUT, "outputs");
}

static void test_answers(void) {
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 0}, SOUND}, FA_SKIP, "not this");
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3, 2}, SOUND}, FA_ERROR, "a reason");
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3, 1, 127}, SOUND}, FA_FAIL, "a reasona reason");
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3}, "mine\n\n{}\n\n\n\no lse mine\n"}, FA_CRASH,
               "makes no sense");
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3}, SOUND}, FA_FAIL, ""); /* it wrote nothing */
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3, 0, 0, 1, 30}, SOUND "four"}, FA_OOB, "");
  expect_state(&(script){{0, 0, 0, 0, 0, 0, 3, 0, 0, 0x80, 32}, SOUND "four"}, FA_INPUT_MODIFIED, "");
}

int main(void) {
  test_tables();
  test_answers();
  return check_done();
}
