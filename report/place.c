#include "report/place.h"

#include "report/printed.h"

#include <stdlib.h>
#include <string.h>

fa_place fa_place_read(const char *text) {
  fa_place p = {.line = 0};
  const char *colon = strrchr(text, ':');
  char *end = NULL;
  const long line = colon && colon[1] >= '1' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
  const bool has_line = line > 0 && *end == 0;
  snprintf(p.file, sizeof p.file, "%.*s", has_line ? (int)(colon - text) : (int)strlen(text), text);
  p.line = has_line ? line : 0;
  return p;
}

fa_place fa_report_place(const cJSON *report, const cJSON *entry) {
  const char *source = fa_report_string(fa_report_at(report, "sources"), fa_report_string(entry, "backend"));
  const char *place = fa_report_string(entry, "place");
  return fa_place_read(*source ? source : *place ? place : fa_report_string(entry, "file"));
}
