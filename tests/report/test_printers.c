/* Printers, reports and the pipe format on made-up results. */
#include "tests/report/merged_trees.h"
#include "tests/support/check.h"

#include "cases/base/atomic_file.h"
#include "cases/base/sha256.h"
#include "fuzz/workers/wire.h"
#include "report/json.h"
#include "report/text/line.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

static void make_failure(fa_result *r) {
  fa_result_init(r);
  r->state = FA_FAIL;
  r->name = strdup("it's <a> \"name\" & more");
  r->case_line = strdup("{\"name\":\"it's\",\"seqlen_q\":13}");
  snprintf(r->backend, sizeof r->backend, "ref-f32");
  snprintf(r->profile, sizeof r->profile, "simt-f32");
  r->schedule_seed = 18446744073709551615u;
  r->passes = 3;
  r->seconds = 0.25;
  r->worst_ratio = INFINITY;
  r->n_verdicts = 2;
  r->verdict[0] = (fa_verdict){.id = FA_T_O, .rank = 4, .dtype = FA_F16, .judged = true, .count = 832};
  fa_verdict *v = &r->verdict[1];
  *v = (fa_verdict){
      .id = FA_T_DQ, .rank = 4, .dtype = FA_BF16, .judged = true, .count = 832, .bad = 3, .class_bad = 1};
  v->worst_ratio = INFINITY;
  v->fail = true;
  snprintf(v->where, sizeof v->where, "every bad row has q == 12");
  snprintf(v->by_axis[0].axis, sizeof v->by_axis[0].axis, "q");
  snprintf(v->by_axis[0].text, sizeof v->by_axis[0].text, "q == 12");
  v->n_worst = 2;
  v->worst[0] = (fa_point){.index = {0, 12, 0, 5},
                           .got_bits = 0x7fc0,
                           .got = NAN,
                           .want = 0.1,
                           .err = INFINITY,
                           .bound = 1e-3,
                           .ratio = INFINITY,
                           .class_bad = true};
  v->worst[1] = (fa_point){.index = {0, 12, 0, 6},
                           .got_bits = 0x3f80,
                           .got = 1,
                           .want = 0.1,
                           .err = 0.9,
                           .bound = 0.003,
                           .ratio = 300,
                           .quant = 0.001,
                           .accum = 0.0005,
                           .half_ulp = 0.0015};
  r->end_to_end[1] = true;
  r->n_explanations = 1;
  r->explanation[0] = (fa_explanation){.hypothesis = "last_key_lost",
                                       .text = "the last key is lost",
                                       .tensors = FA_TENSOR_BIT(FA_T_DQ),
                                       .wrong = 3,
                                       .share = 1,
                                       .sampled = true};
}

static void test_states(void) {
  for (int s = 0; s < FA_N_STATES; ++s) {
    fa_state back;
    CHECK(fa_state_from_name(fa_state_name((fa_state)s), &back) && back == (fa_state)s);
  }
  fa_state ignored;
  CHECK(!fa_state_from_name("pass", &ignored));
  CHECK(fa_state_is_failure(FA_UNTESTED)); /* a result that was never set is a failure */
  CHECK(fa_state_is_failure(FA_VACUOUS) && fa_state_is_failure(FA_NOT_REJECTED) &&
        fa_state_is_failure(FA_HANG));
  CHECK(!fa_state_is_failure(FA_PASS) && !fa_state_is_failure(FA_SKIP) && !fa_state_is_failure(FA_ERROR));
}

/* malformed: all errors are malformed cases. */
static int code_with(const fa_state *states, int n, bool malformed) {
  fa_summary s = {0};
  fa_result r;
  fa_result_init(&r);
  for (int i = 0; i < n; ++i) {
    r.state = states[i];
    r.malformed = malformed && r.state == FA_ERROR;
    fa_summary_add(&s, &r);
  }
  CHECK(s.total == n && s.passed + s.failed + s.skipped + s.error == n);
  return fa_summary_exit_code(&s);
}

static int code_of(const fa_state *states, int n) {
  return code_with(states, n, false);
}

