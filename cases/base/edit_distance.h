/* How far apart two names are: for "did you mean". */
#ifndef FA_CASES_BASE_EDIT_DISTANCE_H
#define FA_CASES_BASE_EDIT_DISTANCE_H

/* How many letters must be inserted, deleted or replaced to make b of a (Levenshtein); upper and lower case are
 * alike. Of names longer than 48 bytes the rest does not count. */
int fa_edit_distance(const char *a, const char *b);

#endif
