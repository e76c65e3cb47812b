#include "fuzz/campaign/waivers.h"

#include "cases/base/atomic_file.h"
#include "cases/base/json.h"
#include "report/failure_class.h"

#include <cjson/cJSON.h>

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, BACKEND, DEVICE, N_REGEXES };
static const char *const regex_key[N_REGEXES] = {"name", "backend", "device"};

typedef struct waiver {
  regex_t regex[N_REGEXES];
  bool has_regex[N_REGEXES];
  int family, dtype; /* -1: any */
  bool state[FA_N_STATES];
  bool tensor[FA_T_COUNT], has_tensors;
  char reason[256], expires[16];
  bool expired;
  int64_t n_passed, n_failed, n_other; /* matching cases: passed, failed as expected, failed otherwise */
} waiver;

struct fa_waivers {
  char *path;
  waiver *v;
  int n;
};

/* ---- reading ---- */

static const char *string_of(const cJSON *o, const char *key) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsString(s) ? s->valuestring : NULL;
}

static fa_status check_keys(const cJSON *o, const char *const *allowed, const char *at, fa_error *err) {
  const cJSON *child;
  if (!cJSON_IsObject(o)) return fa_fail(err, FA_ERR_INPUT, "%s: an object is needed", at);
  cJSON_ArrayForEach(child, o) {
    bool known = false;
    char list[256] = "";
    for (const char *const *key = allowed; *key; ++key) {
      size_t n = strlen(list);
      snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", *key);
      known |= strcmp(*key, child->string) == 0;
    }
    if (!known) return fa_fail(err, FA_ERR_INPUT, "%s.%s: unknown; allowed: %s", at, child->string, list);
  }
  return FA_OK;
}

/* YYYY-MM-DD in the Gregorian calendar. */
static bool is_date(const char *s) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (!s || strlen(s) != 10 || s[4] != '-' || s[7] != '-') return false;
  for (int i = 0; i < 10; ++i)
    if (i != 4 && i != 7 && (s[i] < '0' || s[i] > '9')) return false;
  const int year = atoi(s), month = atoi(s + 5), day = atoi(s + 8);
  if (month < 1 || month > 12) return false;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

static fa_status read_regex(waiver *w, int which, const cJSON *value, const char *at, fa_error *err) {
  if (!cJSON_IsString(value))
    return fa_fail(err, FA_ERR_INPUT, "%s.match.%s: a string is needed", at, regex_key[which]);
  int code = regcomp(&w->regex[which], value->valuestring, REG_EXTENDED | REG_NOSUB);
  w->has_regex[which] = code == 0;
  if (code == 0) return FA_OK;
  char why[200];
  regerror(code, &w->regex[which], why, sizeof why);
  return fa_fail(err, FA_ERR_INPUT, "%s.match.%s: no POSIX extended regular expression: %s", at,
                 regex_key[which], why);
}

static fa_status read_match(waiver *w, const cJSON *match, const char *at, fa_error *err) {
  static const char *const keys[] = {"name", "family", "dtype", "backend", "device", NULL};
  char here[96];
  snprintf(here, sizeof here, "%s.match", at);
  fa_status status = check_keys(match, keys, here, err);
  if (status == FA_OK && !match->child)
    return fa_fail(err, FA_ERR_INPUT, "%s: empty: it would waive everything", here);
  for (int i = 0; status == FA_OK && i < N_REGEXES; ++i) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(match, regex_key[i]);
    if (value) status = read_regex(w, i, value, at, err);
  }
  const cJSON *family = cJSON_GetObjectItemCaseSensitive(match, "family");
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(match, "dtype");
  fa_dtype d;
  if (status == FA_OK && family) {
    for (int f = 0; cJSON_IsString(family) && strcmp(fa_family_name((fa_family)f), "?") != 0; ++f)
      if (strcmp(fa_family_name((fa_family)f), family->valuestring) == 0) w->family = f;
    if (w->family < 0)
      return fa_fail(err, FA_ERR_INPUT, "%s.family: flash, memeff, flex, kvcache or merge is allowed", here);
  }
  if (status == FA_OK && dtype) {
    if (!cJSON_IsString(dtype) || !fa_dtype_from_name(dtype->valuestring, &d))
      return fa_fail(err, FA_ERR_INPUT, "%s.dtype: f16, bf16 or f32 is allowed", here);
    w->dtype = (int)d;
  }
  return status;
}

