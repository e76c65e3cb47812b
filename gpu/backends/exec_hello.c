#include "gpu/backends/exec_hello.h"

#include "gpu/plugin.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

static const cJSON *item(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* ---- features of a problem beyond plain attention ---- */

static bool is_causal(const fa_problem *p) {
  return p->mask.type == FA_MASK_CAUSAL;
}
static bool is_window(const fa_problem *p) {
  return p->mask.type == FA_MASK_WINDOW;
}
static bool is_top_left(const fa_problem *p) {
  return p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
}
static bool has_seqused(const fa_problem *p) {
  return p->seqused_k.n > 0;
}
static bool has_leftpad(const fa_problem *p) {
  return p->leftpad_k.n > 0;
}
static bool has_groups(const fa_problem *p) {
  return p->heads_q != p->heads_kv;
}
static bool has_head_dim_v(const fa_problem *p) {
  return p->head_dim != p->head_dim_v;
}
static bool has_softcap(const fa_problem *p) {
  return p->softcap != 0;
}
static bool has_alibi(const fa_problem *p) {
  return p->alibi.present;
}
static bool has_bias(const fa_problem *p) {
  return p->bias.present;
}
static bool has_bias_grad(const fa_problem *p) {
  return p->bias.present && p->bias.grad && p->backward;
}
static bool has_dropout(const fa_problem *p) {
  return p->dropout.p > 0;
}
static bool has_dlse(const fa_problem *p) {
  return p->grad_lse && p->backward;
}
static bool has_return_softmax(const fa_problem *p) {
  return p->return_softmax;
}
static bool has_score_mod(const fa_problem *p) {
  return p->score_mod != NULL;
}
static bool has_mask_mod(const fa_problem *p) {
  return p->mask_mod != NULL;
}
static bool has_block_sparse(const fa_problem *p) {
  return p->block_sparse.present;
}
static bool has_new(const fa_problem *p) {
  return p->kvcache.n_new > 0;
}
static bool has_pages(const fa_problem *p) {
  return p->kvcache.page_size > 0;
}
static bool has_batch_idx(const fa_problem *p) {
  return p->kvcache.batch_idx.n > 0;
}
static bool has_rotary(const fa_problem *p) {
  return p->kvcache.rotary_dim > 0;
}
static bool has_splits(const fa_problem *p) {
  return p->splits > 0;
}
static bool is_deterministic(const fa_problem *p) {
  return p->deterministic;
}
static bool has_empty_lse(const fa_problem *p) {
  return p->empty_lse != fa_family_default_empty_lse(p->family);
}

typedef struct feature {
  const char *name;
  bool (*is_in)(const fa_problem *p);
} feature;

static const feature features[] = {{"causal", is_causal},
                                   {"window", is_window},
                                   {"top_left", is_top_left},
                                   {"varlen", fa_problem_is_varlen},
                                   {"seqused_k", has_seqused},
                                   {"leftpad_k", has_leftpad},
                                   {"gqa", has_groups},
                                   {"head_dim_v", has_head_dim_v},
                                   {"softcap", has_softcap},
                                   {"alibi", has_alibi},
                                   {"bias", has_bias},
                                   {"bias_grad", has_bias_grad},
                                   {"dropout", has_dropout},
                                   {"dlse", has_dlse},
                                   {"return_softmax", has_return_softmax},
                                   {"score_mod", has_score_mod},
                                   {"mask_mod", has_mask_mod},
                                   {"block_sparse", has_block_sparse},
                                   {"append", has_new},
                                   {"paged", has_pages},
                                   {"batch_idx", has_batch_idx},
                                   {"rotary", has_rotary},
                                   {"splits", has_splits},
                                   {"deterministic", is_deterministic},
                                   {"empty_lse", has_empty_lse}};
enum { N_FEATURES = sizeof features / sizeof *features };

static const char *feature_name(int i) {
  return i < N_FEATURES ? features[i].name : NULL;
}
static const char *family_name(int i) {
  return i < FA_N_FAMILIES ? fa_family_name((fa_family)i) : NULL;
}
static const char *dtype_name(int i) {
  static const char *const name[] = {"f16", "bf16", "f32", NULL};
  return name[i];
}
static const char *pass_name(int i) {
  static const char *const name[] = {"forward", "backward", NULL};
  return name[i];
}

/* ---- the keys ---- */

/* Checks an optional array of words, which must be among name(0), name(1) ... */
static fa_status check_words(const cJSON *object, const char *key, const char *(*name)(int), fa_error *err) {
  const cJSON *array = item(object, key), *word;
  if (!array) return FA_OK;
  if (!cJSON_IsArray(array)) return fa_fail(err, FA_ERR_INPUT, "\"%s\" must be an array of words", key);
  cJSON_ArrayForEach(word, array) {
    bool known = false;
    for (int i = 0; cJSON_IsString(word) && name(i); ++i) known |= strcmp(word->valuestring, name(i)) == 0;
    if (known) continue;
    char all[700];
    size_t used = 0;
    for (int i = 0; name(i) && used < sizeof all; ++i)
      used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name(i));
    return fa_fail(err, FA_ERR_INPUT, "\"%s\": \"%.40s\" is none of %s", key,
                   cJSON_IsString(word) ? word->valuestring : "?", all);
  }
  return FA_OK;
}

