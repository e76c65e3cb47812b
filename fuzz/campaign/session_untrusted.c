/* A run of a candidate that nobody trusts: its rules, its hidden cases, and what is said of them. */
#include "cases/base/rng.h"
#include "cases/base/sha256.h"
#include "cases/codec/json.h"
#include "fuzz/campaign/session.h"
#include "fuzz/coverage/words.h"
#include "fuzz/options/filter.h"
#include "fuzz/untrusted/hidden.h"
#include "fuzz/untrusted/mode.h"
#include "report/unfinished.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* ---- what cannot be combined ---- */

static fa_status refuse(const fa_session *s, fa_error *err) {
  const fa_cli *cli = s->cli;
  static const char own[] = "--untrusted: ";
  if (s->n_choices != 1)
    return fa_fail(err, FA_ERR_INPUT, "%sone candidate at a time: name one --backend", own);
  if (cli->laws || cli->law.n)
    return fa_fail(err, FA_ERR_INPUT, "%slaws compare two runs of a candidate, and it can tell them apart",
                   own);
  if (cli->emit)
    return fa_fail(err, FA_ERR_INPUT,
                   "%s--emit would write cases with the data that they do not get; the "
                   "report has those of failures",
                   own);
  if (cli->shrink)
    return fa_fail(err, FA_ERR_INPUT,
                   "%s--shrink would tell the candidate what it fails at; shrink the "
                   "report's failures afterwards",
                   own);
  if (cli->waivers) return fa_fail(err, FA_ERR_INPUT, "%sno failure is waived", own);
  if (s->shard.total > 1 && !cli->secret)
    return fa_fail(err, FA_ERR_INPUT, "%sshards need the same --secret HEX, which the candidate must not see",
                   own);
  return FA_OK;
}

fa_status fa_session_open_rules(fa_session *s, fa_error *err) {
  const fa_choice *choice = &s->choice[0];
  if (!s->cli->untrusted) {
    if (!s->cli->secret && !s->cli->arithmetic) return FA_OK;
    return fa_fail(err, FA_ERR_INPUT, "--%s goes with --untrusted", s->cli->secret ? "secret" : "arithmetic");
  }
  fa_status status = refuse(s, err);
  if (status != FA_OK) return status;
  s->rules = malloc(sizeof *s->rules);
  if (!s->rules) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  status = fa_rules_init(s->rules, choice->layers, choice->said.contract, s->cli->arithmetic, err);
  if (status != FA_OK) return status;
  s->style.mode = s->mode = fa_rules_mode(s->rules, &choice->terms);
  return s->mode ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

/* ---- the secret ---- */

static void hash_line(fa_sha256 *sha, const char *line) {
  fa_sha256_add(sha, line, strlen(line));
  fa_sha256_add(sha, "\n", 1);
}

static fa_status hash_case(fa_sha256 *sha, const fa_case *c, fa_error *err) {
  char *line = fa_case_to_line(c);
  if (!line) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  hash_line(sha, line);
  free(line);
  return FA_OK;
}

/* The cases of the list that --filter leaves. A law among them ends the run; a tier chooses its cases itself, and none of
 * these. */
static fa_status hash_list(const fa_session *s, fa_filter *filter, fa_sha256 *sha, fa_error *err) {
  const fa_source *source = &s->source;
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && source->list && i < source->list->n; ++i) {
    const fa_case *c = &source->list->v[i];
    if (!fa_filter_passes(filter, c->name)) continue;
    if (c->law != FA_LAW_NONE && !source->tier)
      return fa_fail(err, FA_ERR_INPUT,
                     "--untrusted: case %s is judged by a law, between runs that a candidate can tell apart; "
                     "--filter can leave it out",
                     c->name);
    if (c->law == FA_LAW_NONE) status = hash_case(sha, c, err);
  }
  return status;
}

