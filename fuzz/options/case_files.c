#include "fuzz/options/case_files.h"

#include "cases/base/edit_distance.h"
#include "cases/base/program.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_FOLDERS = 3, PATH_BYTES = 4096 };
#define SUFFIX ".json"
#define SCHEMA "schema.json" /* lies among the case files and is none */

/* Where to look, in this order; false: there is no such place. */
static bool folder_number(int i, char *folder, size_t size) {
  static const char *const above[] = {"share/fa-verify/cases", "cases"};
  if (i == 0) {
    const char *given = getenv("FA_CASES_DIR");
    snprintf(folder, size, "%s", given ? given : "");
    return folder[0] != 0;
  }
  char program[PATH_BYTES];
  char *slash = fa_program_folder(program, sizeof program) ? strrchr(program, '/') : NULL;
  if (!slash) return false;
  *slash = 0; /* the folder above: ".." would be left in paths */
  snprintf(folder, size, "%s/%s", program, above[i - 1]);
  return true;
}

static bool has_suffix(const char *name) {
  const size_t n = strlen(name), m = strlen(SUFFIX);
  return n > m && strcmp(name + n - m, SUFFIX) == 0;
}

static bool is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

/* ---- all of them ---- */

static bool is_listed(const fa_case_files *files, const char *file) {
  for (int i = 0; i < files->n; ++i)
    if (strcmp(strrchr(files->path[i], '/') + 1, file) == 0) return true;
  return false;
}

static fa_status add(fa_case_files *files, const char *folder, const char *file, fa_error *err) {
  char *path = NULL;
  char **bigger = realloc(files->path, (size_t)(files->n + 1) * sizeof *bigger);
  if (bigger) files->path = bigger;
  if (!bigger || asprintf(&path, "%s/%s", folder, file) < 0)
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (is_file(path))
    files->path[files->n++] = path;
  else
    free(path);
  return FA_OK;
}

static fa_status add_folder(fa_case_files *files, const char *folder, fa_error *err) {
  DIR *entries = opendir(folder);
  fa_status status = FA_OK;
  if (!entries) return FA_OK;
  for (struct dirent *e; status == FA_OK && (e = readdir(entries));)
    if (has_suffix(e->d_name) && strcmp(e->d_name, SCHEMA) != 0 && !is_listed(files, e->d_name))
      status = add(files, folder, e->d_name, err);
  closedir(entries);
  return status;
}

static int by_name(const void *a, const void *b) {
  return strcmp(strrchr(*(char *const *)a, '/'), strrchr(*(char *const *)b, '/'));
}

fa_status fa_case_files_list(fa_case_files *files, fa_error *err) {
  char folder[PATH_BYTES + 64];
  fa_status status = FA_OK;
  *files = (fa_case_files){NULL, 0};
  for (int i = 0; status == FA_OK && i < N_FOLDERS; ++i)
    if (folder_number(i, folder, sizeof folder)) status = add_folder(files, folder, err);
  if (files->n) qsort(files->path, (size_t)files->n, sizeof *files->path, by_name);
  return status;
}

void fa_case_files_free(fa_case_files *files) {
  for (int i = 0; i < files->n; ++i) free(files->path[i]);
  free(files->path);
}

void fa_case_files_name(const char *path, char *name, size_t size) {
  const char *file = strrchr(path, '/') + 1;
  snprintf(name, size, "%.*s", (int)(strlen(file) - strlen(SUFFIX)), file);
}

/* ---- one by its name ---- */

static void nearest_name(const fa_case_files *files, const char *given, char *nearest, size_t size) {
  char name[256];
  int least = -1;
  for (int i = 0; i < files->n; ++i) {
    fa_case_files_name(files->path[i], name, sizeof name);
    const int d = fa_edit_distance(given, name);
    if (least < 0 || d < least) snprintf(nearest, size, "%s", name);
    if (least < 0 || d < least) least = d;
  }
}

static void all_names(const fa_case_files *files, char *text, size_t size) {
  char name[256];
  size_t n = 0;
  for (int i = 0; i < files->n && n < size; ++i) {
    fa_case_files_name(files->path[i], name, sizeof name);
    n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", name);
  }
}

static fa_status unknown(const char *given, fa_error *err) {
  char names[700] = "", nearest[256] = "";
  fa_case_files files;
  fa_status status = fa_case_files_list(&files, err);
  nearest_name(&files, given, nearest, sizeof nearest);
  all_names(&files, names, sizeof names);
  if (status == FA_OK)
    status =
        files.n == 0
            ? fa_fail(err, FA_ERR_INPUT, "%s: %s; no case files came with this program, so a path is needed",
                      given, strerror(ENOENT))
            : fa_fail(err, FA_ERR_INPUT, "%s: %s, nor a case file of this program; the nearest is %s, of %s",
                      given, strerror(ENOENT), nearest, names);
  fa_case_files_free(&files);
  return status;
}

fa_status fa_case_files_find(const char *given, char *path, size_t size, fa_error *err) {
  char folder[PATH_BYTES + 64];
  snprintf(path, size, "%s", given);
  if (strcmp(given, "-") == 0 || strchr(given, '/') || is_file(given)) return FA_OK;
  for (int i = 0; i < N_FOLDERS; ++i) {
    if (!folder_number(i, folder, sizeof folder)) continue;
    snprintf(path, size, "%s/%s%s", folder, given, has_suffix(given) ? "" : SUFFIX);
    if (is_file(path)) return FA_OK;
  }
  snprintf(path, size, "%s", given);
  if (access(given, F_OK) == 0) return FA_OK; /* a folder: who reads it says so */
  return unknown(given, err);
}
