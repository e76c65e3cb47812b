#include "gpu/wall/view.h"

#include "gpu/wall/command.h"
#include "gpu/wall/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the system: programs, libraries, and how they are found. Links are made anew, folders are bound. */
static const char *const system_folders[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};
static const char *const system_files[] = {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                                           "/etc/alternatives", NULL};
/* Files of the kernel that a user with number 0 could write without any right to: bubblewrap leaves them open. */
static const char *const kernel_files[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/acpi",
                                           "/proc/fs",  "/proc/scsi",          NULL};

static bool within(const char *path, const char *folder) {
  const size_t n = strlen(folder);
  if (strcmp(folder, "/") == 0) return true;
  return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

static bool of_system(const char *path) {
  for (int i = 0; system_folders[i]; ++i)
    if (within(path, system_folders[i])) return true;
  return within(path, "/usr");
}

bool fa_wall_has_dots(const char *path) {
  for (const char *at = path; (at = strchr(at, '/')); ++at) {
    const size_t n = strcspn(at + 1, "/");
    if ((n == 1 && at[1] == '.') || (n == 2 && at[1] == '.' && at[2] == '.')) return true;
  }
  return false;
}

bool fa_wall_sees(const fa_wall_view *view, const char *path) {
  bool sees = of_system(path);
  for (int i = 0; i < view->shown.n && !sees; ++i) sees = within(path, view->shown.v[i]);
  return sees;
}

bool fa_wall_show(fa_wall_view *view, const char *path) {
  char real[PATH_MAX];
  if (fa_wall_sees(view, path)) return true;
  if (!realpath(path, real) || within(view->home, real) || within(view->folder, real) ||
      within(view->judge, real) || within("/proc", real) || within(real, "/proc"))
    return false;
  fa_wall_add(&view->shown, "%s", path);
  return true;
}

/* ---- what is the judge's ---- */

static void hide(fa_wall_view *view, const char *format, const char *folder) {
  char path[PATH_MAX + 64], real[PATH_MAX];
  snprintf(path, sizeof path, format, folder);
  if (realpath(path, real) && fa_wall_sees(view, real)) fa_wall_add(&view->hidden, "%s", real);
}

/* The program, and the cases and references that are found beside it. */
static void hide_judge(fa_wall_view *view) {
  char folder[PATH_MAX];
  const char *cases = getenv("FA_CASES_DIR");
  snprintf(folder, sizeof folder, "%s", view->judge);
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
  hide(view, "%s", view->judge);
  hide(view, "%s/../cases", folder);
  hide(view, "%s/../share/fa-verify", folder);
  if (cases && *cases) hide(view, "%s", cases);
}

/* ---- making it ---- */

static void show_variable(fa_wall_view *view, const char *name) {
  const char *at = getenv(name);
  char path[PATH_MAX];
  while (at && *at) {
    const size_t n = strcspn(at, ":");
    if (n > 0 && at[0] == '/' && n < sizeof path) {
      memcpy(path, at, n), path[n] = 0;
      fa_wall_show(view, path);
    }
    at += n + (at[n] != 0);
  }
}

/* A path that an option has: where it leads to, and as it was written, from the root. */
typedef struct given_path {
  char real[PATH_MAX], absolute[2 * PATH_MAX];
} given_path;

static fa_status find_given(const fa_wall_view *view, const char *option, const char *path, given_path *out,
                            fa_error *err) {
  if (!realpath(path, out->real))
    return fa_fail(err, FA_ERR_INPUT, "%s %s: there is no such file or folder", option, path);
  snprintf(out->absolute, sizeof out->absolute, "%s%s%s", path[0] == '/' ? "" : view->folder,
           path[0] == '/' ? "" : "/", path);
  return FA_OK;
}

static fa_status allow(fa_wall_view *view, const char *path, fa_error *err) {
  given_path p;
  const fa_status status = find_given(view, "--allow", path, &p, err);
  if (status != FA_OK) return status;
  if (fa_wall_show(view, fa_wall_has_dots(p.absolute) ? p.real : p.absolute)) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "--allow %s: this would show the home folder, the current folder or fa-verify itself", path);
}

/* As it was written and where it leads to: a folder may be shown by either name. One that is shown by neither could still be
 * reached by a third, so that is no success. */
