/* Counts over a run, and the exit code that follows from them. */
#include "report/kernels.h"

#include <stdio.h>
#include <string.h>

static void count_reason(fa_summary *s, const char *reason) {
  char text[sizeof s->reason[0].text];
  snprintf(text, sizeof text, "%s", reason[0] ? reason : "no reason given");
  for (int i = 0; i < s->n_reasons; ++i) {
    if (strcmp(s->reason[i].text, text) == 0) {
      s->reason[i].n++;
      return;
    }
  }
  if (s->n_reasons == FA_SKIP_REASONS) {
    snprintf(s->reason[FA_SKIP_REASONS - 1].text, sizeof text, "other reasons");
    s->reason[FA_SKIP_REASONS - 1].n++;
    return;
  }
  snprintf(s->reason[s->n_reasons].text, sizeof text, "%s", text);
  s->reason[s->n_reasons++].n = 1;
}

void fa_summary_add(fa_summary *s, const fa_result *r) {
  s->total++;
  fa_kernel_counts_add(&s->kernels, r);
  s->backward_left_out += r->backward_left_out;
  s->sampled += fa_sample_is_asked(&r->sampled.asked);
  fa_judged_count(&s->judged, &r->judged);
  if (fa_state_is_failure(r->state)) {
    if (r->waived)
      s->waived++;
    else
      s->failed++;
    s->known += r->waived && r->known;
  } else if (r->state == FA_PASS) {
    s->passed++;
  } else if (r->state == FA_SKIP) {
    s->skipped++;
    count_reason(s, r->reason);
  } else {
    s->error++;
    s->malformed += r->malformed;
  }
}

int fa_summary_exit_code(const fa_summary *s) {
  if (s->failed > 0) return 1;
  if (s->error > s->malformed) return 3;
  if (s->error > 0) return 2;
  if (s->passed == 0 && s->waived == 0) return 4;
  return 0;
}
