/* Failures of made-up campaigns are put together by the causes that were planted, with the predicates that they have. */
#include "report/causes/features.h"
#include "tests/report/planted_causes.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <string.h>

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static double number_at(const cJSON *o, const char *key) {
  const cJSON *n = at(o, key);
  return cJSON_IsNumber(n) ? n->valuedouble : -1;
}

static const char *text_at(const cJSON *o, const char *key) {
  const cJSON *s = at(o, key);
  return cJSON_IsString(s) ? s->valuestring : "(none)";
}

static void expect_predicate(const cJSON *group, const char *kind, const char *text) {
  const cJSON *p = at(group, "predicate");
  CHECK_MSG(strcmp(text_at(p, "kind"), kind) == 0, "%s, not %s (%s)", text_at(p, "kind"), kind,
            text_at(p, "text"));
  CHECK_MSG(!text || strcmp(text_at(p, "text"), text) == 0, "\"%s\", not \"%s\"", text_at(p, "text"), text);
}

static const cJSON *group_with(const cJSON *groups, const char *text) {
  const cJSON *group;
  cJSON_ArrayForEach(group,
                     groups) if (strcmp(text_at(at(group, "predicate"), "text"), text) == 0) return group;
  return NULL;
}

static void expect_groups(const cJSON *groups, int n) {
  const int got = cJSON_GetArraySize(groups);
  char *lines = planted_lines(groups, false);
  CHECK_MSG(got == n, "%d groups, not %d:\n%s", got, n, lines);
  free(lines);
}

/* ---- three causes at once ---- */

static bool window_cause(const planted_case *c) {
  return c->right >= c->sk && c->sq > c->sk;
}
static bool softcap_cause(const planted_case *c) {
  return c->softcap && c->d > 128 && c->backward;
}
static bool tail_cause(const planted_case *c) {
  return c->group == 3 && c->bf16 && c->sk % 64 != 0;
}

/* One cause shows as several classes, and two causes as one class. */
static bool three_causes(const planted_case *c, fa_result *r) {
  if (!window_cause(c) && !softcap_cause(c) && !tail_cause(c)) return false;
  if (window_cause(c) || tail_cause(c)) planted_wrong(r, c->chance < 300 ? FA_T_LSE : FA_T_O);
  if (softcap_cause(c)) planted_wrong(r, c->chance < 500 ? FA_T_DQ : FA_T_DK);
  return true;
}

static const char *const three[] = {"seqlen_q > seqlen_k && right >= seqlen_k",
                                    "backward && softcap && head_dim > 128",
                                    "dtype is bf16 && seqlen_k % 64 != 0 && heads_q / heads_kv == 3"};

static void test_three_causes(void) {
  const planted_run run = {.n = 5000, .cause = three_causes};
  cJSON *groups = planted_groups(&run);
  double n = 0, before = 1e9;
  const cJSON *group;
  expect_groups(groups, 3);
  for (int i = 0; i < 3; ++i) {
    group = group_with(groups, three[i]);
    CHECK_MSG(group, "no group has the predicate %s", three[i]);
    CHECK(number_at(at(group, "predicate"), "others") == 0);
    CHECK(number_at(at(group, "predicate"), "failing") == number_at(group, "count"));
  }
  cJSON_ArrayForEach(group, groups) {
    n += number_at(group, "count");
    CHECK(number_at(group, "count") <= before);
    before = number_at(group, "count");
  }
  CHECK_MSG(n + number_at(at(groups->child, "predicate"), "others_of") == 5000, "%g failures", n);
  CHECK(n > 300);
  cJSON_Delete(groups);
}

/* ---- a cause that shows in nine of ten cases ---- */

static bool noisy_cause(const planted_case *c, fa_result *r) {
  if (!window_cause(c) || c->chance >= 900) return false;
  planted_wrong(r, FA_T_O);
  return true;
}