static fa_status hide_named(fa_wall_view *view, const char *path, fa_error *err) {
  given_path p;
  const fa_status status = find_given(view, "--hide", path, &p, err);
  if (status != FA_OK) return status;
  const bool written = !fa_wall_has_dots(p.absolute) && fa_wall_sees(view, p.absolute);
  if (!written && !fa_wall_sees(view, p.real))
    return fa_fail(
        err, FA_ERR_INPUT,
        "--hide %s: it is not in what the kernel is shown; if it is there by another name, hide that", path);
  if (written) fa_wall_add(&view->hidden, "%s", p.absolute);
  if (fa_wall_sees(view, p.real) && strcmp(p.real, p.absolute) != 0) fa_wall_add(&view->hidden, "%s", p.real);
  return FA_OK;
}

fa_status fa_wall_view_make(const fa_wall_terms *terms, const char *command, fa_wall_view *out,
                            fa_error *err) {
  fa_status status = FA_OK;
  const char *home = getenv("HOME");
  memset(out, 0, sizeof *out);
  const ssize_t n = readlink("/proc/self/exe", out->judge, sizeof out->judge - 1);
  if (n < 0 || !getcwd(out->folder, sizeof out->folder))
    return fa_fail(err, FA_ERR_IO, "the wall: no current folder, or no /proc");
  if (!home || !realpath(home, out->home)) strcpy(out->home, "/root");
  fa_wall_show_words(out, command);
  show_variable(out, "PYTHONPATH");
  show_variable(out, "LD_LIBRARY_PATH");
  for (int i = 0; status == FA_OK && i < terms->n_allow; ++i) status = allow(out, terms->allow[i], err);
  for (int i = 0; status == FA_OK && i < terms->n_hide; ++i) status = hide_named(out, terms->hide[i], err);
  hide_judge(out);
  if (status == FA_OK && (out->shown.failed || out->hidden.failed))
    status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (status != FA_OK) fa_wall_view_free(out);
  return status;
}

void fa_wall_view_free(fa_wall_view *view) {
  fa_wall_words_free(&view->shown);
  fa_wall_words_free(&view->hidden);
}

/* ---- for bubblewrap ---- */

static void add_pair(fa_wall_words *to, const char *option, const char *path) {
  fa_wall_add_all(to, (const char *const[]){option, path, path, NULL});
}

static void add_system(fa_wall_words *to) {
  char target[PATH_MAX];
  add_pair(to, "--ro-bind", "/usr");
  for (int i = 0; system_folders[i]; ++i) {
    const ssize_t n = readlink(system_folders[i], target, sizeof target - 1);
    if (n <= 0) {
      add_pair(to, "--ro-bind-try", system_folders[i]);
      continue;
    }
    target[n] = 0;
    fa_wall_add_all(to, (const char *const[]){"--symlink", target, system_folders[i], NULL});
  }
  for (int i = 0; system_files[i]; ++i) add_pair(to, "--ro-bind-try", system_files[i]);
}

static void add_scratch(fa_wall_words *to, const char *folder) {
  fa_wall_add_all(to, (const char *const[]){"--size", NULL});
  fa_wall_add(to, "%zu", FA_WALL_SCRATCH_BYTES);
  fa_wall_add_all(to, (const char *const[]){"--tmpfs", folder, NULL});
}

void fa_wall_view_arguments(const fa_wall_view *view, bool host_processes, const char *exchange,
                            fa_wall_words *to) {
  struct stat s;
  add_system(to);
  if (host_processes)
    add_pair(to, "--bind", "/proc");
  else
    fa_wall_add_all(to, (const char *const[]){"--proc", "/proc", NULL});
  for (int i = 0; kernel_files[i] && !host_processes; ++i) add_pair(to, "--ro-bind-try", kernel_files[i]);
  fa_wall_add_all(to, (const char *const[]){"--dev", "/dev", NULL});
  add_scratch(to, "/dev/shm");
  add_scratch(to, "/tmp");
  fa_wall_add_devices(to);
  fa_wall_add_all(to, (const char *const[]){"--dir", view->folder, NULL});
  for (int i = 0; i < view->shown.n; ++i) add_pair(to, "--ro-bind", view->shown.v[i]);
  if (exchange) add_pair(to, "--bind", exchange);
  for (int i = 0; i < view->hidden.n; ++i) {
    const bool folder = stat(view->hidden.v[i], &s) == 0 && S_ISDIR(s.st_mode);
    if (folder)
      fa_wall_add_all(
          to, (const char *const[]){"--tmpfs", view->hidden.v[i], "--remount-ro", view->hidden.v[i], NULL});
    else
      fa_wall_add_all(to, (const char *const[]){"--ro-bind", "/dev/null", view->hidden.v[i], NULL});
  }
  fa_wall_add_all(
      to, (const char *const[]){"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", view->folder, NULL});
}
