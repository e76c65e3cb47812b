/* Shared by the parts of the page. All of them print what a report says, which may come from elsewhere: text only
 * through fa_report_put_markup or fa_page_put_json. */
#ifndef FA_REPORT_HTML_PARTS_H
#define FA_REPORT_HTML_PARTS_H

#include "report/printed.h"

/* A tree as JSON for a <script> element, which no text in it can end. NULL is printed as null. */
void fa_page_put_json(FILE *out, const cJSON *tree);
void fa_page_put_json_text(FILE *out, const char *text);

/* ---- report/html/data.c: what the page's script reads ---- */

void fa_page_put_data(FILE *out, const cJSON *root, const cJSON *comparison);

/* ---- report/html/failures.c: everything about failures ---- */

/* An array with an item for each of the report's "failures", as many as the page has room for. */
void fa_page_put_failures(FILE *out, const cJSON *root);
/* The command that runs a failure of the report again and needs no report, behind the same wall where the candidate is not
 * trusted. shrunk: its smallest case. malloc'd, NULL when out of memory. */
char *fa_page_command(const cJSON *root, const cJSON *failure, bool shrunk);

/* ---- report/html/plain.c: what a reader without JavaScript sees ---- */

void fa_page_put_head(FILE *out, const cJSON *root);
void fa_page_put_plain(FILE *out, const cJSON *root);

/* ---- made by embed.cmake of the other files of this folder ---- */

extern const char fa_page_style[], fa_page_script[];

#endif
