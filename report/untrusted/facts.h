/* What a reader has to know of the rules that a candidate was judged by, in a few lines: for `report`, JUnit, the page and
 * the score. */
#ifndef FA_REPORT_UNTRUSTED_FACTS_H
#define FA_REPORT_UNTRUSTED_FACTS_H

struct cJSON;

typedef struct fa_untrusted_fact {
  const char *name;  /* "layers_left_out": in JUnit "untrusted.layers_left_out" */
  const char *label; /* for people, large where it is bad */
  char text[1200];
} fa_untrusted_fact;
enum { FA_UNTRUSTED_FACTS = 9 };

/* Those that the report has something to say of; returns how many. root: the report, or its head. */
int fa_untrusted_facts(const struct cJSON *root, fa_untrusted_fact fact[FA_UNTRUSTED_FACTS]);

/* The claims that nobody tested and that fail the run for it: an array, or NULL. They do not where the layer contract was
 * left out, of a merged report in every part. */
const struct cJSON *fa_untrusted_failing_claims(const struct cJSON *root);

#endif
