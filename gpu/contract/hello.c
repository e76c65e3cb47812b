/* Reading a hello. */
#include "gpu/contract/hello.h"

#include "cases/base/json.h"
#include "cases/tensors/table.h"
#include "gpu/contract/features.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- words ---- */

static const char *family_word(int i) {
  return i < FA_N_FAMILIES ? fa_family_name((fa_family)i) : NULL;
}
static const char *dtype_word(int i) {
  return i < FA_HELLO_DTYPES ? fa_dtype_name((fa_dtype)i) : NULL;
}
enum { LSE_AS_ELEMENTS = 4 }; /* the last word: f16 or bf16 where Q, K and V are */
static const char *lse_dtype_word(int i) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "io"};
  return i <= LSE_AS_ELEMENTS ? names[i] : NULL;
}
static const char *pass_word(int i) {
  static const char *const names[] = {"forward", "backward"};
  return i < 2 ? names[i] : NULL;
}
static const char *base_word(int i) {
  static const char *const names[] = {"e", "2"};
  return i < 2 ? names[i] : NULL;
}
static const char *transport_word(int i) {
  static const char *const names[] = {"memory", "files"};
  return i < 2 ? names[i] : NULL;
}
const char *fa_hello_lse_key(int i) {
  static const char *const names[] = {"base", "scaled", "layout", "dtype", "empty", "alibi"};
  return i < 6 ? names[i] : NULL;
}
const char *fa_hello_key(int i) {
  static const char *const names[] = {"fa_exec",   "id",         "name",   "device",   "driver",
                                      "why_not",   "families",   "dtypes", "features", "passes",
                                      "supports",  "outputs",    "lse",    "empty_o",  "limits",
                                      "transport", "arithmetic", "source", "time"};
  return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

static const struct {
  const char *word;
  fa_tensor_id first, last;
} outputs[] = {{"o", FA_T_O, FA_T_O},
               {"lse", FA_T_LSE, FA_T_LSE},
               {"p_debug", FA_T_P_DEBUG, FA_T_P_DEBUG},
               {"dq", FA_T_DQ, FA_T_DQ},
               {"dk", FA_T_DK, FA_T_DK},
               {"dv", FA_T_DV, FA_T_DV},
               {"dbias", FA_T_DBIAS, FA_T_DBIAS},
               {"dbuffers", FA_T_DBUFFER_0, FA_T_DBUFFER_LAST},
               {"do_parts", FA_T_DO_PARTS, FA_T_DO_PARTS},
               {"dlse_parts", FA_T_DLSE_PARTS, FA_T_DLSE_PARTS},
               {"dsinks", FA_T_DSINKS, FA_T_DSINKS},
               {"amax_p", FA_T_AMAX_P, FA_T_AMAX_P},
               {"amax_o", FA_T_AMAX_O, FA_T_AMAX_O}};
enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };

const char *fa_output_word(int i) {
  return i >= 0 && i < N_OUTPUTS ? outputs[i].word : NULL;
}

fa_tensor_bits fa_output_bits(int i) {
  fa_tensor_bits bits = 0;
  for (int id = outputs[i].first; id <= (int)outputs[i].last; ++id) bits |= FA_TENSOR_BIT(id);
  return bits;
}

/* ---- single keys ---- */

fa_status fa_hello_read_passes(const cJSON *object, unsigned *passes, fa_error *err) {
  uint64_t bits = 0;
  bool given = false;
  const fa_status status = fa_keys_words((fa_keys){object, ""}, "passes", pass_word, &bits, &given, err);
  if (given) *passes = (bits & 1 ? FA_PASS_FORWARD : 0) | (bits & 2 ? FA_PASS_BACKWARD : 0);
  return status;
}

fa_status fa_hello_read_outputs(const cJSON *object, fa_tensor_bits *out, bool *given, fa_error *err) {
  uint64_t words = 0;
  bool here = false;
  const fa_status status =
      fa_keys_words((fa_keys){object, ""}, "outputs", fa_output_word, &words, &here, err);
  if (!here) return status;
  *out = 0;
  *given = true;
  for (int i = 0; i < N_OUTPUTS; ++i)
    if (words >> i & 1) *out |= fa_output_bits(i);
  return status;
}