/* Of all that was named, a line each: cases as canonical JSON, random ones by what they are drawn from. */
static fa_status hash_named(const fa_session *s, char hex[65], fa_error *err) {
  const fa_source *source = &s->source;
  char text[160];
  fa_filter filter;
  fa_sha256 sha;
  fa_sha256_init(&sha);
  fa_status status = fa_filter_compile(s->cli, &filter, err);
  if (status == FA_OK) status = hash_list(s, &filter, &sha, err);
  fa_filter_free(&filter);
  if (status != FA_OK) return status;
  snprintf(text, sizeof text, "random %s %llu %lld", source->profile ? source->profile : "",
           (unsigned long long)s->cli->seed, (long long)s->cli->count);
  if (!source->list) hash_line(&sha, text);
  snprintf(text, sizeof text, "tier %s %llu", source->tier ? source->tier->name : "",
           (unsigned long long)s->cli->seed);
  if (source->tier) hash_line(&sha, text);
  if (s->cli->filter && !source->list) hash_line(&sha, s->cli->filter);
  fa_sha256_hex(&sha, hex);
  return FA_OK;
}

static bool copy_secret(const cJSON *run, fa_secret *out) {
  const cJSON *untrusted = cJSON_GetObjectItemCaseSensitive(run, "untrusted");
  const char *hex = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(untrusted, "secret"));
  return hex && fa_secret_read(out, hex, NULL) == FA_OK;
}

/* The secret of the run that is resumed: its journal's first line has it, or its report. False: there is none. */
static bool find_secret(const fa_session *s, fa_secret *out) {
  char path[4200], *line = NULL;
  size_t size = 0;
  cJSON *root = NULL;
  fa_report_journal_of(s->cli->report, path, sizeof path);
  FILE *f = fopen(path, "re");
  if (f && getline(&line, &size, f) > 0)
    root = cJSON_Parse(line);
  else if (fa_report_load(s->cli->report, &root, NULL) != FA_OK)
    root = NULL;
  if (f) fclose(f);
  free(line);
  const bool found = copy_secret(cJSON_GetObjectItemCaseSensitive(root, "run"), out);
  cJSON_Delete(root);
  return found;
}

/* What is drawn at random is drawn from the secret too. */
static void hide_random(fa_session *s) {
  const uint64_t seed = fa_secret_number(&s->rules->secret, "random", s->cli->seed, 0);
  if (!fa_rules_have(s->rules, FA_LAYER_HIDDEN)) return;
  if (s->source.tier)
    s->source.tier->seed = seed;
  else if (!s->source.list)
    s->source.seed = seed;
}

fa_status fa_session_begin_rules(fa_session *s, fa_error *err) {
  char hash[65];
  fa_secret resumed;
  const char *secret = s->cli->secret;
  if (!s->rules) return FA_OK;
  if (!secret && s->cli->resume && find_secret(s, &resumed)) secret = resumed.hex;
  fa_status status = hash_named(s, hash, err);
  if (status == FA_OK) status = fa_rules_begin(s->rules, secret, hash, err);
  if (status != FA_OK) return status;
  fa_claims_of(s->rules, &s->rules_counts.claims);
  hide_random(s);
  return FA_OK;
}

/* ---- hidden cases ---- */

/* The case is the session's, or freed. */
static fa_status add_hidden(fa_session *s, fa_case *c, fa_error *err) {
  fa_status status = fa_case_list_push(&s->hidden, c);
  fa_case_free(c); /* that of a list is empty */
  if (status == FA_OK)
    status = fa_session_add_item(s, s->source.hidden_from + s->hidden.n - 1, 0, s->cli->schedule_seed);
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
}

typedef fa_status hide_fn(const fa_rules *r, const fa_case *named, int64_t i, fa_case *out, bool *found,
                          fa_error *err);

/* Adds what `make` makes of a case, if it can. */
static fa_status hide_beside(fa_session *s, const fa_case *named, hide_fn *make, bool *found,
                             fa_word_bits *words, fa_error *err) {
  fa_case hidden;
  const fa_status status = make(s->rules, named, s->hidden.n, &hidden, found, err);
  if (status != FA_OK || !*found) return status;
  *words |= fa_words_of(&hidden.problem);
  return add_hidden(s, &hidden, err);
}

/* A neighbour of every case that was written down, and one that is long. words: receives what the run's cases have. */
static fa_status add_neighbours(fa_session *s, fa_word_bits *words, fa_error *err) {
  const int64_t n = s->n_items;
  bool found = false, has_long = false;
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < n; ++i) {
    const fa_item item = s->item[i];
    fa_case_origin unused;
    fa_case c;
    status = fa_source_get(&s->source, item.case_index, item.draw > 0 ? item.draw : 0, &c, err);
    if (status != FA_OK) return status;
    *words |= fa_words_of(&c.problem);
    const bool drawn = fa_source_origin(&s->source, item.case_index, &unused);
    if (!drawn) status = hide_beside(s, &c, fa_hidden_neighbour, &found, words, err);
    if (status == FA_OK && !has_long) status = hide_beside(s, &c, fa_hidden_long, &has_long, words, err);
    fa_case_free(&c);
  }
  return status;
}

