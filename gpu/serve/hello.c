/* What a served backend says about itself: its own words if it has any, else what can be asked of it. */
#include "gpu/contract/features.h"
#include "gpu/contract/hello.h"
#include "cases/base/json.h"
#include "gpu/serve/parts.h"

#include <cjson/cJSON.h>
#include <string.h>

/* Its hello as text; NULL: it has none. */
static const char *own_words(const fa_backend *backend, void *self) {
  return backend->hello_text ? backend->hello_text(self) : NULL;
}

bool fa_serve_has_hello(const fa_backend *backend, void *self) {
  return own_words(backend, self) != NULL;
}

/* Those that say how it is reached, which is for us to say. */
static void drop_keys(cJSON *hello) {
  static const char *const ours[] = {"fa_exec", "id",       "type",      "name",   "device",
                                     "driver",  "supports", "transport", "source", "why_not"};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; ++i)
    cJSON_DeleteItemFromObjectCaseSensitive(hello, ours[i]);
}

static void add_conventions(cJSON *hello) {
  cJSON *outputs = cJSON_AddArrayToObject(hello, "outputs");
  for (int i = 0; fa_output_word(i); ++i)
    cJSON_AddItemToArray(outputs, cJSON_CreateString(fa_output_word(i)));
  cJSON *features = cJSON_AddArrayToObject(hello, "features");
  for (int i = 0; fa_feature_name(i); ++i) /* all: some are nobody's who does not list them */
    cJSON_AddItemToArray(features, cJSON_CreateString(fa_feature_name(i)));
  cJSON *lse = cJSON_AddObjectToObject(hello, "lse");
  cJSON_AddStringToObject(lse, "base", "e");
  cJSON_AddBoolToObject(lse, "scaled", true);
  cJSON_AddStringToObject(lse, "layout", fa_lse_layout_name(FA_LSE_AS_CALL));
  cJSON_AddStringToObject(lse, "dtype", fa_dtype_name(FA_F32));
  cJSON_AddStringToObject(lse, "empty", fa_lse_of_empty_name(FA_LSE_EMPTY_AS_CASE));
  cJSON_AddStringToObject(lse, "alibi", fa_lse_alibi_name(FA_LSE_ALIBI_DISTANCE));
  cJSON_AddStringToObject(hello, "empty_o", fa_o_of_empty_name(FA_O_EMPTY_ZERO));
}

/* Of a backend without words of its own: everything, in the harness's conventions. What it takes it is asked case by
 * case, and what it computes with too; here stands what holds for a plain call, by element type. */
static cJSON *hello_of_ours(const fa_backend *backend, void *self) {
  cJSON *hello = cJSON_CreateObject(), *all = cJSON_AddObjectToObject(hello, "arithmetic");
  fa_problem p;
  add_conventions(hello);
  fa_problem_init(&p);
  for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
    fa_profile profile;
    p.dtype = (fa_dtype)t;
    backend->profile(self, &p, &profile);
    cJSON_AddItemToObject(all, fa_dtype_name(p.dtype), fa_serve_arithmetic(&profile, p.dtype));
  }
  fa_problem_free(&p);
  return hello;
}

static cJSON *hello_of(const fa_backend *backend, void *self) {
  const char *text = own_words(backend, self);
  cJSON *hello = NULL;
  fa_error ignored; /* the backend has read it already */
  if (!text) return hello_of_ours(backend, self);
  if (fa_json_parse(text, strlen(text), "hello", &hello, &ignored) != FA_OK) return cJSON_CreateObject();
  drop_keys(hello);
  return hello;
}

static bool has_word(const cJSON *array, const char *word) {
  const cJSON *x;
  cJSON_ArrayForEach(x, array) if (cJSON_IsString(x) && strcmp(x->valuestring, word) == 0) return true;
  return false;
}

cJSON *fa_serve_hello_why_not(const char *name, const char *why) {
  cJSON *hello = cJSON_CreateObject();
  cJSON_AddNumberToObject(hello, "fa_exec", FA_HELLO_VERSION);
  cJSON_AddStringToObject(hello, "name", name);
  cJSON_AddStringToObject(hello, "why_not", why);
  return hello;
}

cJSON *fa_serve_hello(const fa_backend *backend, void *self, const cJSON *takes) {
  fa_backend_info info;
  backend->describe(self, &info);
  if (!info.usable) return fa_serve_hello_why_not(backend->name, info.why_not);
  cJSON *hello = hello_of(backend, self);
  cJSON_AddNumberToObject(hello, "fa_exec", FA_HELLO_VERSION);
  cJSON_AddStringToObject(hello, "name", info.device[0] ? info.device : backend->name);
  if (info.driver[0]) cJSON_AddStringToObject(hello, "driver", info.driver);
  if (info.source[0] && has_word(takes, "source")) cJSON_AddStringToObject(hello, "source", info.source);
  cJSON_AddBoolToObject(hello, "supports", true);
  return hello;
}