static fa_status read_states(waiver *w, const cJSON *states, const char *at, fa_error *err) {
  const cJSON *name;
  if (!cJSON_IsArray(states) || !states->child)
    return fa_fail(err, FA_ERR_INPUT, "%s.states: an array of states is needed", at);
  cJSON_ArrayForEach(name, states) {
    fa_state s;
    if (!cJSON_IsString(name) || !fa_state_from_name(name->valuestring, &s) || !fa_state_is_failure(s))
      return fa_fail(err, FA_ERR_INPUT,
                     "%s.states: states of failures such as \"FAIL\" or \"CRASH\" are allowed", at);
    w->state[s] = true;
  }
  return FA_OK;
}

static fa_status read_tensors(waiver *w, const cJSON *tensors, const char *at, fa_error *err) {
  const cJSON *name;
  if (!cJSON_IsArray(tensors) || !tensors->child)
    return fa_fail(err, FA_ERR_INPUT, "%s.tensors: an array of names is needed", at);
  w->has_tensors = true;
  cJSON_ArrayForEach(name, tensors) {
    bool known = false;
    for (int id = 0; cJSON_IsString(name) && id < FA_T_COUNT; ++id) {
      if (strcmp(fa_tensor_id_name((fa_tensor_id)id), name->valuestring) != 0) continue;
      known = w->tensor[id] = fa_tensor_id_is_output((fa_tensor_id)id);
    }
    if (!known)
      return fa_fail(err, FA_ERR_INPUT, "%s.tensors: names of outputs such as \"dq\" are allowed", at);
  }
  return FA_OK;
}

static fa_status read_waiver(waiver *w, const cJSON *o, int index, const char *today, fa_error *err) {
  static const char *const keys[] = {"match", "states", "tensors", "reason", "expires", "link", NULL};
  char at[64];
  snprintf(at, sizeof at, "$.waivers[%d]", index);
  w->family = w->dtype = -1;
  fa_status status = check_keys(o, keys, at, err);
  if (status != FA_OK) return status;
  const char *reason = string_of(o, "reason"), *expires = string_of(o, "expires");
  const cJSON *states = cJSON_GetObjectItemCaseSensitive(o, "states"), *link;
  const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(o, "tensors");
  if (!reason || !reason[strspn(reason, " \t\n")])
    return fa_fail(err, FA_ERR_INPUT, "%s.reason: missing or empty; say why the failure is tolerated", at);
  if (!is_date(expires))
    return fa_fail(err, FA_ERR_INPUT, "%s.expires: missing or no date such as \"2027-01-31\"", at);
  if ((link = cJSON_GetObjectItemCaseSensitive(o, "link")) && !cJSON_IsString(link))
    return fa_fail(err, FA_ERR_INPUT, "%s.link: a string is needed", at);
  if (!states && !tensors)
    return fa_fail(err, FA_ERR_INPUT, "%s: states or tensors is needed: how the case may fail", at);
  snprintf(w->reason, sizeof w->reason, "%s", reason);
  snprintf(w->expires, sizeof w->expires, "%s", expires);
  w->expired = strcmp(expires, today) < 0;
  w->state[FA_FAIL] = !states; /* "tensors" alone means wrong numbers */
  status = read_match(w, cJSON_GetObjectItemCaseSensitive(o, "match"), at, err);
  if (status == FA_OK && states) status = read_states(w, states, at, err);
  if (status == FA_OK && tensors) status = read_tensors(w, tensors, at, err);
  return status;
}

static fa_status read_file(fa_waivers *w, const cJSON *root, const char *today, fa_error *err) {
  static const char *const keys[] = {"fa_waivers", "note", "waivers", NULL};
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "fa_waivers");
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "waivers"), *entry;
  if (!cJSON_IsNumber(version) || version->valuedouble != FA_WAIVERS_VERSION)
    return fa_fail(err, FA_ERR_INPUT, "$.fa_waivers: missing or unknown version; %d is allowed",
                   FA_WAIVERS_VERSION);
  fa_status status = check_keys(root, keys, "$", err);
  if (status != FA_OK) return status;
  if (!cJSON_IsArray(list)) return fa_fail(err, FA_ERR_INPUT, "$.waivers: an array is needed");
  w->v = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *w->v);
  if (!w->v) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  cJSON_ArrayForEach(entry, list) {
    int i = w->n++;
    if (status == FA_OK) status = read_waiver(&w->v[i], entry, i, today, err);
  }
  return status;
}