/* A case for every word of the contract that no other case has. */
static fa_status add_missing(fa_session *s, fa_word_bits words, fa_error *err) {
  fa_status status = FA_OK;
  for (int w = 0; status == FA_OK && fa_word_at(w); ++w) {
    fa_case hidden;
    bool found = false;
    if (!((s->rules_counts.claims.claimed & ~words) >> w & 1)) continue;
    status = fa_hidden_with_word(s->rules, w, s->hidden.n, &hidden, &found, err);
    if (status != FA_OK || !found) continue;
    words |= fa_words_of(&hidden.problem);
    status = add_hidden(s, &hidden, err);
  }
  return status;
}

static void shuffle(fa_session *s) {
  fa_rng rng = fa_rng_make(fa_secret_number(&s->rules->secret, "order", 0, 0), 0);
  for (int64_t i = s->n_items - 1; i > 0; --i) {
    const int64_t k = fa_rng_below(&rng, i + 1);
    const fa_item item = s->item[i];
    s->item[i] = s->item[k];
    s->item[k] = item;
  }
}

fa_status fa_session_hide(fa_session *s, fa_error *err) {
  fa_word_bits words = 0;
  fa_status status = FA_OK;
  if (!s->rules || !s->item) return FA_OK;
  if (fa_rules_have(s->rules, FA_LAYER_HIDDEN)) {
    s->source.hidden = &s->hidden;
    status = add_neighbours(s, &words, err);
    if (status == FA_OK) status = add_missing(s, words, err);
    if (status == FA_OK) shuffle(s);
  }
  s->rules->n_items = s->n_items;
  return status;
}

bool fa_session_is_hidden(const fa_session *s, int64_t case_index) {
  const fa_source *source = &s->source;
  fa_case_origin unused;
  if (!s->rules || !fa_rules_have(s->rules, FA_LAYER_HIDDEN)) return false;
  if (source->hidden && case_index >= source->hidden_from) return true;
  return (!source->list || source->tier) && fa_source_origin(source, case_index, &unused);
}

/* ---- what is said ---- */

void fa_session_add_rules_identity(const fa_session *s, cJSON *run) {
  char layers[400];
  if (!s->rules) return;
  cJSON *o = cJSON_AddObjectToObject(run, "untrusted");
  fa_layers_text(s->rules->layers, layers, sizeof layers);
  cJSON_AddStringToObject(o, "secret", s->rules->secret.hex);
  cJSON_AddStringToObject(o, "contract_sha256", s->rules->contract_sha256);
  cJSON_AddStringToObject(o, "arithmetic", s->rules->arithmetic);
  cJSON_AddStringToObject(o, "layers", layers);
}

void fa_session_number_failure(fa_session *s, int64_t before, int64_t number) {
  if (!s->rules || s->report.n_failures == before) return;
  const int64_t own = s->repeats ? fa_session_item(s, number).number : number;
  cJSON *last = s->report.failures->child->prev; /* of the first in cJSON's lists */
  cJSON_DeleteItemFromObjectCaseSensitive(last, "item");
  cJSON_AddNumberToObject(last, "item", (double)own);
}

void fa_session_count_rules(fa_session *s, int64_t number, const fa_result *r) {
  if (s->rules)
    fa_rules_count(&s->rules_counts, r, fa_session_is_hidden(s, fa_session_item(s, number).case_index));
}

int fa_session_conclude_rules(fa_session *s, int code) {
  if (!s->rules) return code;
  if (s->repeats) s->rules_counts.claims.claimed &= s->rules_counts.claims.tested;
  fa_rules_print_end(s->rules, &s->rules_counts, stdout);
  fa_rules_add_to_report(s->rules, &s->rules_counts, s->report.root);
  const bool whole = fa_claims_untested(&s->rules_counts.claims) == 0;
  if (whole || !fa_rules_have(s->rules, FA_LAYER_CONTRACT) || code != FA_EXIT_PASSED) return code;
  fputs("fa-verify: its contract claims what no case has tested\n", stderr);
  return FA_EXIT_MISMATCH;
}
