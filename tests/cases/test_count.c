/* Counts in JSON are what an integer can hold, or 0: reports and journals are read that anybody may have written. */
#include "cases/codec/count.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

static int64_t count(const char *text) {
  cJSON *object = cJSON_Parse(text);
  REQUIRE(object);
  const int64_t n = fa_count_at(object, "n");
  cJSON_Delete(object);
  return n;
}

int main(void) {
  CHECK(count("{\"n\": 3}") == 3 && count("{\"n\": 0}") == 0 && count("{\"n\": 2.75}") == 2);
  CHECK(count("{\"n\": 8999999999999999}") == 8999999999999999);
  CHECK(count("{\"n\": 9e15}") == 0 && count("{\"n\": 1e303}") == 0 && count("{\"n\": 1e999}") == 0);
  CHECK(count("{\"n\": -1}") == 0 && count("{\"n\": -1e303}") == 0);
  CHECK(count("{\"n\": \"3\"}") == 0 && count("{\"n\": null}") == 0 && count("{\"m\": 3}") == 0);
  CHECK(fa_count_of(NULL) == 0);
  return check_done();
}