static void test_noise(void) {
  const planted_run run = {.n = 5000, .cause = noisy_cause};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "separates", three[0]);
  CHECK(number_at(at(groups->child, "predicate"), "others") > 0);
  cJSON_Delete(groups);
}

/* ---- nothing to say ---- */

static bool no_cause(const planted_case *c, fa_result *r) {
  if (c->chance >= 60) return false;
  planted_wrong(r, FA_T_O);
  return true;
}

static void test_nothing_separates(void) {
  const planted_run run = {.n = 3000, .cause = no_cause};
  cJSON *groups = planted_groups(&run);
  char *lines = planted_lines(groups, false);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "none", "");
  CHECK_MSG(strstr(lines, "no simple predicate: "), "%s", lines);
  CHECK_MSG(strstr(lines, " of 3,000 cases fail so"), "%s", lines);
  free(lines);
  cJSON_Delete(groups);
}

/* Of many classes of which nothing is known none is worth a line. */
static bool many_classes(const planted_case *c, fa_result *r) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  if (c->chance >= 30) return false;
  planted_wrong(r, ids[c->chance % 6]);
  return true;
}

static void test_sweep(void) {
  const planted_run run = {.n = 1000, .cause = many_classes};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  CHECK(cJSON_GetArraySize(at(groups->child, "tensors")) == 6);
  cJSON_Delete(groups);
}

static bool always(const planted_case *c, fa_result *r) {
  (void)c;
  planted_wrong(r, FA_T_O);
  return true;
}

static void test_every_case(void) {
  const planted_run run = {.n = 60, .cause = always};
  cJSON *groups = planted_groups(&run);
  char *lines = planted_lines(groups, true);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "every", "");
  CHECK_MSG(strstr(lines, "; in every case; smallest: "), "%s", lines);
  CHECK_MSG(strstr(lines, "c19 and 40 more"), "%s", lines);
  free(lines);
  cJSON_Delete(groups);
}

/* ---- what a report does not tell ---- */

static bool softcap_alone(const planted_case *c, fa_result *r) {
  if (!c->softcap || !c->backward) return false;
  planted_wrong(r, FA_T_DQ);
  return true;
}

static void test_words_alone(void) {
  const planted_run words = {.n = 2000, .cause = softcap_alone, .shapeless = true};
  cJSON *groups = planted_groups(&words);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "separates", "backward && softcap");
  cJSON_Delete(groups);
}

/* Failures have a shape, as their recipe is there, and one passing case in ten: the nine are no witnesses. */
static void test_unknown_shapes(void) {
  const planted_run run = {.n = 2000, .cause = noisy_cause, .shapeless = true, .every_10th = true};
  cJSON *groups = planted_groups(&run);
  const cJSON *group;
  cJSON_ArrayForEach(group, groups) {
    const char *text = text_at(at(group, "predicate"), "text");
    CHECK_MSG(strcmp(text_at(at(group, "predicate"), "kind"), "none") == 0 || !strstr(text, "seqlen"), "%s",
              text);
  }
  cJSON_Delete(groups);
}

/* ---- explanations ---- */

/* What is explained is apart although the class is the same; what is not goes where it belongs. */
static bool explained_causes(const planted_case *c, fa_result *r) {
  if (!window_cause(c) && !tail_cause(c)) return false;
  planted_wrong(r, FA_T_O);
  if (c->chance < 100) return true;
  planted_explained(r, tail_cause(c) ? "other_kv_head_modulo" : "window_ignored");
  if (tail_cause(c) && c->chance < 400) planted_explained(r, "other_kv_head_neighbour");
  return true;
}

static void test_explanations(void) {
  const planted_run run = {.n = 5000, .cause = explained_causes};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 2);
  const cJSON *window = group_with(groups, three[0]), *tail = group_with(groups, three[2]);
  CHECK_MSG(strcmp(text_at(window, "hypothesis"), "window_ignored") == 0, "%s",
            text_at(window, "hypothesis"));
  CHECK_MSG(strcmp(text_at(tail, "hypothesis"), "other_kv_head_modulo") == 0, "%s",
            text_at(tail, "hypothesis"));
  CHECK(strcmp(text_at(tail, "title"), "the text of other_kv_head_modulo") == 0);
  cJSON_Delete(groups);
}

