#include "gpu/contract/canonical.h"

#include "cases/base/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_numbers_exactly(cJSON *tree) {
  char text[40];
  for (cJSON *child = tree->child; child; child = child->next) put_numbers_exactly(child);
  if (!cJSON_IsNumber(tree) || !isfinite(tree->valuedouble)) return;
  if (tree->valuedouble == floor(tree->valuedouble) && fabs(tree->valuedouble) < 0x1p53)
    snprintf(text, sizeof text, "%.0f", tree->valuedouble);
  else
    fa_json_number_text(text, sizeof text, tree->valuedouble, false);
  char *copy = cJSON_malloc(strlen(text) + 1);
  if (!copy) return;
  strcpy(copy, text);
  tree->valuestring = copy;
  tree->type = (tree->type & cJSON_StringIsConst) | cJSON_Raw;
}

static cJSON *least(const cJSON *object) {
  cJSON *first = object->child;
  for (cJSON *x = first; x; x = x->next)
    if (strcmp(x->string, first->string) < 0) first = x;
  return first;
}

static void sort_keys(cJSON *tree) {
  for (cJSON *child = tree->child; child; child = child->next) sort_keys(child);
  if (!cJSON_IsObject(tree)) return;
  cJSON *sorted = cJSON_CreateObject();
  while (sorted && tree->child) {
    cJSON *next = cJSON_DetachItemViaPointer(tree, least(tree));
    cJSON_AddItemToObject(sorted, next->string, next);
  }
  if (!sorted) return;
  tree->child = sorted->child;
  sorted->child = NULL;
  cJSON_Delete(sorted);
}

char *fa_hello_canonical(const cJSON *hello) {
  cJSON *tree = cJSON_Duplicate(hello, 1);
  if (!tree) return NULL;
  cJSON_DeleteItemFromObjectCaseSensitive(tree, "id");
  put_numbers_exactly(tree);
  sort_keys(tree);
  char *text = cJSON_PrintUnformatted(tree);
  cJSON_Delete(tree);
  return text;
}
