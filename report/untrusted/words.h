/* Lists of words in JSON, without a word twice. */
#ifndef FA_REPORT_UNTRUSTED_WORDS_H
#define FA_REPORT_UNTRUSTED_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/* list NULL: it has none. */
bool fa_json_words_have(const struct cJSON *list, const char *word);
void fa_json_words_add(struct cJSON *list, const char *word);
/* "a, b"; "" of none. What does not fit is cut off. */
void fa_json_words_join(const struct cJSON *list, const char *separator, char *out, size_t size);

#endif
