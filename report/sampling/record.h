/* What a sample was, in reports and as words. */
#ifndef FA_REPORT_SAMPLING_RECORD_H
#define FA_REPORT_SAMPLING_RECORD_H

#include "cases/vocabulary/sample.h"

struct cJSON;

/* What was judged of a large case. Guards, inputs and repeats are looked at everywhere. */
typedef struct fa_sampled {
  fa_sample asked;              /* no rows and no strips: everything was judged */
  int64_t rows, strips;         /* drawn at random */
  int64_t of_rows, of_strips;   /* all that there are; of_strips 0: no gradients are judged */
  int64_t odd_rows, odd_strips; /* judged besides, because their outputs hold NaN or infinity */
} fa_sampled;

#define FA_SAMPLED_TEXT 320
/* "sampled: 2,048 of 262,144 rows and 64 of 1,024 strips of keys; a fault in at least 0.15 % of the rows or 4.6 % of the
 * strips is found with 95 %"; "" if everything was judged. */
void fa_sampled_text(const fa_sampled *s, char text[FA_SAMPLED_TEXT]);

/* "sample": {...} of a case or a failure; nothing if everything was judged. */
void fa_sampled_add(struct cJSON *entry, const fa_sampled *s);
/* The same words of an entry that has it; "" if it has none. */
void fa_sampled_entry_text(const struct cJSON *entry, char text[FA_SAMPLED_TEXT]);
/* The "asked" of it, none if there is none. FA_ERR_INPUT: it is something else. */
fa_status fa_sampled_read(const struct cJSON *entry, fa_sample *asked, fa_error *err);

#endif
