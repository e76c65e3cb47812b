#include "report/score/speed.h"

#include "report/printed.h"

#include <stdlib.h>
#include <string.h>

static void copy(cJSON *to, const cJSON *from, const char *key) {
  const cJSON *x = fa_report_at(from, key);
  if (x) cJSON_AddItemToObject(to, key, cJSON_Duplicate(x, 1));
}

static double median_of(const cJSON *participant) {
  return fa_report_number(fa_report_at(participant, "time"), "median_us");
}

static const cJSON *candidate_of(const cJSON *one) {
  const cJSON *x;
  cJSON_ArrayForEach(x, fa_report_at(one, "participants")) if (strcmp(fa_report_string(x, "role"),
                                                                      "candidate") == 0) return x;
  return NULL;
}

static void add_ratio(cJSON *o, const char *key, double ratio) {
  char text[40];
  snprintf(text, sizeof text, "%.4g", ratio);
  cJSON_AddRawToObject(o, key, text);
}

static cJSON *participant_json(const cJSON *x) {
  static const char *const keys[] = {"backend",  "kernel", "time",     "tflops",
                                     "gb_per_s", "claim",  "no_speed", "left_out"};
  cJSON *o = cJSON_CreateObject();
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) copy(o, x, keys[k]);
  return o;
}

static cJSON *case_json(const cJSON *one) {
  cJSON *o = cJSON_CreateObject(), *rivals;
  const cJSON *candidate = candidate_of(one), *x;
  const double mine = median_of(candidate);
  copy(o, one, "name");
  copy(o, one, "passes");
  cJSON_AddItemToObject(o, "candidate", participant_json(candidate));
  rivals = cJSON_AddArrayToObject(o, "rivals");
  cJSON_ArrayForEach(x, fa_report_at(one, "participants")) {
    if (strcmp(fa_report_string(x, "role"), "rival") != 0) continue;
    cJSON *rival = participant_json(x);
    if (mine > 0 && median_of(x) > 0) add_ratio(rival, "by_candidate", median_of(x) / mine);
    cJSON_AddItemToArray(rivals, rival);
  }
  copy(o, one, "floor_us");
  copy(o, one, "gpu");
  return o;
}

cJSON *fa_score_speed_json(const cJSON *bench) {
  const cJSON *race = fa_report_at(bench, "bench"), *one;
  int timed = 0, refused = 0;
  if (!bench) return cJSON_CreateNull();
  cJSON *o = cJSON_CreateObject();
  copy(o, bench, "backend");
  copy(o, bench, "rows");
  if (!race) return o;
  copy(o, race, "untrusted");
  copy(o, race, "without");
  copy(o, race, "no_rival");
  cJSON *cases = cJSON_AddArrayToObject(o, "cases");
  cJSON_ArrayForEach(one, fa_report_at(race, "cases")) {
    const cJSON *candidate = candidate_of(one);
    timed += median_of(candidate) > 0;
    refused += fa_report_at(candidate, "no_speed") != NULL;
    cJSON_AddItemToArray(cases, case_json(one));
  }
  cJSON_AddNumberToObject(o, "timed", timed);
  cJSON_AddNumberToObject(o, "no_speed", refused);
  return o;
}
