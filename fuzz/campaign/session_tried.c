/* What random cases ask for and no judged one had: the subject lacks it, or the run was too short. */
#include "fuzz/campaign/session.h"
#include "fuzz/coverage/words.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

static fa_status words_of(const fa_session *s, int64_t index, int64_t draw, fa_word_bits *words,
                          fa_error *err) {
  fa_case c;
  const fa_status status = fa_source_get(&s->source, index, draw, &c, err);
  if (status != FA_OK) return status;
  *words = fa_words_of(&c.problem);
  fa_case_free(&c);
  return FA_OK;
}

static bool was_judged(const fa_result *r, int word) {
  if (r->state != FA_PASS && !fa_state_is_failure(r->state)) return false;
  return (r->passes & FA_PASS_BACKWARD) || !fa_require_needs_backward(fa_word_at(word));
}

fa_status fa_session_note_tried(fa_session *s, int64_t case_index, const fa_result *r, fa_error *err) {
  fa_case_origin unused;
  fa_word_bits wanted, had;
  if (!fa_source_origin(&s->source, case_index, &unused)) return FA_OK;
  if (!s->tried) s->tried = calloc(FA_MAX_WORDS, sizeof *s->tried);
  if (!s->tried) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = words_of(s, case_index, 0, &wanted, err);
  had = wanted;
  if (status == FA_OK && r->draw > 0) status = words_of(s, case_index, r->draw, &had, err);
  for (int i = 0; status == FA_OK && fa_word_at(i); ++i) {
    s->tried[i].wanted += wanted >> i & 1;
    s->tried[i].judged += (had >> i & 1) && was_judged(r, i);
  }
  return status;
}

static void print_never_judged(const fa_session *s) {
  int n = 0;
  for (int i = 0; fa_word_at(i); ++i)
    if (s->tried[i].wanted > 0 && s->tried[i].judged == 0)
      printf("%s %s", n++ ? "," : "never judged:", fa_word_at(i));
  if (n) printf("\n");
}

void fa_session_say_tried(fa_session *s) {
  if (!s->tried) return;
  if (!s->cli->quiet) print_never_judged(s);
  cJSON *all = s->report.root ? cJSON_AddObjectToObject(s->report.root, "tried") : NULL;
  for (int i = 0; all && fa_word_at(i); ++i) {
    if (s->tried[i].wanted == 0 && s->tried[i].judged == 0) continue;
    cJSON *one = cJSON_AddObjectToObject(all, fa_word_at(i));
    cJSON_AddNumberToObject(one, "wanted", (double)s->tried[i].wanted);
    cJSON_AddNumberToObject(one, "judged", (double)s->tried[i].judged);
  }
}