/* True if an optional array has the word, or is absent. */
static bool allows(const cJSON *object, const char *key, const char *text) {
  const cJSON *array = item(object, key), *word;
  if (!array) return true;
  cJSON_ArrayForEach(word, array) {
    if (strcmp(word->valuestring, text) == 0) return true;
  }
  return false;
}

static fa_status check_text(const cJSON *object, const char *key, bool needed, fa_error *err) {
  const cJSON *text = item(object, key);
  if (text ? cJSON_IsString(text) : !needed) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, text ? "\"%s\" must be a string" : "\"%s\" is missing", key);
}

fa_status fa_exec_read_passes(const cJSON *answer, unsigned *passes, fa_error *err) {
  const fa_status status = check_words(answer, "passes", pass_name, err);
  if (status != FA_OK) return status;
  *passes = (allows(answer, "passes", "forward") ? FA_PASS_FORWARD : 0) |
            (allows(answer, "passes", "backward") ? FA_PASS_BACKWARD : 0);
  return FA_OK;
}

fa_status fa_exec_read_arithmetic(const cJSON *answer, fa_plugin_arithmetic *out, fa_error *err) {
  const cJSON *all = item(answer, "arithmetic"), *x;
  if (!all) return FA_OK;
  if (!cJSON_IsObject(all)) return fa_fail(err, FA_ERR_INPUT, "\"arithmetic\" must be an object");
  cJSON_ArrayForEach(x, all) {
    const bool count = cJSON_IsNumber(x) && x->valuedouble >= 0 && x->valuedouble <= 1e6;
    if (strcmp(x->string, "name") == 0 && cJSON_IsString(x) && fa_profile_exists(x->valuestring))
      out->name = fa_profile_get(x->valuestring, FA_F32).name; /* outlives the answer */
    else if (strcmp(x->string, "block_n") == 0 && count)
      out->block_n = (int)x->valuedouble;
    else if (strcmp(x->string, "max_splits") == 0 && count)
      out->max_splits = (int)x->valuedouble;
    else if (strcmp(x->string, "dq_atomic") == 0 && cJSON_IsBool(x))
      out->dq_atomic = cJSON_IsTrue(x);
    else if (strcmp(x->string, "gqa_partials_rounded") == 0 && cJSON_IsBool(x))
      out->gqa_partials_rounded = cJSON_IsTrue(x);
    else
      return fa_fail(err, FA_ERR_INPUT, "\"arithmetic\": \"%.40s\": unknown, or not a value that it may have",
                     x->string);
  }
  return FA_OK;
}

fa_status fa_exec_hello_check(const cJSON *hello, fa_error *err) {
  const cJSON *version = item(hello, "fa_exec"), *supports = item(hello, "supports");
  fa_plugin_arithmetic unused = {0};
  unsigned passes = 0;
  if (!cJSON_IsNumber(version) || version->valuedouble != FA_EXEC_VERSION)
    return fa_fail(err, FA_ERR_INPUT,
                   "its hello is for another version of the protocol: \"fa_exec\" must be %d",
                   FA_EXEC_VERSION);
  fa_status status = check_text(hello, "why_not", false, err);
  if (status != FA_OK) return status;
  if (item(hello, "why_not")) return fa_fail(err, FA_ERR_DEVICE, "%s", item(hello, "why_not")->valuestring);
  status = check_text(hello, "name", true, err);
  if (status == FA_OK) status = check_text(hello, "device", false, err);
  if (status == FA_OK) status = check_text(hello, "driver", false, err);
  if (status == FA_OK) status = check_words(hello, "families", family_name, err);
  if (status == FA_OK) status = check_words(hello, "dtypes", dtype_name, err);
  if (status == FA_OK) status = check_words(hello, "features", feature_name, err);
  if (status == FA_OK) status = fa_exec_read_passes(hello, &passes, err);
  if (status == FA_OK) status = fa_exec_read_arithmetic(hello, &unused, err);
  if (status == FA_OK && supports && !cJSON_IsBool(supports))
    status = fa_fail(err, FA_ERR_INPUT, "\"supports\" must be true or false");
  return status;
}

unsigned fa_exec_hello_passes(const cJSON *hello, const fa_problem *p, char *reason, size_t reason_size) {
  const char *lacks = NULL;
  unsigned passes = 0;
  fa_error ignored;
  fa_exec_read_passes(hello, &passes, &ignored);
  if (!allows(hello, "families", fa_family_name(p->family))) lacks = fa_family_name(p->family);
  if (!allows(hello, "dtypes", fa_dtype_name(p->dtype))) lacks = fa_dtype_name(p->dtype);
  for (int i = 0; i < N_FEATURES && !lacks; ++i)
    if (features[i].is_in(p) && !allows(hello, "features", features[i].name)) lacks = features[i].name;
  if (lacks)
    snprintf(reason, reason_size, "it has no %s", lacks);
  else if (!(passes & FA_PASS_BACKWARD))
    snprintf(reason, reason_size, "it has no backward pass");
  if (p->kvcache.present) passes &= FA_PASS_FORWARD;
  return lacks ? FA_PASS_NONE : passes;
}