static void test_exit_codes(void) {
  CHECK(code_of((fa_state[]){FA_PASS, FA_SKIP}, 2) == 0);
  CHECK(code_of((fa_state[]){FA_PASS, FA_ERROR, FA_VACUOUS}, 3) == 1);
  CHECK(code_of((fa_state[]){FA_PASS, FA_UNTESTED}, 2) == 1);
  CHECK(code_of((fa_state[]){FA_PASS, FA_ERROR}, 2) == 3);
  CHECK(code_of((fa_state[]){FA_SKIP, FA_SKIP}, 2) == 4);
  CHECK(code_of(NULL, 0) == 4);
  CHECK(code_with((fa_state[]){FA_PASS, FA_ERROR}, 2, true) == 2);
  CHECK(code_with((fa_state[]){FA_FAIL, FA_ERROR}, 2, true) == 1);
  CHECK(code_with((fa_state[]){FA_ERROR}, 1, true) == 2);
}

static char *line_in(const fa_result *r, const fa_line_style *style) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  fa_line_print(out, r, style);
  fclose(out);
  return text;
}

static char *line_of(const fa_result *r, int verbosity) {
  const fa_line_style style = {.verbosity = verbosity, .program = "fa-verify"};
  return line_in(r, &style);
}

static void same_text(char *text, const char *wanted) {
  CHECK_MSG(strcmp(text, wanted) == 0, "\n%s\ninstead of\n%s", text, wanted);
  free(text);
}

#define CASE_COMMAND                                                                                         \
  "fa-verify run --backend ref-f32 --schedule-seed 18446744073709551615 --case "                             \
  "'{\"name\":\"it'\\''s\",\"seqlen_q\":13}'"

/* -v: everything about every tensor. */
static void test_full_lines(void) {
  fa_result r;
  make_failure(&r);
  char *text = line_of(&r, 1);
  char *end = strchr(text, '\n');
  REQUIRE(end);
  *end = 0;
  CHECK_MSG(strncmp(text, "FAIL it's <a>", 13) == 0, "%s", text);
  CHECK_MSG(strstr(text, "dq (end to end): 3 of 832 bad") != NULL, "%s", text);
  CHECK_MSG(strstr(text, "at [0,12,0,5] got nan want 0.1") != NULL, "%s", text);
  CHECK_MSG(strstr(text, "every bad row has q == 12") != NULL, "%s", text);
  const char *repro = "repro: " CASE_COMMAND;
  const char *at = strstr(text, repro);
  CHECK_MSG(at && strlen(at) == strlen(repro), "the line ends with the repro: %s", text);
  CHECK_MSG(strncmp(end + 1, "    explained by: the last key is lost (", 40) == 0, "%s", end + 1);
  CHECK_MSG(
      strstr(end + 1,
             "[0,12,0,6]  got 1 (0x3f80)  want 0.1  err 0.9  bound 0.003 = quant 0.001 + accum 0.0005 + "
             "half-ulp 0.0015") != NULL,
      "%s", end + 1);
  free(text);
  r.n_explanations = 0;
  text = line_of(&r, 1);
  CHECK_MSG(strstr(text, "\n    not explained\n") != NULL, "%s", text);
  free(text);
  fa_result_free(&r);
}

#define HEAD "FAIL it's <a> \"name\" & more  ref-f32  fwd+bwd  r=inf  250 ms\n"

