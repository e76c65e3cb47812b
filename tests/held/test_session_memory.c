/* A session keeps no memory; and when any allocation before its first case fails, it says so, and does not judge fewer cases instead. */
#include "cases/base/sha256.h"
#include "cases/codec/json.h"
#include "fuzz/campaign/session.h"
#include "fuzz/options/cases_select.h"
#include "report/unfinished.h"
#include "tests/held/guarded.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fa_backend *const backends[] = {&fa_backend_ref_f32, NULL};

/* One with causal masks and grouped heads before one with neither: hidden cases are for words that neither has. */
#define CASES                                                                                                \
  "--case",                                                                                                  \
      "{\"name\":\"a\",\"dtype\":\"f32\",\"heads_q\":2,\"seqlen_q\":9,\"head_dim\":8,\"backward\":false,"    \
      "\"mask\":{\"type\":\"causal\"}}",                                                                     \
      "--case",                                                                                              \
      "{\"name\":\"b\",\"dtype\":\"f32\",\"seqlen_q\":4,\"seqlen_k\":7,\"head_dim\":8,\"backward\":false}"

static const char contract[] =
    "{\"fa_exec\":2,\"name\":\"a\",\"dtypes\":[\"f32\"],\"features\":[\"causal\",\"bottom_right\",\"gqa\"],"
    "\"passes\":[\"forward\"],\"limits\":{\"seqlen_q\":{\"max\":20},\"seqlen_k\":{\"max\":20},\"batch\":{"
    "\"max\":2},"
    "\"heads_q\":{\"max\":4},\"head_dim\":{\"max\":16}}}";
static const char secret[] = "5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c";

typedef struct asked {
  fa_cli cli;
  char hash[65]; /* of its cases, a line each */
  fa_case_list list;
  fa_case_origin *origins;
} asked;

static void hash_cases(asked *a) {
  fa_sha256 sha;
  fa_sha256_init(&sha);
  for (int64_t i = 0; i < a->list.n; ++i) {
    char *line = fa_case_to_line(&a->list.v[i]);
    REQUIRE(line);
    fa_sha256_add(&sha, line, strlen(line));
    fa_sha256_add(&sha, "\n", 1);
    free(line);
  }
  fa_sha256_hex(&sha, a->hash);
}

static asked ask(void) {
  static char *words[] = {"fa-verify", "run", CASES, "--backend", "ref-f32", "-q", NULL};
  asked a = {.cli = {.backends = backends}};
  fa_error err = {""};
  REQUIRE(fa_cli_parse(&a.cli, (int)(sizeof words / sizeof *words) - 1, words) == 0);
  REQUIRE(fa_cli_load_cases(&a.cli, &a.list, &a.origins, &err) == FA_OK);
  hash_cases(&a);
  return a;
}

static void forget(asked *a) {
  fa_case_list_free(&a->list);
  free(a->origins);
  fa_cli_free(&a->cli);
}

/* As fa_session_open does for a candidate behind a wall, which this is not. */
static fa_status add_rules(fa_session *s, const fa_cli *cli, fa_error *err) {
  s->cli = cli;
  s->rules = malloc(sizeof *s->rules);
  if (!s->rules) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  return fa_rules_init(s->rules, FA_TRUSTED_LAYERS | 1u << FA_LAYER_HIDDEN, contract, NULL, err);
}

/* What comes of a session before its first case. */
typedef struct begun {
  int code;
  int64_t n_items;
  bool has_lanes, is_secret; /* what it draws from is the secret above */
} begun;

/* hidden: what the run of a candidate is asked with; NULL: the run trusts its subject. */
static begun begin(const asked *a, const fa_cli *hidden) {
  static fa_session s;
  fa_error err = {""};
  int code = fa_session_open(&s, &a->cli);
  if (code == 0) {
    s.source = (fa_source){.list = &a->list, .origin = a->origins};
    fa_status status = hidden ? add_rules(&s, hidden, &err) : FA_OK;
    if (status == FA_OK) status = fa_session_select(&s, fa_source_count(&s.source, a->list.n), &err);
    CHECK(status == FA_OK || strstr(err.text, "out of memory"));
    if (status != FA_OK) code = fa_cli_fail(status, &err);
  }
  const begun b = {code, s.n_items, code == 0 && s.lane,
                   code == 0 && s.rules && strcmp(s.rules->secret.hex, secret) == 0};
  CHECK(code != 0 || !s.rules || strcmp(s.rules->cases_sha256, a->hash) == 0);
  fa_session_free(&s);
  return b;
}

