/* Reading the keys of an object that a foreign kernel has written: every message names the key and says what is
 * allowed. A key that is absent changes nothing. FA_ERR_INPUT for everything that does not fit. */
#ifndef FA_GPU_CONTRACT_WORDS_H
#define FA_GPU_CONTRACT_WORDS_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

/* An object and what its keys are called in messages: prefix "lse." makes "lse.base" of its "base". */
typedef struct fa_keys {
  const struct cJSON *object;
  const char *prefix;
} fa_keys;

/* The i-th word of a list of words; NULL behind the last. */
typedef const char *(*fa_word_of)(int i);

const struct cJSON *fa_keys_get(fa_keys k, const char *key); /* NULL: absent */
/* "a, b, c" */
void fa_words_join(fa_word_of word, char *out, size_t size);
/* The place of text among the words; -1: it is none of them, or NULL. */
int fa_words_find(fa_word_of word, const char *text);

/* Checks that each key of the object is one of the words. */
fa_status fa_keys_check(fa_keys k, fa_word_of word, fa_error *err);
/* One word: *out is its place in the list. */
fa_status fa_keys_word(fa_keys k, const char *key, fa_word_of word, int *out, bool *given, fa_error *err);
/* An array of words: *out gets a bit for each. */
fa_status fa_keys_words(fa_keys k, const char *key, fa_word_of word, uint64_t *out, bool *given,
                        fa_error *err);
fa_status fa_keys_flag(fa_keys k, const char *key, bool *out, bool *given, fa_error *err);
/* An integer from 0 to 2^31 - 1. */
fa_status fa_keys_count(fa_keys k, const char *key, int64_t *out, bool *given, fa_error *err);
/* Copies a string, cut to size. needed: its absence is an error. */
fa_status fa_keys_text(fa_keys k, const char *key, bool needed, char *out, size_t size, fa_error *err);
/* An object; *out is NULL if it is absent. */
fa_status fa_keys_object(fa_keys k, const char *key, const struct cJSON **out, fa_error *err);

#endif