static void test_brief_lines(void) {
  fa_result r;
  make_failure(&r);
  same_text(
      line_of(&r, 0), HEAD
      "    dq (end to end): 3 of 832 bad, 1 NaN/Inf where they must not be or missing; every bad row has q "
      "== "
      "12\n"
      "    explained by: the last key is lost (100 % of 3 elements looked at within bounds; without it 0 %)\n"
      "    worst: dq[0,12,0,5] got nan, want 0.1\n"
      "    repro: " CASE_COMMAND "\n");

  /* An element that is out of bounds by very little, counts of thousands, a second tensor, an explanation of one of
   * the two, a report. */
  fa_verdict *o = &r.verdict[0], *dq = &r.verdict[1];
  o->fail = true;
  o->bad = 1234567;
  o->count = 2000000;
  o->n_worst = 1;
  o->worst[0] = dq->worst[1];
  o->worst[0].got = 0.1000001;
  snprintf(o->where, sizeof o->where, "every bad row has q >= 1024: 1234567 of 1300000 elements there");
  for (int a = 0; a < 4; ++a) snprintf(o->by_axis[a].axis, sizeof o->by_axis[a].axis, "%c", "bqhd"[a]);
  r.explanation[0].sampled = false;
  r.explanation[0].wrong = 1000;
  r.n_explanations = 2;
  snprintf(r.explanation[1].text, sizeof r.explanation[1].text, "a window one key short");
  snprintf(r.notes, sizeof r.notes, "backward not judged: why; lse seems odd");
  const fa_line_style style = {.program = "fa-verify", .report = "my out.json", .number = 3};
  same_text(
      line_in(&r, &style), HEAD
      "    o: 1,234,567 of 2,000,000 bad; every bad row has q >= 1024: 1,234,567 of 1,300,000 elements "
      "there; "
      "also dq (gradients end to end)\n"
      "    explained by: the last key is lost (100 % of 1,000 elements of dq within bounds; without it 0 %); "
      "just as well by: a window one key short\n"
      "    worst: o[0,12,0,6] (b,q,h,d) got 0.1000001, want 0.1\n"
      "    bound: err 0.9 is 300 times the bound 0.003 (quant 0.001 + accum 0.0005 + half ulp 0.0015)\n"
      "    repro: fa-verify repro 'my out.json:3'\n");
  r.n_explanations = 0; /* then the notes have the word, but for what was left out */
  char *text = line_in(&r, &style);
  CHECK_MSG(strstr(text, "\n    note: lse seems odd\n") != NULL, "%s", text);
  free(text);

  r.waived = true;
  snprintf(r.waiver, sizeof r.waiver, "waiver 0: known");
  text = line_in(&r, &style);
  CHECK_MSG(strstr(text, "250 ms  FAIL  waiver 0: known\n    o: 1,234,567 of") != NULL, "%s", text);
  CHECK_MSG(strstr(text, "repro") == NULL, "%s", text);
  free(text);
  fa_result_free(&r);
}

/* Every element is within its bound, and their mean is too low. */
static void make_biased(fa_result *r) {
  make_failure(r);
  r->n_explanations = 0;
  r->end_to_end[1] = false;
  r->verdict[1] = (fa_verdict){.id = FA_T_DQ,
                               .rank = 4,
                               .count = 16384,
                               .fail = true,
                               .n_stat = 16384,
                               .bias = -0.4123456,
                               .stat_bad = true,
                               .stat_which = FA_STATISTIC_BIAS,
                               .stat_count = 16384,
                               .stat_value = -0.4123456,
                               .stat_low = -0.05,
                               .stat_high = 0.05};
}

static void test_statistics_lines(void) {
  fa_result r;
  make_biased(&r);
  fa_verdict *v = &r.verdict[1];
  same_text(line_of(&r, 0), HEAD
            "    dq: no element is out of bounds, but the errors are systematically low\n"
            "    statistic: mean of err / sigma is -0.4123 over 16,384 elements (allowed -0.05 .. 0.05)\n"
            "    means: truncation instead of rounding, or a term that is lost, would do that\n"
            "    repro: " CASE_COMMAND "\n");
  char *text = line_of(&r, 1);
  CHECK_MSG(strstr(text, "\n      the errors are systematically low: mean of err / sigma is -0.4123 over") !=
                NULL,
            "%s", text);
  free(text);
  v->stat_value = 0.4;
  CHECK(strstr(fa_statistic_finding(v), "systematically high") && strstr(fa_statistic_meaning(v), "up"));
  for (int s = 1; s < FA_N_STATISTICS; ++s) {
    v->stat_which = (fa_statistic)s;
    CHECK(fa_statistic_name(v->stat_which)[0] && fa_statistic_finding(v)[0] && fa_statistic_meaning(v)[0]);
  }
  fa_result_free(&r);
}

static void test_lines(void) {
  fa_result r;
  fa_result_init(&r);
  snprintf(r.backend, sizeof r.backend, "ref-f32");
  r.state = FA_CRASH; /* a reason is on the first line */
  r.name = strdup("gone");
  snprintf(r.reason, sizeof r.reason, "SIGSEGV");
  same_text(line_of(&r, -1), "CRASH gone  ref-f32  -  0 ms  SIGSEGV\n"
                             "    repro: fa-verify run --backend ref-f32 --case '{}'\n");
  r.reason[0] = 0;
  r.state = FA_PASS;
  free(r.name);
  r.name = strdup("two\nlines\033[31m");
  same_text(line_of(&r, 0), "PASS two?lines?[31m  ref-f32  -  0 ms\n");
  char *text = line_of(&r, -1);
  CHECK(text[0] == 0); /* -q: only failures */
  free(text);
  fa_result_free(&r);
}

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static bool is_string(const cJSON *o, const char *text) {
  return cJSON_IsString(o) && strcmp(o->valuestring, text) == 0;
}

