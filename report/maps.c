#include "report/maps.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

static void put_group(char *text, const uint8_t *bytes, size_t n) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned v = bytes[0] << 16 | (n > 1 ? bytes[1] << 8 : 0) | (n > 2 ? bytes[2] : 0);
  for (int i = 0; i < 4; ++i) text[i] = (size_t)i <= n ? letters[v >> (18 - 6 * i) & 63] : '=';
}

/* Base64, with padding. */
static void add_bytes(cJSON *o, const char *key, const uint8_t *bytes, size_t n) {
  char *text = malloc((n + 2) / 3 * 4 + 1), *at = text;
  if (!text) return;
  for (size_t i = 0; i < n; i += 3, at += 4) put_group(at, bytes + i, n - i < 3 ? n - i : 3);
  *at = 0;
  cJSON_AddStringToObject(o, key, text);
  free(text);
}

/* {"at": [[b, h], ...], "cells": base64} of panels or strips with `cells` cells each. */
static void add_cells(cJSON *o, const char *key, const fa_map *m, const int64_t *panel, int n,
                      const uint8_t *bytes, int cells) {
  cJSON *list = cJSON_AddObjectToObject(o, key), *places = cJSON_AddArrayToObject(list, "at");
  for (int i = 0; i < n; ++i) {
    int64_t at[FA_MAP_PANEL_AXES];
    cJSON *place = cJSON_CreateArray();
    fa_map_panel_at(m, panel[i], at);
    for (int k = 0; k < m->n_panel_axes; ++k) cJSON_AddItemToArray(place, cJSON_CreateNumber((double)at[k]));
    cJSON_AddItemToArray(places, place);
  }
  add_bytes(list, "cells", bytes, (size_t)n * (size_t)cells);
}

/* {"name": "q", "extent": 1000, "step": 16, "cells": 63} */
static void add_axis(cJSON *o, const char *key, const char *name, int64_t extent, int64_t step, int cells) {
  cJSON *axis = cJSON_AddObjectToObject(o, key);
  cJSON_AddStringToObject(axis, "name", name);
  cJSON_AddNumberToObject(axis, "extent", (double)extent);
  cJSON_AddNumberToObject(axis, "step", (double)step);
  cJSON_AddNumberToObject(axis, "cells", cells);
}

cJSON *fa_report_map(const fa_map *m) {
  cJSON *o = cJSON_CreateObject(), *axes = cJSON_AddArrayToObject(o, "panel");
  for (int k = 0; k < m->n_panel_axes; ++k) {
    cJSON *axis = cJSON_CreateObject();
    cJSON_AddStringToObject(axis, "name", m->panel_axis[k]);
    cJSON_AddNumberToObject(axis, "extent", (double)m->panel_extent[k]);
    cJSON_AddItemToArray(axes, axis);
  }
  add_axis(o, "row", m->row_axis, m->rows, m->row_step, m->row_cells);
  add_axis(o, "column", m->column_axis, m->columns, m->column_step, m->column_cells);
  add_cells(o, "panels", m, m->panel, m->n_panels, m->cell, m->row_cells * m->column_cells);
  add_cells(o, "strips", m, m->strip, m->n_strips, m->strip_cell, m->row_cells);
  return o;
}

bool fa_report_has_maps(const cJSON *failure) {
  const cJSON *t;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    if (cJSON_HasObjectItem(t, "map")) return true;
  }
  return false;
}

void fa_report_forget_maps(cJSON *failure) {
  cJSON *t;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors"))
      cJSON_DeleteItemFromObjectCaseSensitive(t, "map");
  cJSON_DeleteItemFromObjectCaseSensitive(failure, "maps_left_out");
}

void fa_report_leave_out_maps(cJSON *failure) {
  if (!fa_report_has_maps(failure)) return;
  fa_report_forget_maps(failure);
  cJSON_AddBoolToObject(failure, "maps_left_out", true);
}
