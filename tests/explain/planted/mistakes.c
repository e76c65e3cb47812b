#include "tests/explain/planted/mistakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mistake {
  const char *name;
  int64_t number;
} mistakes[PL_N] = {
#define ROW(name, number) {#name, number},
    PL_MISTAKES(ROW)
#undef ROW
};

static const struct set {
  const char *name, *text;
} sets[] = {
    /* Three bugs, each of some calls: a campaign should find three causes. */
    {"three_bugs",
     "window_right_one_fewer@head_dim>64,last_key_tile_lost@seqlen_k%64>0&seqlen_k%64<9&seqlen_k>64,"
     "other_kv_head_modulo@group>2"},
};

static bool find(const char *name, pl_planted *out) {
  for (int i = 0; i < PL_N; ++i) {
    if (strcmp(mistakes[i].name, name) != 0) continue;
    out->what = (pl_mistake)i;
    out->number = mistakes[i].number;
    return true;
  }
  return false;
}

/* "seqlen_k%64>=9" */
static bool read_condition(const char *text, pl_condition *out) {
  memset(out, 0, sizeof *out);
  const size_t at = strcspn(text, "!<>="), key = strcspn(text, "%!<>=");
  const size_t op = strspn(text + at, "!<>=");
  if (key == 0 || key >= sizeof out->key || op == 0 || op >= sizeof out->op ||
      strlen(text + at + op) >= sizeof out->value)
    return false;
  memcpy(out->key, text, key);
  if (key < at) out->modulo = strtoll(text + key + 1, NULL, 10);
  memcpy(out->op, text + at, op);
  strcpy(out->value, text + at + op);
  return key == at || out->modulo > 0;
}

/* "name:number@condition&condition" */
static bool read_planted(char *text, pl_planted *out) {
  char *conditions = strchr(text, '@');
  if (conditions) *conditions++ = 0;
  char *number = strchr(text, ':');
  if (number) *number++ = 0;
  memset(out, 0, sizeof *out);
  if (!find(text, out)) return false;
  if (number) out->number = strtoll(number, NULL, 10);
  for (char *part; conditions && (part = strsep(&conditions, "&")) != NULL;)
    if (out->n == PL_CONDITIONS || !read_condition(part, &out->condition[out->n++])) return false;
  return out->number != 0;
}

static const char *set_text(const char *name) {
  for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i)
    if (strcmp(sets[i].name, name) == 0) return sets[i].text;
  return NULL;
}

bool pl_plan_read(const char *text, pl_plan *out, char *message, size_t size) {
  char copy[1024], *rest = copy;
  memset(out, 0, sizeof *out);
  if (!text || !*text) return true;
  snprintf(copy, sizeof copy, "%s", set_text(text) ? set_text(text) : text);
  for (char *part; (part = strsep(&rest, ",")) != NULL;) {
    if (out->n < PL_PLANTED && read_planted(part, &out->planted[out->n++])) continue;
    snprintf(message, size, "FA_PLANTED: what is \"%s\"?", part);
    return false;
  }
  return true;
}

static bool compare(int64_t a, const char *op, int64_t b) {
  if (op[0] == '!') return a != b;
  if (op[0] == '=') return a == b;
  return (op[0] == '<' ? a < b : a > b) || (op[1] == '=' && a == b);
}

static bool holds(const pl_condition *c, const fa_plugin_problem *p) {
  const char *word;
  int64_t value;
  if (pl_feature_word(p, c->key, &word)) return (strcmp(word, c->value) == 0) == (c->op[0] == '=');
  if (!pl_feature(p, c->key, &value)) return false;
  return compare(c->modulo ? value % c->modulo : value, c->op, strtoll(c->value, NULL, 10));
}

void pl_plan_for(const pl_plan *plan, const fa_plugin_problem *p, int64_t *number) {
  memset(number, 0, PL_N * sizeof *number);
  for (int i = 0; i < plan->n; ++i) {
    const pl_planted *x = &plan->planted[i];
    bool all = true;
    for (int k = 0; k < x->n; ++k) all = all && holds(&x->condition[k], p);
    if (all) number[x->what] = x->number;
  }
}