static void check_report(const cJSON *root) {
  const cJSON *failure = cJSON_GetArrayItem(at(root, "failures"), 0);
  CHECK(cJSON_GetArraySize(at(root, "failures")) == 1 && cJSON_GetArraySize(at(root, "cases")) == 3);
  CHECK(at(at(root, "summary"), "total")->valuedouble == 3 &&
        at(at(root, "summary"), "failed")->valuedouble == 1);
  CHECK(at(at(root, "summary"), "skipped")->valuedouble == 1);
  CHECK(is_string(at(at(root, "host"), "cpu"), "a \"cpu\""));
  REQUIRE(failure);
  CHECK(is_string(at(failure, "state"), "FAIL") &&
        is_string(at(failure, "schedule_seed"), "18446744073709551615"));
  CHECK(at(at(failure, "case"), "seqlen_q")->valuedouble == 13);
  CHECK(strstr(at(failure, "repro")->valuestring, "fa-verify repro ") != NULL);
  const cJSON *dq = cJSON_GetArrayItem(at(failure, "tensors"), 1);
  CHECK(is_string(at(dq, "name"), "dq") && is_string(at(dq, "worst_ratio"), "inf"));
  CHECK(at(dq, "bad")->valuedouble == 3 && at(dq, "class_bad")->valuedouble == 1);
  CHECK(is_string(at(at(dq, "where"), "text"), "every bad row has q == 12"));
  CHECK(is_string(at(at(at(dq, "where"), "by_axis"), "q"), "q == 12"));
  const cJSON *worst = cJSON_GetArrayItem(at(dq, "worst"), 0);
  CHECK(is_string(at(worst, "got"), "nan") && is_string(at(worst, "err"), "inf"));
  CHECK(is_string(at(worst, "want_hex"), "0x1.999999999999ap-4"));
  CHECK(at(worst, "want")->valuedouble == 0.1); /* exactly: 17 digits */
  CHECK(cJSON_GetArraySize(at(worst, "index")) == 4 &&
        cJSON_GetArrayItem(at(worst, "index"), 1)->valuedouble == 12);
}

static void make_report(fa_report *report) {
  const fa_report_pair host[] = {{"cpu", "a \"cpu\""}, {NULL, NULL}};
  fa_report_head head = {"1", "abc", "fa-verify run", "ref-f32", "", "", host};
  fa_result r;
  fa_error err;
  REQUIRE(fa_report_init(report, &head, &err) == FA_OK);
  fa_result_init(&r);
  r.state = FA_PASS;
  r.name = strdup("good");
  REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
  fa_result_free(&r);
  r.state = FA_SKIP;
  snprintf(r.reason, sizeof r.reason, "no <such> kernel");
  REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
  make_failure(&r);
  REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
  fa_result_free(&r);
}

static void test_report(const char *folder) {
  char path[300], xml[300];
  fa_report report;
  fa_error err = {""};
  cJSON *root = NULL, *merged = NULL;
  snprintf(path, sizeof path, "%s/report.json", folder);
  snprintf(xml, sizeof xml, "%s/report.xml", folder);
  make_report(&report);
  CHECK(fa_report_write(&report, path, 1.5, &err) == FA_OK);
  CHECK(fa_report_write(&report, "/nowhere/at/all.json", 1.5, &err) == FA_ERR_IO);
  REQUIRE(fa_report_load(path, &root, &err) == FA_OK);
  check_report(root);
  cJSON *two[] = {root, root};
  REQUIRE(merge_trees(two, (const char *const[]){path, path}, 2, &merged, &err) == FA_OK);
  CHECK(at(at(merged, "summary"), "total")->valuedouble == 5 &&
        cJSON_GetArraySize(at(merged, "failures")) == 1);
  CHECK(at(at(at(merged, "summary"), "skip_reasons"), "no <such> kernel")->valuedouble == 2);
  CHECK(at(merged, "seconds")->valuedouble == 3);
  CHECK(fa_report_write_junit(merged, xml, &err) == FA_OK);
  char *text = NULL;
  size_t n = 0;
  REQUIRE(fa_file_read(xml, &text, &n, &err) == FA_OK);
  CHECK(strstr(text, "tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"2\"") != NULL);
  CHECK(strstr(text, "name=\"it&#39;s &#60;a&#62; &#34;name&#34; &#38; more\"") != NULL);
  CHECK(strstr(text,
               "<failure type=\"FAIL\" message=\" dq: 3 of 832 bad. every bad row has q == 12. Explained by: "
               "the last key is lost\">") != NULL);
  CHECK(strstr(text, "<skipped message=\"no &#60;such&#62; kernel\"/>") != NULL);
  free(text);
  cJSON_Delete(merged);
  cJSON_Delete(root);
  fa_report_free(&report);
  unlink(path);
  unlink(xml);
}

