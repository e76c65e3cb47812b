/* What a report says of its backends: where each comes from, what it claims, and which wall an untrusted one stands behind. */
#include "fuzz/campaign/session.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fa_choice choice[3];

static const char *text_at(const cJSON *root, const char *object, const char *key) {
  const cJSON *one = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, object), key);
  return cJSON_IsString(one) ? one->valuestring : "";
}

/* Those that have a source, under their own names; of one that comes twice, the later. */
static void test_sources(void) {
  fa_report r = {.root = cJSON_CreateObject()};
  fa_report_add_sources(&r, choice, 0);
  CHECK(!r.root->child);
  fa_report_add_sources(&r, choice, 3);
  CHECK(strcmp(text_at(r.root, "sources", "exec:a"), "of a") == 0);
  CHECK(strcmp(text_at(r.root, "sources", "exec:c"), "of c") == 0);
  CHECK(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(r.root, "sources")) == 2);
  cJSON_Delete(r.root);
}

static void test_contracts(void) {
  fa_report r = {.root = cJSON_CreateObject()};
  fa_report_add_contracts(&r, choice, 3);
  const cJSON *all = cJSON_GetObjectItemCaseSensitive(r.root, "contracts");
  CHECK(cJSON_GetArraySize(all) == 1 && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(all, "exec:b")));
  cJSON_Delete(r.root);
}

/* Beside what is said of untrusted runs already, or by itself; once. */
static void test_walls(void) {
  for (int there = 0; there < 2; ++there) {
    fa_report r = {.root = cJSON_CreateObject()};
    if (there) cJSON_AddStringToObject(cJSON_AddObjectToObject(r.root, "untrusted"), "secret", "s");
    fa_report_add_walls(&r, choice, 2); /* these are trusted */
    CHECK(strcmp(text_at(r.root, "untrusted", "wall"), "") == 0);
    for (int k = 0; k < 2; ++k) fa_report_add_walls(&r, choice, 3);
    CHECK(strcmp(text_at(r.root, "untrusted", "wall"), "of bricks") == 0);
    CHECK(strcmp(text_at(r.root, "untrusted", "secret"), there ? "s" : "") == 0);
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(r.root, "untrusted"), *one;
    int walls = 0, roots = 0;
    cJSON_ArrayForEach(one, all) walls += strcmp(one->string, "wall") == 0;
    cJSON_ArrayForEach(one, r.root) roots += strcmp(one->string, "untrusted") == 0;
    CHECK(walls == 1 && roots == 1);
    cJSON_Delete(r.root);
  }
}

/* Colour if it is asked for, never if it is not, and by itself not into a file. */
static void test_style(void) {
  static const struct {
    const char *color;
    bool quiet, verbose, colored;
    int sign;
  } styles[] = {{"always", false, false, true, 0},
                {"never", true, false, false, -1},
                {"auto", false, true, false, 1},
                {NULL, true, true, false, -1}};
  const int out = dup(STDOUT_FILENO);
  REQUIRE(out >= 0 && freopen("/dev/null", "w", stdout));
  bool colored[4];
  int verbosity[4];
  for (int k = 0; k < 4; ++k) {
    const fa_cli cli = {.color = styles[k].color, .quiet = styles[k].quiet, .verbose = styles[k].verbose};
    fa_line_style style;
    fa_line_style_from_cli(&style, &cli);
    colored[k] = style.color, verbosity[k] = style.verbosity;
  }
  fflush(stdout);
  REQUIRE(dup2(out, STDOUT_FILENO) >= 0 && close(out) == 0);
  for (int k = 0; k < 4; ++k) {
    CHECK(colored[k] == styles[k].colored);
    CHECK((verbosity[k] > 0) - (verbosity[k] < 0) == styles[k].sign);
  }
}

int main(void) {
  static const char *const specs[] = {"exec:a", "exec:b", "exec:c"};
  for (int b = 0; b < 3; ++b) snprintf(choice[b].spec, sizeof choice[b].spec, "%s", specs[b]);
  snprintf(choice[0].info.source, sizeof choice[0].info.source, "of a");
  snprintf(choice[2].info.source, sizeof choice[2].info.source, "of c");
  snprintf(choice[2].info.wall, sizeof choice[2].info.wall, "of bricks");
  choice[1].said.greeted = true;
  choice[2].untrusted = true;
  test_sources();
  test_contracts();
  test_walls();
  test_style();
  return check_done();
}
