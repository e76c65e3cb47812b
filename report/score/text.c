#include "report/printed.h"
#include "report/score/document.h"

void fa_score_print(FILE *out, const cJSON *score) {
  const cJSON *s = fa_report_at(score, "score"), *caveat;
  const char *why = fa_report_string(s, "why_zero");
  /* The numbers are raw text, so that they are printed as they stand in the document. */
  fprintf(out, "score %s = verdict %.0f x coverage %s (judged / selected, the mean over what is %s)%s%s\n",
          fa_report_at(s, "value")->valuestring, fa_report_number(s, "verdict"),
          fa_report_at(s, "coverage")->valuestring, fa_report_string(s, "over"), *why ? "; 0 because " : "",
          why);
  cJSON_ArrayForEach(caveat, fa_report_at(score, "caveats")) fprintf(out, "    %s\n", caveat->valuestring);
}