#define WHY                                                                                                  \
  "the errors are systematically low: mean of err / sigma is -0.4123 over 16,384 elements (allowed -0.05 "   \
  ".. "                                                                                                      \
  "0.05); truncation instead of rounding, or a term that is lost, would do that"

static void test_statistics_report(const char *folder) {
  char path[300], *text = NULL;
  fa_report report;
  fa_error err;
  fa_result r;
  cJSON *root = NULL;
  size_t n = 0;
  snprintf(path, sizeof path, "%s/statistics.json", folder);
  make_report(&report);
  make_biased(&r);
  REQUIRE(fa_report_add(&report, &r, &err) == FA_OK && report.n_failures == 2);
  r.verdict[1].bad = 1; /* then the statistic is no news */
  REQUIRE(fa_report_add(&report, &r, &err) == FA_OK && report.n_failures == 3);
  REQUIRE(fa_report_write(&report, path, 1, &err) == FA_OK && fa_report_load(path, &root, &err) == FA_OK);
  const cJSON *stat[2];
  for (int i = 0; i < 2; ++i)
    stat[i] = at(cJSON_GetArrayItem(at(cJSON_GetArrayItem(at(root, "failures"), i + 1), "tensors"), 1),
                 "statistics");
  CHECK(is_string(at(stat[0], "which"), "bias") && is_string(at(stat[0], "why"), WHY));
  CHECK(at(stat[0], "value")->valuedouble == -0.4123456 && at(stat[0], "of")->valuedouble == 16384);
  CHECK(cJSON_GetArrayItem(at(stat[0], "band"), 0)->valuedouble == -0.05 &&
        cJSON_GetArrayItem(at(stat[0], "band"), 1)->valuedouble == 0.05);
  CHECK(cJSON_IsTrue(at(stat[1], "bad")) && at(stat[1], "which") == NULL && at(stat[1], "why") == NULL);
  REQUIRE(fa_report_write_junit(root, path, &err) == FA_OK && fa_file_read(path, &text, &n, &err) == FA_OK);
  CHECK_MSG(strstr(text, "message=\" dq: 0 of 16384 bad. " WHY "\">") != NULL, "%s", text);
  free(text);
  cJSON_Delete(root);
  fa_report_free(&report);
  fa_result_free(&r);
  unlink(path);
}

/* An invalid report must be rejected, with its place. */
static void test_bad_reports(const char *folder) {
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"{", "no valid JSON"},
      {"{} x", "no valid JSON"},
      {"[]", "$.fa_report"},
      {"{\"fa_report\": 2}", "1 is allowed"},
      {"{\"fa_report\": 1, \"summary\": {\"total\": -1}}", "$.summary.total"},
      {"{\"fa_report\": 1, \"summary\": {\"total\":0,\"passed\":0,\"failed\":0,\"skipped\":0,\"error\":0},"
       "\"failures\": [{\"state\": \"FAIL\"}], \"cases\": []}",
       "$.failures[0].case"},
      {"{\"fa_report\": 1, \"summary\": {\"total\":0,\"passed\":0,\"failed\":0,\"skipped\":0,\"error\":0},"
       "\"failures\": [], \"cases\": [{\"state\": \"GOOD\"}]}",
       "$.cases[0].state"}};
  char path[300];
  snprintf(path, sizeof path, "%s/bad.json", folder);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    fa_error err = {""};
    cJSON *root = NULL;
    REQUIRE(fa_file_write_atomic(path, bad[i].text, strlen(bad[i].text), &err) == FA_OK);
    CHECK_MSG(fa_report_load(path, &root, &err) == FA_ERR_INPUT, "%s", bad[i].text);
    CHECK_MSG(strstr(err.text, bad[i].says) && strstr(err.text, path), "%s: %s", bad[i].text, err.text);
  }
  unlink(path);
}

