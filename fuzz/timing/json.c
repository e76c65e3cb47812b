/* A race in the report: docs/reference/report.md. */
#include "fuzz/timing/print.h"

#include "cases/codec/json.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

static void add_median(cJSON *to, const char *key, const fa_median *m) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  cJSON_AddNumberToObject(o, "median_us", m->median * 1e6);
  cJSON_AddNumberToObject(o, "low_us", m->low * 1e6);
  cJSON_AddNumberToObject(o, "high_us", m->high * 1e6);
}

static void add_times(cJSON *o, const fa_race *x, const fa_course *one) {
  add_median(o, "time", &one->time);
  if (one->who->role != FA_ROLE_NOTHING) {
    cJSON_AddNumberToObject(o, "tflops", x->flops / one->time.median * 1e-12);
    cJSON_AddNumberToObject(o, "gb_per_s", x->bytes / one->time.median * 1e-9);
  }
  if (!one->who->exec) return;
  add_median(o, "clock", &one->clock);
  if (one->claimed.n) add_median(o, "claim", &one->claimed);
}

static void add_counts(cJSON *o, const fa_course *one) {
  cJSON_AddNumberToObject(o, "samples", one->n);
  cJSON_AddNumberToObject(o, "warm_ups", one->n_warm);
  if (!one->who->exec) return;
  cJSON_AddStringToObject(o, "requests", one->batch ? "problems" : "calls");
  if (one->batch) cJSON_AddNumberToObject(o, "most_problems", one->most);
  cJSON_AddNumberToObject(o, "timed_outputs", (double)one->n_timed);
  cJSON_AddNumberToObject(o, "judged_outputs", (double)one->n_judged);
  cJSON_AddNumberToObject(o, "places", one->n_places);
  cJSON_AddNumberToObject(o, "pool_bytes", (double)one->place_bytes * one->n_places);
  cJSON_AddNumberToObject(o, "pool_wanted_bytes", one->pool_wanted);
}

static cJSON *course_json(const fa_race *x, const fa_course *one) {
  static const char *const roles[] = {"candidate", "nothing", "rival"};
  cJSON *o = cJSON_CreateObject();
  if (one->who->choice.untrusted) cJSON_AddTrueToObject(o, "behind_wall");
  cJSON_AddStringToObject(o, "role", roles[one->who->role]);
  cJSON_AddStringToObject(o, "backend", one->who->label);
  if (one->who->exec) cJSON_AddStringToObject(o, "name", one->who->exec->hello.name);
  if (one->kernel[0]) cJSON_AddStringToObject(o, "kernel", one->kernel);
  if (one->none) {
    cJSON_AddStringToObject(o, "left_out", one->why);
    return o;
  }
  if (one->why[0]) {
    cJSON *no = cJSON_AddObjectToObject(o, "no_speed");
    cJSON_AddStringToObject(no, "by", one->by);
    cJSON_AddStringToObject(no, "text", one->why);
  } else if (one->n > 0) {
    add_times(o, x, one);
  }
  add_counts(o, one);
  return o;
}

static void add_machine(cJSON *o, const fa_race *x, const fa_race_config *config) {
  char throttle[120];
  if (x->floor > 0) {
    cJSON_AddNumberToObject(o, "floor_us", x->floor * 1e6);
    cJSON_AddStringToObject(o, "floor_of", config->chip->name);
  }
  cJSON *gpu = cJSON_AddObjectToObject(o, "gpu");
  if (!x->course[0].gpu.known) {
    cJSON_AddStringToObject(gpu, "unknown", x->course[0].gpu.why_not);
    return;
  }
  fa_gpu_throttle_text(x->course[0].throttled, throttle, sizeof throttle);
  cJSON_AddStringToObject(gpu, "name", x->course[0].gpu.name);
  cJSON_AddNumberToObject(gpu, "least_mhz", x->course[0].least_mhz);
  cJSON_AddNumberToObject(gpu, "most_mhz", x->course[0].most_mhz);
  cJSON_AddNumberToObject(gpu, "memory_mhz", x->course[0].gpu.memory_mhz);
  cJSON_AddNumberToObject(gpu, "celsius", x->course[0].gpu.celsius);
  cJSON_AddNumberToObject(gpu, "watts", x->course[0].gpu.watts);
  cJSON_AddStringToObject(gpu, "held_back_by", throttle);
  cJSON_AddNumberToObject(gpu, "processes", x->course[0].gpu.processes);
}

cJSON *fa_race_json(const fa_race *x, const fa_race_config *config) {
  cJSON *o = cJSON_CreateObject();
  char *line = fa_case_to_line(x->c);
  cJSON_AddStringToObject(o, "name", x->c->name);
  if (line) cJSON_AddItemToObject(o, "case", cJSON_Parse(line));
  free(line);
  cJSON_AddStringToObject(o, "passes", x->passes & FA_PASS_BACKWARD ? "forward and backward" : "forward");
  cJSON_AddNumberToObject(o, "flops", x->flops);
  cJSON_AddNumberToObject(o, "bytes", x->bytes);
  cJSON *all = cJSON_AddArrayToObject(o, "participants");
  for (int i = 0; i < config->n; ++i) cJSON_AddItemToArray(all, course_json(x, &x->course[i]));
  add_machine(o, x, config);
  return o;
}
