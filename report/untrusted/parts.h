/* The key "untrusted" of a report that was merged of several: what holds for all of them, and beside it the parts. */
#ifndef FA_REPORT_UNTRUSTED_PARTS_H
#define FA_REPORT_UNTRUSTED_PARTS_H

#include <stdbool.h>

struct cJSON;

/* What a run that trusts its candidate has too; ends with NULL. */
extern const char *const fa_untrusted_always[];

/* Adds to the array `parts` what a report's head says: its "untrusted" with the key "report" (the path), or
 * {"report": path, "trusted": true}; of a merged report its own parts. False: out of memory. */
bool fa_untrusted_gather(struct cJSON *parts, const struct cJSON *head, const char *path);

/* Replaces the head's "untrusted" by one for all parts, which it takes; there is none if all of them are trusted. Layers
 * are in force if every part has them. A key is there if all parts say the same: contract, arithmetic, commitment, secret.
 * "differ" lists what they do not share, of: trusted, layers, contract, arithmetic. A claim is tested if a part with the
 * same contract has tested it. counted_once: else a result is in several parts, and there are no counts. */
void fa_untrusted_join(struct cJSON *head, struct cJSON *parts, bool counted_once);

#endif
