#include "fuzz/probe/findings.h"

#include <string.h>

const char *fa_probe_confidence_name(fa_probe_confidence c) {
  static const char *const names[] = {"not asked", "no answer", "untold", "likely", "certain"};
  return names[c];
}

const fa_finding *fa_probe_find(const fa_probe_report *r, const char *field) {
  for (int i = 0; i < r->n; ++i)
    if (strcmp(r->v[i].field, field) == 0) return &r->v[i];
  return NULL;
}
