/* What a foreign kernel does not claim: word by word from its hello, as text, in JUnit and on the page, where it matters. */
#include "gpu/contract/claims.h"
#include "gpu/contract/features.h"
#include "report/claims.h"
#include "report/json.h"
#include "tests/report/written.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

static cJSON *claims_of(const char *hello) {
  fa_hello h;
  fa_error err = {""};
  REQUIRE(fa_hello_read_text(hello, "test", &h, &err) == FA_OK);
  cJSON *claims = fa_hello_claims(&h);
  REQUIRE(claims);
  return claims;
}

/* A report with this contract; what: a key that makes it matter, or NULL. */
static cJSON *report_of(const char *hello, const char *what) {
  cJSON *root =
      cJSON_Parse("{\"fa_report\":1,\"backend\":{\"name\":\"exec:k\"},\"summary\":{\"total\":0,\"passed\":0,"
                  "\"failed\":0,\"skipped\":0,\"error\":0},\"failures\":[],\"cases\":[],\"contracts\":{}}");
  REQUIRE(root);
  cJSON_AddItemToObject(cJSON_GetObjectItem(root, "contracts"), "exec:k", claims_of(hello));
  if (what) cJSON_AddObjectToObject(root, what);
  return root;
}

static char *printed(const cJSON *root) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  REQUIRE(out);
  fa_claims_print(out, root);
  fclose(out);
  return text;
}

static const char narrow[] =
    "{\"families\": [\"flash\", \"memeff\", \"flex\", \"kvcache\", \"merge\"], \"dtypes\": [\"f16\", "
    "\"bf16\"], "
    "\"passes\": [\"forward\"], "
    "\"limits\": {\"head_dim\": {\"max\": 128, \"multiple_of\": 8}, \"page_size\": {\"among\": [16, 64]}}}";

static void rows_are_the_words_that_are_left_out(void) {
  cJSON *contract = claims_of(narrow);
  fa_not_claimed row[FA_NOT_CLAIMED_ROWS];
  const int n = fa_not_claimed_rows(contract, row);
  REQUIRE(n == 5);
  CHECK(strcmp(row[0].what, "dtypes") == 0 && strcmp(row[0].text, "f32") == 0);
  /* Without a list it does not have what came after version 2. */
  CHECK_MSG(strcmp(row[1].what, "features") == 0 && strncmp(row[1].text, "mods_operators ", 15) == 0, "%s",
            row[1].text);
  CHECK(strcmp(row[2].what, "passes") == 0 && strcmp(row[2].text, "backward") == 0);
  CHECK_MSG(strcmp(row[3].what, "outputs") == 0 && strcmp(row[3].text, "dq dk dv dbias") == 0, "%s",
            row[3].text);
  CHECK_MSG(strcmp(row[4].text, "head_dim at most 128, a multiple of 8; page_size one of 16 64") == 0, "%s",
            row[4].text);
  cJSON_Delete(contract);
}

/* Without lists it has everything but the family and the features that have to be listed. */
static void who_lists_nothing_leaves_out_what_is_listed(void) {
  cJSON *root = report_of("{}", "require");
  char *text = printed(root);
  CHECK_MSG(strcmp(text, "NOT CLAIMED by exec:k, and so not judged:\n"
                         "    families  merge\n"
                         "    features  mods_operators blocks_shared chunk mask_bits sinks sinks_grad "
                         "lse_without_sinks padded_lse topk mla\n              quantized quantized_keys "
                         "quantized_tokens quantized_mixed quantized_append quantized_e2m1\n"
                         "              quantized_amax quantized_o captures_bool captures_i64 captures_half "
                         "captures_half_grad\n              captures_strides captures_many\n") == 0,
            "%s", text);
  free(text);
  cJSON_Delete(root);
}

static void the_block_is_broken_between_words(void) {
  cJSON *root = report_of("{\"features\": []}", "require");
  char *text = printed(root);
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1) CHECK(strcspn(line, "\n") <= 116);
  CHECK(strstr(text, "    features  causal window") && strstr(text, " captures_many\n"));
  free(text);
  cJSON_Delete(root);
}

static void it_matters_where_something_is_at_stake(void) {
  cJSON *root = report_of(narrow, NULL), *required = report_of(narrow, "require"),
        *untrusted = report_of(narrow, "untrusted");
  CHECK(!fa_claims_matter(root) && fa_claims_matter(required) && fa_claims_matter(untrusted));
  cJSON_Delete(root);
  cJSON_Delete(required);
  cJSON_Delete(untrusted);
}

static void junit_and_the_page_have_it(void) {
  cJSON *root = report_of(narrow, "require"), *plain = report_of(narrow, NULL);
  char *junit = written(root, false), *none = written(plain, false), *page = written(plain, true);
  CHECK(strstr(junit, "<testcase classname=\"not claimed\" name=\"dtypes\" time=\"0.000\"><skipped "
                      "message=\"not claimed by exec:k: f32\"/></testcase>"));
  CHECK(strstr(junit, "tests=\"5\"") && strstr(junit, "skipped=\"5\""));
  CHECK(!strstr(none, "not claimed") && strstr(none, "tests=\"0\""));
  CHECK(strstr(page, "Not claimed by exec:k, and so not judged"));
  free(junit);
  free(none);
  free(page);
  cJSON_Delete(root);
  cJSON_Delete(plain);
}

int main(void) {
  rows_are_the_words_that_are_left_out();
  who_lists_nothing_leaves_out_what_is_listed();
  the_block_is_broken_between_words();
  it_matters_where_something_is_at_stake();
  junit_and_the_page_have_it();
  return check_done();
}