static void test_explained(void) {
  fa_result r;
  make_failure(&r);
  char *line = fa_report_journal_line(&r, 0, 1);
  cJSON *root = cJSON_Parse(line);
  const cJSON *failure = cJSON_GetObjectItemCaseSensitive(root, "failure");
  const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(failure, "explained_by"), 0);
  char *text = cJSON_PrintUnformatted(first);
  CHECK_MSG(text && strcmp(text, "{\"hypothesis\":\"last_key_lost\",\"text\":\"the last key is lost\","
                                 "\"tensors\":[\"dq\"],\"wrong\":3,\"share\":1,\"sampled\":true}") == 0,
            "%s", text);
  cJSON_free(text);
  cJSON_Delete(root);
  free(line);
  fa_result_free(&r);
}

static void test_wire(void) {
  fa_result r, back;
  fa_error err;
  size_t n = 0;
  make_failure(&r);
  snprintf(r.dump, sizeof r.dump, "some/file");
  char *bytes = fa_wire_pack(&r, &n);
  REQUIRE(bytes);
  fa_result_init(&back);
  REQUIRE(fa_wire_unpack(bytes, n, &back, &err) == FA_OK);
  CHECK(strcmp(back.name, r.name) == 0 && strcmp(back.case_line, r.case_line) == 0);
  CHECK(back.state == FA_FAIL && back.n_verdicts == 2 && back.end_to_end[1] && !back.end_to_end[0]);
  CHECK(memcmp(back.verdict, r.verdict, 2 * sizeof r.verdict[0]) == 0);
  CHECK(back.n_explanations == 1 && memcmp(back.explanation, r.explanation, sizeof r.explanation) == 0);
  CHECK(strcmp(back.dump, "some/file") == 0 && back.schedule_seed == r.schedule_seed);
  fa_result_free(&back);
  for (size_t cut = 0; cut < n; cut += 97) CHECK(fa_wire_unpack(bytes, cut, &back, &err) == FA_ERR_IO);
  /* Damage anywhere is either detected or harmless: nothing may be read outside the bytes (the sanitizers
   * check). */
  for (size_t i = 0; i < n; i += 3) {
    char old = bytes[i];
    bytes[i] = (char)0xff;
    fa_result_init(&back);
    if (fa_wire_unpack(bytes, n, &back, &err) == FA_OK) free(line_of(&back, 1));
    fa_result_free(&back);
    bytes[i] = old;
  }
  free(bytes);
  fa_result_free(&r);
}

static void test_sha256(void) {
  static const struct {
    const char *text, *hex;
  } vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  char hex[65];
  fa_sha256 s;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; ++i) {
    fa_sha256_init(&s);
    fa_sha256_add(&s, vectors[i].text, strlen(vectors[i].text));
    fa_sha256_hex(&s, hex);
    CHECK_MSG(strcmp(hex, vectors[i].hex) == 0, "%s: %s", vectors[i].text, hex);
  }
  fa_sha256_init(&s); /* a million times 'a', in pieces of uneven length */
  char piece[1000];
  memset(piece, 'a', sizeof piece);
  for (size_t done = 0, step = 1; done < 1000000; done += step, step = step % 997 + 1) {
    if (step > 1000000 - done) step = 1000000 - done;
    fa_sha256_add(&s, piece, step);
  }
  fa_sha256_hex(&s, hex);
  CHECK_MSG(strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0, "%s", hex);
}

int main(void) {
  char folder[] = "/tmp/fa-test-report-XXXXXX";
  REQUIRE(mkdtemp(folder));
  test_states();
  test_exit_codes();
  test_lines();
  test_full_lines();
  test_brief_lines();
  test_statistics_lines();
  test_report(folder);
  test_statistics_report(folder);
  test_bad_reports(folder);
  test_explained();
  test_wire();
  test_sha256();
  CHECK(rmdir(folder) == 0); /* no temporary file was left behind */
  return check_done();
}