/* A few of each cause are not explained: they are too few, and too mixed, to be told from each other. */
static bool hardly_unexplained(const planted_case *c, fa_result *r) {
  if (!window_cause(c) && !tail_cause(c)) return false;
  planted_wrong(r, c->chance < 25 ? FA_T_LSE : FA_T_O);
  if (c->chance >= 25) planted_explained(r, tail_cause(c) ? "other_kv_head_modulo" : "window_ignored");
  return true;
}

static void test_adopted(void) {
  const planted_run run = {.n = 2000, .cause = hardly_unexplained};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 2);
  CHECK(group_with(groups, three[0]) && group_with(groups, three[2]));
  cJSON_Delete(groups);
}

/* Some failures of one cause are also explained by what explains most failures, those of the other cause. */
static bool ambiguous_causes(const planted_case *c, fa_result *r) {
  if (!window_cause(c) && !tail_cause(c)) return false;
  planted_wrong(r, FA_T_O);
  if (tail_cause(c) || c->chance < 200) planted_explained(r, "last_key_tile_lost");
  if (!tail_cause(c)) planted_explained(r, "window_ignored");
  return true;
}

static void test_ambiguous(void) {
  const planted_run run = {.n = 3000, .cause = ambiguous_causes};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 2);
  const cJSON *window = group_with(groups, three[0]), *tail = group_with(groups, three[2]);
  CHECK_MSG(strcmp(text_at(window, "hypothesis"), "window_ignored") == 0, "%s",
            text_at(window, "hypothesis"));
  CHECK_MSG(strcmp(text_at(tail, "hypothesis"), "last_key_tile_lost") == 0, "%s",
            text_at(tail, "hypothesis"));
  cJSON_Delete(groups);
}

/* Two hypotheses are two groups, whatever their predicates. */
static bool two_hypotheses(const planted_case *c, fa_result *r) {
  if (!window_cause(c)) return false;
  planted_wrong(r, FA_T_O);
  planted_explained(r, c->chance < 500 ? "window_ignored" : "mask_ignored");
  return true;
}

static void test_hypotheses_stay_apart(void) {
  const planted_run run = {.n = 3000, .cause = two_hypotheses};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 2);
  cJSON_Delete(groups);
}

/* On one shape in ten the mistake looks like another one; where it is, everything fails. */
static bool looks_otherwise(const planted_case *c, fa_result *r) {
  if (!window_cause(c)) return false;
  planted_wrong(r, FA_T_O);
  planted_explained(r, c->chance < 900 ? "window_ignored" : "mask_ignored");
  return true;
}

static void test_absorbed(void) {
  const planted_run run = {.n = 5000, .cause = looks_otherwise};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "separates", three[0]);
  CHECK(strcmp(text_at(groups->child, "hypothesis"), "window_ignored") == 0);
  cJSON_Delete(groups);
}

/* A handful of failures, each explained by something else: chance explains a few, and no line is worth it. */
static bool loose_ends(const planted_case *c, fa_result *r) {
  char name[16];
  if (c->chance >= 24) return false;
  snprintf(name, sizeof name, "mistake_%d", (int)c->chance);
  planted_wrong(r, FA_T_O);
  planted_explained(r, name);
  return true;
}

static void test_loose_ends(void) {
  const planted_run run = {.n = 1000, .cause = loose_ends};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "none", NULL);
  CHECK(text_at(groups->child, "hypothesis")[0] == 0);
  cJSON_Delete(groups);
}