/* One word into an int-sized enum; sets a bit of *said. */
static fa_status read_enum(fa_keys k, const char *key, fa_word_of word, int *out, unsigned field,
                           unsigned *said, fa_error *err) {
  bool given = false;
  const fa_status status = fa_keys_word(k, key, word, out, &given, err);
  if (given) *said |= field;
  return status;
}

/* Of calls with these elements. */
static fa_status read_lse(const cJSON *tree, fa_dtype elements, fa_contract *c, unsigned *said,
                          fa_error *err) {
  const fa_dtype dtypes[] = {FA_F32, FA_F64, FA_F16, FA_BF16, elements};
  const cJSON *object = NULL;
  int base = 0, layout = 0, dtype = 0, empty = 0, alibi = 0;
  bool scaled = true, given = false;
  fa_status status = fa_keys_object((fa_keys){tree, ""}, "lse", &object, err);
  const fa_keys k = {object, "lse."};
  if (status == FA_OK) status = fa_keys_check(k, fa_hello_lse_key, err);
  if (status == FA_OK) status = read_enum(k, "base", base_word, &base, FA_CONTRACT_LSE_BASE, said, err);
  if (status == FA_OK) status = fa_keys_flag(k, "scaled", &scaled, &given, err);
  if (status == FA_OK)
    status = read_enum(k, "layout", fa_lse_layout_name, &layout, FA_CONTRACT_LSE_LAYOUT, said, err);
  if (status == FA_OK)
    status = read_enum(k, "dtype", lse_dtype_word, &dtype, FA_CONTRACT_LSE_DTYPE, said, err);
  if (status == FA_OK)
    status = read_enum(k, "empty", fa_lse_of_empty_name, &empty, FA_CONTRACT_LSE_OF_EMPTY, said, err);
  if (status == FA_OK)
    status = read_enum(k, "alibi", fa_lse_alibi_name, &alibi, FA_CONTRACT_LSE_ALIBI, said, err);
  if (given) *said |= FA_CONTRACT_LSE_UNSCALED;
  c->lse_base_2 = base == 1;
  c->lse_unscaled = !scaled;
  c->lse_layout = (fa_lse_layout)layout;
  c->lse_dtype = dtypes[dtype];
  c->lse_of_empty = (fa_lse_of_empty)empty;
  c->lse_alibi = (fa_lse_alibi)alibi;
  return status;
}

static fa_status read_contract(const cJSON *tree, fa_dtype elements, fa_contract *c, unsigned *said,
                               fa_error *err) {
  bool given = false;
  int empty = 0;
  fa_status status = fa_hello_read_outputs(tree, &c->outputs, &given, err);
  if (given) *said |= FA_CONTRACT_OUTPUTS;
  if (status == FA_OK) status = read_lse(tree, elements, c, said, err);
  if (status == FA_OK)
    status = read_enum((fa_keys){tree, ""}, "empty_o", fa_o_of_empty_name, &empty, FA_CONTRACT_O_OF_EMPTY,
                       said, err);
  c->o_of_empty = (fa_o_of_empty)empty;
  return status;
}

/* ---- the whole ---- */

/* Families that a subject has unless it lists those that it takes: attention. */
#define FAMILIES_UNSAID (~((uint64_t)1 << FA_MERGE))

/* Version 1 knew neither of the features that came later nor of conventions. */
void fa_hello_init(fa_hello *h, int version) {
  memset(h, 0, sizeof *h);
  h->version = version;
  h->families = FAMILIES_UNSAID;
  h->dtypes = ~(uint64_t)0;
  h->passes = FA_PASS_FORWARD | FA_PASS_BACKWARD;
  h->files = version == 1;
  for (int i = 0; fa_feature_at(i); ++i)
    if (fa_feature_at(i)->age < (version > 1 ? FA_FEATURE_LISTED : FA_FEATURE_LATER))
      h->features |= (uint64_t)1 << i;
  fa_limits_init(h->limit);
  for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
    fa_declaration *d = &h->declaration[t];
    fa_contract_init(&d->contract);
    fa_arithmetic_named("recorded", (fa_dtype)t, &d->arithmetic);
    d->contract_given = version == 1 ? ~0u : 0;
    d->arithmetic_given = version == 1;
  }
}