fa_status fa_waivers_parse(const char *text, size_t n_bytes, const char *path, const char *today,
                           fa_waivers **out, fa_error *err) {
  *out = NULL;
  cJSON *root = NULL;
  fa_status status = fa_json_parse(text, n_bytes, path, &root, err);
  if (status != FA_OK) return status; /* the message has the file and the place in it */
  fa_waivers *w = calloc(1, sizeof *w);
  if (w) w->path = strdup(path);
  if (!w || !w->path)
    status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  else
    status = read_file(w, root, today, err);
  if (status != FA_OK) {
    fa_error_prefix(err, "%s", path);
    fa_waivers_free(w);
  } else {
    *out = w;
  }
  cJSON_Delete(root);
  return status;
}

fa_status fa_waivers_load(const char *path, const char *today, fa_waivers **out, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  *out = NULL;
  fa_status status = fa_file_read(path, &text, &n, err);
  if (status == FA_ERR_IO) return FA_ERR_INPUT; /* the user named the file */
  if (status != FA_OK) return status;
  status = fa_waivers_parse(text, n, path, today, out, err);
  free(text);
  return status;
}

void fa_waivers_free(fa_waivers *w) {
  if (!w) return;
  for (int i = 0; w->v && i < w->n; ++i)
    for (int k = 0; k < N_REGEXES; ++k)
      if (w->v[i].has_regex[k]) regfree(&w->v[i].regex[k]);
  free(w->v);
  free(w->path);
  free(w);
}

/* ---- applying ---- */

static bool matches(const waiver *w, const fa_problem *p, const char *device, const fa_result *r) {
  const char *text[N_REGEXES] = {[NAME] = r->name ? r->name : "", [BACKEND] = r->backend, [DEVICE] = device};
  for (int i = 0; i < N_REGEXES; ++i)
    if (w->has_regex[i] && regexec(&w->regex[i], text[i], 0, NULL, 0) != 0) return false;
  return (w->family < 0 || w->family == (int)p->family) && (w->dtype < 0 || w->dtype == (int)p->dtype);
}

/* True if the case failed in the way that the waiver describes, and in no other. */
static bool expects(const waiver *w, const fa_result *r) {
  if (!w->state[r->state]) return false;
  if (!w->has_tensors) return true;
  const fa_tensor_bits wrong = fa_failure_tensors(r);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if ((wrong >> id & 1) && !w->tensor[id]) return false;
  return wrong != 0; /* a refusal, for example, is about no tensor */
}

void fa_waivers_apply(fa_waivers *w, const fa_problem *p, const char *device, fa_result *r) {
  bool failed = fa_state_is_failure(r->state);
  r->waived = false;
  r->waiver[0] = 0;
  for (int i = 0; i < w->n; ++i) {
    waiver *x = &w->v[i];
    if (!matches(x, p, device, r)) continue;
    x->n_passed += r->state == FA_PASS;
    if (!failed) continue;
    if (!expects(x, r)) {
      x->n_other++;
      continue;
    }
    x->n_failed++;
    if (r->waived) continue; /* the first waiver that still applies is the case's */
    r->waived = !x->expired;
    snprintf(r->waiver, sizeof r->waiver,
             x->expired ? "waiver %d expired on %s: %s" : "waiver %d until %s: %s", i, x->expires, x->reason);
  }
}

bool fa_waivers_conclude(const fa_waivers *w, bool whole, FILE *out) {
  bool fails = false;
  for (int i = 0; i < w->n; ++i) {
    const waiver *x = &w->v[i];
    if (x->expired && x->n_failed)
      fprintf(out, "%s: $.waivers[%d]: expired on %s; its %lld failures count\n", w->path, i, x->expires,
              (long long)x->n_failed);
    if (x->n_passed == 0 || x->n_failed || x->n_other) continue;
    bool counts = whole && !x->expired;
    fails |= counts;
    fprintf(out, "%s: $.waivers[%d] (%s): all %lld cases that it matches passed%s\n", w->path, i, x->reason,
            (long long)x->n_passed,
            counts ? "; remove it: an unneeded waiver fails the run" : " here; is it still needed?");
  }
  return fails;
}
