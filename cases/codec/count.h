/* Counts in JSON, whose numbers are doubles: a conversion of one that the integer cannot hold has no defined value. */
#ifndef FA_CASES_CODEC_COUNT_H
#define FA_CASES_CODEC_COUNT_H

#include <stdint.h>

struct cJSON;

/* The whole part of a number from 0 to 9e15, below which doubles have every whole number. 0: it is no such number; NULL is none. */
int64_t fa_count_of(const struct cJSON *number);
/* Of what stands at key. */
int64_t fa_count_at(const struct cJSON *object, const char *key);

#endif
