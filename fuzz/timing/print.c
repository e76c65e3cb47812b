#include "fuzz/timing/print.h"

#include <stdio.h>
#include <string.h>

static const char *pass_of(const fa_race *x) {
  return x->passes & FA_PASS_BACKWARD ? "forward and backward" : "forward";
}

void fa_race_print_head(void) {
  printf("%-30s %12s  %-25s %9s %8s %8s\n", "", "median, us", "95 % of it", "TFLOP/s", "GB/s", "ratio");
}

/* ---- one participant ---- */

static void print_speed(const fa_race *x, const fa_course *one) {
  const fa_median *t = &one->time;
  const double mine = x->course[0].time.median;
  char interval[40];
  snprintf(interval, sizeof interval, "%.1f .. %.1f", t->low * 1e6, t->high * 1e6);
  printf("  %-28.28s %12.1f  %-25s", one->who->label, t->median * 1e6, interval);
  if (one->who->role == FA_ROLE_NOTHING) {
    printf(" subtracted from others\n");
    return;
  }
  printf(" %9.3f %8.1f", x->flops / t->median * 1e-12, x->bytes / t->median * 1e-9);
  if (one != &x->course[0] && mine > 0)
    printf(" %8.3f\n", t->median / mine);
  else
    printf("\n");
}

static void print_course(const fa_race *x, const fa_course *one) {
  if (one->none)
    printf("  %-28.28s left out: %s\n", one->who->label, one->why);
  else if (one->why[0])
    printf("  %-28.28s NO SPEED (%s): %s\n", one->who->label, one->by, one->why);
  else if (one->n > 0)
    print_speed(x, one);
}

/* ---- what stands behind the figures ---- */

static void print_how(const fa_course *one) {
  const double mib = (double)one->place_bytes * one->n_places / 1048576;
  printf("    %d samples of %s, %d warm-ups; %lld of %lld timed outputs judged, all right\n", one->n,
         one->batch ? "a request of one and one of many problems" : "one call", one->n_warm,
         (long long)one->n_judged, (long long)one->n_timed);
  printf("    %d places, %.1f MiB in all", one->n_places, mib);
  if (mib * 1048576 < one->pool_wanted)
    printf(" (three times the last cache were %.0f)", one->pool_wanted / 1048576);
  if (one->batch) printf("; up to %d problems a request", one->most);
  printf("\n");
  if (one->claimed.n)
    printf("    by the clock %.1f us (%.1f .. %.1f), by its own %.1f\n", one->clock.median * 1e6,
           one->clock.low * 1e6, one->clock.high * 1e6, one->claimed.median * 1e6);
}

static void print_machine(const fa_race *x, const fa_race_config *config) {
  char throttle[120];
  fa_gpu_throttle_text(x->course[0].throttled, throttle, sizeof throttle);
  if (x->floor > 0) printf("    %s takes %.2f us at least\n", config->chip->name, x->floor * 1e6);
  if (x->course[0].gpu.known)
    printf("    GPU clock %d .. %d MHz, %d C, %.0f W, held back by: %s\n", x->course[0].least_mhz,
           x->course[0].most_mhz, x->course[0].gpu.celsius, x->course[0].gpu.watts, throttle);
}

void fa_race_print(const fa_race *x, const fa_race_config *config) {
  printf("%s, %s\n", x->c->name, pass_of(x));
  const bool fine = !x->course[0].none && !x->course[0].why[0];
  for (int i = 0; i < (fine ? config->n : 1); ++i) print_course(x, &x->course[i]);
  if (fine && x->course[0].n) {
    print_how(&x->course[0]);
    print_machine(x, config);
  }
  fflush(stdout);
}
