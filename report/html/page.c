/* The page: its head, the report's data as JSON, and the script that shows it. */
#include "report/html/page.h"
#include "report/html/parts.h"

#include <cjson/cJSON.h>

#include <string.h>

/* "3 of 20 failed", as the tab's title. */
static void put_title(FILE *out, const cJSON *root) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(root, "summary");
  const double failed = fa_report_number(s, "failed") + fa_report_number(s, "error"),
               total = fa_report_number(s, "total");
  if (failed > 0)
    fprintf(out, "%.0f of %.0f failed", failed, total);
  else
    fprintf(out, "%.0f passed, %.0f skipped", fa_report_number(s, "passed"), fa_report_number(s, "skipped"));
  fputs(" - fa-verify", out);
}

static void put_page(FILE *out, const cJSON *both) {
  const cJSON *root = cJSON_GetObjectItemCaseSensitive(both, "report");
  fputs(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      out);
  put_title(out, root);
  fputs("</title>\n<style>\n", out);
  fputs(fa_page_style, out);
  fputs("</style></head><body>\n", out);
  fa_page_put_head(out, root);
  fputs("<main id=\"page\"></main>\n<noscript>\n", out);
  fa_page_put_plain(out, root);
  fputs("</noscript>\n<script type=\"application/json\" id=\"data\">", out);
  fa_page_put_data(out, root, cJSON_GetObjectItemCaseSensitive(both, "comparison"));
  fputs("</script>\n<script>\n", out);
  fputs(fa_page_script, out);
  fputs("</script>\n</body></html>\n", out);
}

fa_status fa_page_write(const cJSON *root, const cJSON *comparison, const char *path, fa_error *err) {
  cJSON *both = cJSON_CreateObject();
  bool good = both && cJSON_AddItemReferenceToObject(both, "report", (cJSON *)root);
  if (good && comparison) good = cJSON_AddItemReferenceToObject(both, "comparison", (cJSON *)comparison);
  const fa_status status = good ? fa_report_write_printed(both, path, put_page, err)
                                : fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  cJSON_Delete(both);
  return status;
}

/* A run keeps its cases as text to save memory, which is parsed here. */
fa_status fa_page_write_run(const fa_report *r, const char *path, fa_error *err) {
  cJSON *root = NULL;
  char *text = cJSON_PrintUnformatted(r->root);
  if (!text) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  fa_status status = fa_report_parse(text, strlen(text), path, &root, err);
  cJSON_free(text);
  if (status != FA_OK) return status;
  status = fa_page_write(root, NULL, path, err);
  cJSON_Delete(root);
  return status;
}
