#include "fuzz/timing/null.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *hello(void) {
  cJSON *answer = cJSON_CreateObject();
  cJSON_AddNumberToObject(answer, "fa_exec", 2);
  cJSON_AddStringToObject(answer, "name", "nothing");
  cJSON_AddBoolToObject(answer, "time", true);
  return answer;
}

static void add_sums(cJSON *answer, const cJSON *request) {
  cJSON *sums = cJSON_AddArrayToObject(answer, "sums");
  const int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(request, "problems"));
  for (int i = 0; i < n; ++i) cJSON_AddItemToArray(sums, cJSON_CreateString("0000000000000000"));
}

static cJSON *answer_to(const cJSON *request) {
  const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "type"));
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(request, "id");
  cJSON *answer = type && strcmp(type, "hello") == 0 ? hello() : cJSON_CreateObject();
  if (!cJSON_HasObjectItem(answer, "fa_exec")) cJSON_AddStringToObject(answer, "state", "ok");
  if (type && strcmp(type, "time") == 0) add_sums(answer, request);
  if (id) cJSON_AddItemToObject(answer, "id", cJSON_Duplicate(id, true));
  return answer;
}

int fa_timing_null(void) {
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    cJSON *request = cJSON_Parse(line), *answer = answer_to(request);
    char *text = cJSON_PrintUnformatted(answer);
    if (text) puts(text);
    fflush(stdout);
    free(text);
    cJSON_Delete(answer);
    cJSON_Delete(request);
  }
  free(line);
  return 0;
}