/* What reads as a contradiction of one length is none of several. */
static void test_of_many(void) {
  static const char *const said[][2] = {
      {"seqlen_q > seqlen_k", "some seqlen_q > its seqlen_k"},
      {"seqlen_k > 64", "some sequence uses more than 64 keys"},
      {"seqlen_k <= 64", "every sequence uses at most 64 keys"},
      {"seqlen_q <= 128", "every sequence has at most 128 queries"},
      {"seqlen_k % 64 == 0", "the longest seqlen_k % 64 == 0"},
      {"seqlen_k > 64 and seqlen_k % 64 in 1..8", "the longest seqlen_k > 64 and seqlen_k % 64 in 1..8"},
      {"head_dim > 64", "head_dim > 64"}};
  char text[160];
  for (size_t i = 0; i < sizeof said / sizeof *said; ++i) {
    fa_cause_say_of_many(said[i][0], text, sizeof text);
    CHECK_MSG(strcmp(text, said[i][1]) == 0, "%s: %s", said[i][0], text);
  }
}

/* ---- what is left out ---- */

static bool waived_cause(const planted_case *c, fa_result *r) {
  if (!window_cause(c) && !softcap_cause(c)) return false;
  planted_wrong(r, FA_T_O);
  r->waived = window_cause(c);
  return true;
}

static void test_waived(void) {
  const planted_run run = {.n = 3000, .cause = waived_cause};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "separates", three[1]);
  cJSON_Delete(groups);
}

static bool skipped_cause(const planted_case *c, fa_result *r) {
  if (c->softcap) r->state = c->bf16 ? FA_SKIP : FA_ERROR;
  if (c->softcap || !c->alibi) return false;
  planted_wrong(r, FA_T_O);
  return true;
}

/* Skipped cases may have the same cause or not: they do not make "alibi" "alibi && no softcap". */
static void test_skipped(void) {
  const planted_run run = {.n = 1000, .cause = skipped_cause};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 1);
  expect_predicate(groups->child, "separates", "alibi");
  cJSON_Delete(groups);
}

/* ---- the smallest case ---- */

static double work_of(const cJSON *recipe) {
  return number_at(recipe, "heads_q") * (number_at(recipe, "seqlen_q") + 1) *
         (number_at(recipe, "seqlen_k") + 1) * number_at(recipe, "head_dim");
}

static void test_smallest(void) {
  const planted_run run = {.n = 2000, .cause = noisy_cause};
  static fa_result r;
  cJSON *groups = planted_groups(&run);
  const cJSON *smallest = at(groups->child, "smallest");
  const double least = work_of(at(smallest, "case"));
  int n = 0;
  for (int i = 0; i < run.n; ++i) {
    planted_result(&run, i, &r);
    cJSON *recipe = cJSON_Parse(r.case_line);
    if (r.state == FA_FAIL) CHECK_MSG(work_of(recipe) >= least, "%s is smaller", r.name);
    n += r.state == FA_FAIL;
    cJSON_Delete(recipe);
    fa_result_free(&r);
  }
  CHECK(n > 10 && n == number_at(groups->child, "count"));
  CHECK(number_at(smallest, "failure") == -1);
  const char *repro = text_at(groups->child, "repro");
  CHECK_MSG(strncmp(repro, "fa-verify run --backend made-up --case '{\"name\":", 48) == 0, "%s", repro);
  cJSON_Delete(groups);
}

/* ---- size ---- */

static void test_many(void) {
  const planted_run run = {.n = 100000, .cause = three_causes};
  cJSON *groups = planted_groups(&run);
  expect_groups(groups, 3);
  for (int i = 0; i < 3; ++i)
    CHECK_MSG(group_with(groups, three[i]), "no group has the predicate %s", three[i]);
  cJSON_Delete(groups);
}

int main(void) {
  test_three_causes();
  test_noise();
  test_nothing_separates();
  test_sweep();
  test_every_case();
  test_words_alone();
  test_unknown_shapes();
  test_explanations();
  test_adopted();
  test_ambiguous();
  test_hypotheses_stay_apart();
  test_absorbed();
  test_loose_ends();
  test_of_many();
  test_waived();
  test_skipped();
  test_smallest();
  test_many();
  return check_done();
}
