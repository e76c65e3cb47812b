/* The tables of docs/reference/protocol.md and cubin.md have the words of the code, no more and no fewer. */
#include "cases/tensors/table.h"
#include "gpu/contract/features.h"
#include "gpu/contract/hello.h"
#include "gpu/cubin/plan.h"
#include "gpu/cubin/sizes.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL "docs/reference/protocol.md"
#define CUBIN "docs/reference/cubin.md"
enum { MAX_WORDS = 100 };

typedef struct words {
  int n;
  char word[MAX_WORDS][32], second[MAX_WORDS][16]; /* the first column's word, and its row's second column */
} words;

/* Every word in backticks in the first column of the table under this heading's first cell. */
static words table_of(const char *text, const char *heading) {
  words w = {.n = 0};
  char start[64];
  snprintf(start, sizeof start, "\n| %s |", heading);
  const char *row = strstr(text, start);
  for (row = row ? strchr(row + 1, '\n') : NULL; row && row[1] == '|'; row = strchr(row + 1, '\n')) {
    const char *end = strchr(row + 2, '|'), *at = row + 2;
    while ((at = strchr(at, '`')) && at < end && w.n < MAX_WORDS) {
      const char *close = strchr(at + 1, '`');
      snprintf(w.word[w.n], sizeof *w.word, "%.*s", (int)(close - at - 1), at + 1);
      snprintf(w.second[w.n++], sizeof *w.second, "%.*s", (int)strcspn(end + 2, " "), end + 2);
      at = close + 1;
    }
  }
  return w;
}

static int find(const words *w, const char *word) {
  for (int i = 0; i < w->n; ++i)
    if (strcmp(w->word[i], word) == 0) return i;
  return -1;
}

/* The number of differences between the table and the words of the code; quiet: does not print them. */
static int differences(const char *text, const char *heading, fa_word_of word, bool quiet) {
  const words w = table_of(text, heading);
  int n = 0, wrong = 0;
  for (; word(n); ++n) {
    if (find(&w, word(n)) >= 0) continue;
    if (!quiet) fprintf(stderr, "the table \"%s\" lacks %s\n", heading, word(n));
    ++wrong;
  }
  for (int i = 0; i < w.n; ++i) {
    if (fa_words_find(word, w.word[i]) >= 0 && find(&w, w.word[i]) == i) continue;
    if (!quiet) fprintf(stderr, "the table \"%s\" has %s\n", heading, w.word[i]);
    ++wrong;
  }
  return wrong;
}

/* Tensors of a request: those of a call, and lists by key block. */
static const char *tensor_word(int i) {
  static const char *const lists[] = {"q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"};
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool buffer =
        (id >= FA_T_BUFFER_0 && id <= FA_T_BUFFER_LAST) || (id >= FA_T_DBUFFER_0 && id <= FA_T_DBUFFER_LAST);
    if (!buffer && id != FA_T_DROPOUT_KEEP && i-- == 0) return fa_tensor_id_name((fa_tensor_id)id);
  }
  return i < 4 ? lists[i] : NULL;
}

static const struct {
  const char *page, *heading;
  fa_word_of word;
} tables[] = {{PROTOCOL, "key of hello", fa_hello_key},
              {PROTOCOL, "key of lse", fa_hello_lse_key},
              {PROTOCOL, "limited", fa_limited_name},
              {PROTOCOL, "key of a limit", fa_limit_word},
              {PROTOCOL, "feature", fa_feature_name},
              {PROTOCOL, "output", fa_output_word},
              {PROTOCOL, "tensor", tensor_word},
              {CUBIN, "key of a plan", fa_cubin_plan_key},
              {CUBIN, "key of a launch", fa_cubin_launch_key},
              {CUBIN, "key of a parameter", fa_cubin_param_key},
              {CUBIN, "name", fa_cubin_size_name},
              {CUBIN, "real", fa_cubin_real_name}};
enum { N_TABLES = sizeof tables / sizeof *tables };

static void test_ages(const char *text) {
  static const char *const said[] = {[FA_FEATURE_NAMED] = "yes",
                                     [FA_FEATURE_IMPLIED] = "always",
                                     [FA_FEATURE_LATER] = "no",
                                     [FA_FEATURE_LISTED] = "listed"};
  const words w = table_of(text, "feature");
  for (int i = 0; i < w.n; ++i) {
    const int k = fa_words_find(fa_feature_name, w.word[i]);
    CHECK_MSG(k < 0 || strcmp(w.second[i], said[fa_feature_at(k)->age]) == 0, "%s: version 1: %s", w.word[i],
              w.second[i]);
  }
}

/* A word that is renamed in the document is noticed: it is missing, and another is too many. */
static void test_faults(const char *page, char *text) {
  for (int i = 0; i < N_TABLES; ++i) {
    if (strcmp(tables[i].page, page) != 0) continue;
    const words w = table_of(text, tables[i].heading);
    REQUIRE(w.n > 0);
    char start[64];
    snprintf(start, sizeof start, "\n| %s |", tables[i].heading);
    char *at = strchr(strstr(text, start), '`');
    REQUIRE(at != NULL);
    ++at[1];
    CHECK_MSG(differences(text, tables[i].heading, tables[i].word, true) >= 2, "%s", tables[i].heading);
    --at[1];
  }
}

static void test_page(const char *page) {
  static char text[65536];
  FILE *file = fopen(page, "r");
  REQUIRE(file != NULL);
  const size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  REQUIRE(n > 0 && n < sizeof text - 1);
  text[n] = 0;
  for (int i = 0; i < N_TABLES; ++i)
    if (strcmp(tables[i].page, page) == 0)
      CHECK_MSG(differences(text, tables[i].heading, tables[i].word, false) == 0, "%s", page);
  if (strcmp(page, PROTOCOL) == 0) test_ages(text);
  test_faults(page, text);
}

int main(void) {
  test_page(PROTOCOL);
  test_page(CUBIN);
  return check_done();
}
