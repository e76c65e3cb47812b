/* Times that `fa-verify bench --report` wrote, as a score has them. */
#ifndef FA_REPORT_SCORE_SPEED_H
#define FA_REPORT_SCORE_SPEED_H

struct cJSON;

/* A case each: the candidate's time, or why it gets none, and beside it its rivals', with theirs by its own. Of our own
 * kernels (`bench` without a foreign backend) the rows as they are. null if bench is NULL. The caller owns the tree. */
struct cJSON *fa_score_speed_json(const struct cJSON *bench);

#endif