/* Allocation 0, 1, 2 ... fails, until there are no more; of the thousands that drawing takes, ever fewer. */
static void fail_some(const asked *a, const fa_cli *hidden, int64_t usual) {
  const long before = guarded_live();
  for (long i = 0; i < 1000000; i += i < 200 ? 1 : i / 8) {
    guarded_fail_after(i);
    const begun b = begin(a, hidden);
    const bool unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(guarded_live() == before, "allocation %ld: %ld blocks before, %ld after", i, before,
              guarded_live());
    CHECK_MSG(b.code == FA_EXIT_INFRASTRUCTURE || (b.has_lanes && b.n_items == usual),
              "allocation %ld: exit %d, %lld items", i, b.code, (long long)b.n_items);
    if (unused) return;
  }
  CHECK(!"an end");
}

static void test_begin(bool hides, int64_t want) {
  asked a = ask();
  fa_cli with = a.cli;
  const fa_cli *hidden = hides ? &with : NULL;
  with.secret = secret;
  const begun b = begin(&a, hidden);
  CHECK_MSG(b.code == 0 && b.n_items == want && b.is_secret == hides, "exit %d, %lld items", b.code,
            (long long)b.n_items);
  fail_some(&a, hidden, want);
  forget(&a);
}

/* The secret of a run that is resumed is the one that its journal begins with. */
static void test_resumed(void) {
  char path[300], name[] = "/tmp/fa-test-session-XXXXXX";
  asked a = ask();
  fa_cli with = a.cli;
  const int fd = mkstemp(name);
  fa_report_journal_of(name, path, sizeof path);
  FILE *f = fopen(path, "w");
  REQUIRE(f && fprintf(f, "{\"run\":{\"untrusted\":{\"secret\":\"%s\"}}}\n", secret) > 0 && fclose(f) == 0);
  with.report = name;
  with.resume = true;
  const long before = guarded_live();
  const begun b = begin(&a, &with);
  CHECK(b.code == 0 && b.is_secret);
  CHECK_MSG(guarded_live() == before, "%ld blocks before, %ld after", before, guarded_live());
  REQUIRE(close(fd) == 0 && unlink(path) == 0 && unlink(name) == 0);
  forget(&a);
}

/* The report of a run and its journal, which say of what they are: both are begun, or there is no memory for them. What was made by then
 * is left to the process, which ends. */
static fa_status begin_report(fa_session *s, long fail_after, bool *unused) {
  fa_error err = {""};
  int code = -1;
  guarded_fail_after(fail_after);
  fa_status status = fa_report_start(&s->report, s->cli, &s->choice[0], &err);
  if (status == FA_OK) status = fa_session_open_journal(s, &code, &err);
  *unused = guarded_waits();
  guarded_fail_after(-1);
  CHECK_MSG(status == FA_OK || strstr(err.text, "out of memory"), "%s", err.text);
  CHECK(status != FA_OK || (s->run && s->report.require && s->journal.path && code == -1));
  fa_journal_close(&s->journal, true, NULL);
  return status;
}

static void test_begin_report(void) {
  static fa_session s;
  char name[] = "/tmp/fa-test-session-XXXXXX";
  asked a = ask();
  const int fd = mkstemp(name);
  fa_error err = {""};
  bool unused = false;
  a.cli.report = name, a.cli.require = "all";
  for (long i = 0; i < 1000 && !unused; ++i) {
    const long before = guarded_live();
    REQUIRE(fa_session_open(&s, &a.cli) == 0);
    s.source = (fa_source){.list = &a.list, .origin = a.origins};
    REQUIRE(fa_session_select(&s, a.list.n, &err) == FA_OK);
    const fa_status status = begin_report(&s, i, &unused);
    CHECK(!unused || status == FA_OK);
    fa_session_free(&s);
    CHECK_MSG(!unused || guarded_live() == before, "%ld blocks before, %ld after", before, guarded_live());
  }
  CHECK(unused);
  REQUIRE(close(fd) == 0 && unlink(name) == 0);
  a.cli.report = NULL, a.cli.require = NULL;
  forget(&a);
}

int main(void) {
  cJSON_InitHooks(&(cJSON_Hooks){malloc, free}); /* a library of its own would take its memory elsewhere */
  test_begin(false, 2);
  test_begin(true, 8);
  test_resumed();
  test_begin_report();
  return check_done();
}
