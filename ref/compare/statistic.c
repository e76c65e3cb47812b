/* A statistic that left its band, in words. sigma is what the kernel's arithmetic leads one to expect of one error. */
#include "ref/compare/verdict.h"

#include "cases/base/figures.h"

#include <stdio.h>

static const struct {
  const char *name, *figure, *finding[2], *meaning[2]; /* the second of two: of a negative value */
} statistics[FA_N_STATISTICS] = {
    [FA_STATISTIC_FINE] = {"", "", {"", ""}, {"", ""}},
    [FA_STATISTIC_RMS_HIGH] =
        {"rms_high",
         "rms of err / sigma",
         {"the errors are too large together", ""},
         {"one more rounding on the way, to a coarser type, or truncation would do that", ""}},
    [FA_STATISTIC_RMS_LOW] = {"rms_low",
                              "rms of err / sigma",
                              {"the errors are smaller than such a kernel's can be", ""},
                              {"it does not round as its profile says, or another kernel ran", ""}},
    [FA_STATISTIC_BIAS] = {"bias",
                           "mean of err / sigma",
                           {"the errors are systematically high", "the errors are systematically low"},
                           {"a term counted twice, or rounding that always goes up, would do that",
                            "truncation instead of rounding, or a term that is lost, would do that"}},
};

static int is_negative(const fa_verdict *v) {
  return v->stat_which == FA_STATISTIC_BIAS && v->stat_value < 0;
}

const char *fa_statistic_name(fa_statistic s) {
  return statistics[s].name;
}

const char *fa_statistic_finding(const fa_verdict *v) {
  return statistics[v->stat_which].finding[is_negative(v)];
}

const char *fa_statistic_meaning(const fa_verdict *v) {
  return statistics[v->stat_which].meaning[is_negative(v)];
}

void fa_statistic_figures(const fa_verdict *v, char text[FA_STATISTIC_TEXT]) {
  char count[FA_COUNT_TEXT];
  text[0] = 0;
  if (v->stat_which == FA_STATISTIC_FINE) return;
  snprintf(text, FA_STATISTIC_TEXT, "%s is %.4g over %s elements (allowed %.4g .. %.4g)",
           statistics[v->stat_which].figure, v->stat_value, fa_count_text(v->stat_count, count), v->stat_low,
           v->stat_high);
}