static fa_status read_names(fa_keys k, fa_hello *h, fa_error *err) {
  char why[400] = "";
  fa_status status = fa_keys_text(k, "why_not", false, why, sizeof why, err);
  if (status == FA_OK && why[0]) return fa_fail(err, FA_ERR_DEVICE, "%s", why);
  if (status == FA_OK) status = fa_keys_text(k, "name", true, h->name, sizeof h->name, err);
  if (status == FA_OK) status = fa_keys_text(k, "device", false, h->device, sizeof h->device, err);
  if (status == FA_OK) status = fa_keys_text(k, "driver", false, h->driver, sizeof h->driver, err);
  if (status == FA_OK) status = fa_keys_text(k, "source", false, h->source, sizeof h->source, err);
  return status;
}

/* What it takes. */
static fa_status read_lists(fa_keys k, fa_hello *h, fa_error *err) {
  bool given = false, listed = false;
  fa_status status = fa_keys_words(k, "families", family_word, &h->families, &given, err);
  if (status == FA_OK) status = fa_keys_words(k, "dtypes", dtype_word, &h->dtypes, &given, err);
  if (status == FA_OK) status = fa_keys_words(k, "features", fa_feature_name, &h->features, &listed, err);
  for (int i = 0; h->version == 1 && listed && fa_feature_at(i); ++i)
    if (fa_feature_at(i)->age == FA_FEATURE_IMPLIED) h->features |= (uint64_t)1 << i;
  if (status == FA_OK) status = fa_hello_read_passes(k.object, &h->passes, err);
  if (status == FA_OK) status = fa_keys_flag(k, "supports", &h->asks, &given, err);
  return status;
}

/* What came with version 2. */
static fa_status read_later(fa_keys k, fa_hello *h, fa_error *err) {
  int transport = 0;
  bool given = false;
  fa_status status = fa_keys_check(k, fa_hello_key, err);
  if (status == FA_OK) status = fa_limits_read(k, h->limit, err);
  if (status == FA_OK) status = fa_keys_flag(k, "time", &h->times, &given, err);
  if (status == FA_OK) status = fa_keys_word(k, "transport", transport_word, &transport, &given, err);
  h->files = transport == 1;
  for (int t = 0; status == FA_OK && t < FA_HELLO_DTYPES; ++t) {
    fa_declaration *d = &h->declaration[t];
    status = read_contract(k.object, (fa_dtype)t, &d->contract, &d->contract_given, err);
  }
  return status;
}

static fa_status read_all(fa_keys k, int version, fa_hello *h, fa_error *err) {
  fa_hello_init(h, version);
  fa_status status = read_names(k, h, err);
  if (status == FA_OK && version > 1) status = read_later(k, h, err);
  if (status == FA_OK) status = read_lists(k, h, err);
  for (int t = 0; status == FA_OK && t < FA_HELLO_DTYPES; ++t) {
    fa_declaration *d = &h->declaration[t];
    status =
        fa_hello_read_arithmetic(k.object, version, (fa_dtype)t, &d->arithmetic, &d->arithmetic_given, err);
  }
  return status;
}

fa_status fa_hello_read(const cJSON *tree, fa_hello *out, fa_error *err) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(tree, "fa_exec");
  const double number = cJSON_IsNumber(version) ? version->valuedouble : 0;
  if (number != 1 && number != 2)
    return fa_fail(err, FA_ERR_INPUT,
                   "its hello is for another version of the protocol: \"fa_exec\" must be 1 or %d",
                   FA_HELLO_VERSION);
  return read_all((fa_keys){tree, ""}, (int)number, out, err);
}

fa_status fa_hello_read_text(const char *text, const char *who, fa_hello *out, fa_error *err) {
  cJSON *tree = NULL;
  fa_status status = fa_json_parse(text, strlen(text), who, &tree, err);
  if (status != FA_OK) return status;
  if (!cJSON_IsObject(tree)) status = fa_fail(err, FA_ERR_INPUT, "must be a JSON object");
  if (status == FA_OK && !cJSON_HasObjectItem(tree, "fa_exec"))
    cJSON_AddNumberToObject(tree, "fa_exec", FA_HELLO_VERSION);
  if (status == FA_OK && !cJSON_HasObjectItem(tree, "name")) cJSON_AddStringToObject(tree, "name", "");
  if (status == FA_OK) status = fa_hello_read(tree, out, err);
  cJSON_Delete(tree);
  if (status != FA_OK) fa_error_prefix(err, "%s", who);
  return status;
}
