/* The lines on which the cases of a file stand: cJSON's tree has no places. */
#include "cases/codec/read.h"

#include <string.h>

/* What has been read so far. */
typedef struct walk {
  const char *key;
  int64_t *line, n; /* found; room */
  int64_t found, at_line;
  int depth;
  const char *word; /* the last string at depth 1, without its quotes */
  size_t word_bytes;
  bool wanted; /* inside the array */
  bool
      expecting; /* of the array: the next character that is no space begins an element, unless it ends the array */
} walk;

/* Returns the place behind the string that begins at text[at], a quote. */
static size_t skip_string(const char *text, size_t n_bytes, size_t at) {
  for (++at; at < n_bytes && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

static void note_word(walk *w, const char *text, size_t from, size_t to) {
  if (w->depth != 1) return;
  w->word = text + from + 1;
  w->word_bytes = to - from - 2;
}

static bool is_key(const walk *w) {
  return w->word && strlen(w->key) == w->word_bytes && memcmp(w->key, w->word, w->word_bytes) == 0;
}

static void note_element(walk *w, char c) {
  if (!w->expecting || strchr(" \t\r\n", c)) return;
  if (c != ']' && w->found < w->n) w->line[w->found++] = w->at_line;
  w->expecting = false;
}

static void note_structure(walk *w, char c) {
  if (c == '[' && w->depth == 1) w->wanted = w->expecting = is_key(w);
  if (c == ',' && w->depth == 2) w->expecting = w->wanted;
  w->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
  if (w->depth < 2) w->wanted = false;
  w->at_line += c == '\n';
}

void fa_case_lines_find(const char *text, size_t n_bytes, const char *key, int64_t *line, int64_t n) {
  walk w = {.key = key, .line = line, .n = n, .at_line = 1};
  memset(line, 0, (size_t)n * sizeof *line);
  for (size_t at = 0; at < n_bytes;) {
    note_element(&w, text[at]);
    if (text[at] == '"') {
      const size_t end = skip_string(text, n_bytes, at);
      if (end <= n_bytes) note_word(&w, text, at, end);
      at = end;
    } else {
      note_structure(&w, text[at++]);
    }
  }
}
