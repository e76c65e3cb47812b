/* Texts and how often each was met. */
#ifndef FA_REPORT_SCORE_REASONS_H
#define FA_REPORT_SCORE_REASONS_H

#include <stdint.h>

struct cJSON;

/* The last one collects "other reasons" when there are more. */
enum { FA_SCORE_REASONS = 24 };
typedef struct fa_score_reasons {
  int n;
  struct {
    char text[200];
    int64_t count;
  } v[FA_SCORE_REASONS];
} fa_score_reasons;

void fa_score_reasons_add(fa_score_reasons *r, const char *text);
/* [{"text": "exec: it has no bf16", "count": 12}, ...], the most frequent first, then by text; at most so many. */
struct cJSON *fa_score_reasons_json(const fa_score_reasons *r, int at_most);

#endif
