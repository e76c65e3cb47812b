/* Maps of where outputs are wrong, as JSON: "map" of a failure's tensor. docs/reference/report.md has the format. */
#ifndef FA_REPORT_MAPS_H
#define FA_REPORT_MAPS_H

#include "report/result.h"

struct cJSON;

/* How many failures of a run keep their maps: a map has up to 32 KB. */
#define FA_REPORT_MAPS 200

/* The map as an object, NULL when out of memory. */
struct cJSON *fa_report_map(const fa_map *m);
bool fa_report_has_maps(const struct cJSON *failure);
/* Takes the maps out of a failure's tensors, and says so in it: "maps_left_out". */
void fa_report_leave_out_maps(struct cJSON *failure);
/* Takes the maps and that remark out, to compare results. */
void fa_report_forget_maps(struct cJSON *failure);

#endif
