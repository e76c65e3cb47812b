/* The options with which a case of an untrusted candidate is run again by the rules of its run. */
#ifndef FA_REPORT_TEXT_MODE_H
#define FA_REPORT_TEXT_MODE_H

struct cJSON;

/* "--untrusted --without seeds --without hidden ...", of the key "untrusted" of a report. A case that is printed has the data
 * that were drawn for it, and no secret stands beside it: so no others are drawn, and no hidden case. Of reports merged that
 * were judged by different rules: all layers, since none can be left out for all. malloc'd; NULL: out of memory. */
char *fa_mode_text(const struct cJSON *untrusted);

#endif
