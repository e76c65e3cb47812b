/* A race as text and as JSON. */
#ifndef FA_FUZZ_TIMING_PRINT_H
#define FA_FUZZ_TIMING_PRINT_H

#include "fuzz/timing/race.h"

struct cJSON;

/* What "time" is, and the columns; once. */
void fa_race_print_head(void);
void fa_race_print(const fa_race *x, const fa_race_config *config);
/* The object of the report's "bench.cases". */
struct cJSON *fa_race_json(const fa_race *x, const fa_race_config *config);

#endif
