/* How far apart two names are: for "did you mean". */
#ifndef FA_CASES_BASE_EDIT_DISTANCE_H
#define FA_CASES_BASE_EDIT_DISTANCE_H

/* How many letters must be inserted, deleted or replaced to make b of a (Levenshtein); upper and lower case are
 * alike. Of names longer than 48 bytes the rest does not count. */
int fa_edit_distance(const char *a, const char *b);

/* Looks for the name that was probably meant, among names that are shown to it one by one. */
typedef struct fa_nearest {
  const char *given;
  int limit;        /* only a smaller distance is near; the smallest one so far */
  const char *name; /* the first of the nearest so far, not copied; NULL: none is near */
} fa_nearest;

/* Near is a name of which half of the given letters are right. */
fa_nearest fa_nearest_to(const char *given);
void fa_nearest_look(fa_nearest *n, const char *name);

#endif
