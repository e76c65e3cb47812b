/* A list of words that grows: the arguments and the environment of a program that is about to be started. */
#ifndef FA_GPU_WALL_WORDS_H
#define FA_GPU_WALL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: empty. */
typedef struct fa_wall_words {
  char **v; /* NULL-terminated once there is a word; all of it owned */
  int n;
  bool failed; /* memory was short, and a word is missing */
} fa_wall_words;

/* Appends a copy; printf's format. */
void fa_wall_add(fa_wall_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends copies of words up to a NULL. */
void fa_wall_add_all(fa_wall_words *w, const char *const *words);
bool fa_wall_has(const fa_wall_words *w, const char *word);
/* Appends n bytes of text to a shell command, as one word whatever characters they are. False: there is no room. */
bool fa_wall_quote(char *command, size_t size, const char *text, size_t n);
void fa_wall_words_free(fa_wall_words *w);

#endif
