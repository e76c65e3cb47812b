#include "gpu/wall/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FIXED, AS_IT_IS, PATHS } kind;

static const struct variable {
  const char *name;
  kind kind;
  const char *value; /* FIXED: itself; else NULL, or if the judge has none */
} variables[] = {
    {"HOME", FIXED, "/tmp"},
    {"TMPDIR", FIXED, "/tmp"},
    {"XDG_CACHE_HOME", FIXED, "/tmp/.cache"},
    {"TRITON_CACHE_DIR", FIXED, "/tmp/.triton"},
    {"USER", FIXED, "candidate"},
    {"LOGNAME", FIXED, "candidate"},
    {"PYTHONDONTWRITEBYTECODE", FIXED, "1"},
    {"PATH", PATHS, "/usr/local/bin:/usr/bin:/bin"},
    {"LD_LIBRARY_PATH", PATHS, NULL},
    {"PYTHONPATH", PATHS, NULL},
    {"LANG", AS_IT_IS, "C.UTF-8"},
    {"LC_ALL", AS_IT_IS, NULL},
    {"CUDA_VISIBLE_DEVICES", AS_IT_IS, NULL},
    {"CUDA_DEVICE_ORDER", AS_IT_IS, NULL},
    {"HIP_VISIBLE_DEVICES", AS_IT_IS, NULL},
    {"JAX_PLATFORMS", AS_IT_IS, NULL},
    {"OMP_NUM_THREADS", AS_IT_IS, NULL},
    {"MKL_NUM_THREADS", AS_IT_IS, NULL},
    {"OPENBLAS_NUM_THREADS", AS_IT_IS, NULL},
    {"PWD", FIXED, NULL}, /* bubblewrap's and the shell's own */
    {"OLDPWD", FIXED, NULL},
    {"SHLVL", FIXED, NULL},
    {"_", FIXED, NULL},
};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

/* True if the candidate sees the folder, or a program in it. */
static bool leads_somewhere(const fa_wall_view *view, const char *folder) {
  const size_t n = strlen(folder);
  if (!view || fa_wall_sees(view, folder)) return true;
  for (int i = 0; i < view->shown.n; ++i)
    if (strncmp(view->shown.v[i], folder, n) == 0 && view->shown.v[i][n] == '/') return true;
  return false;
}

/* The folders of a list that the candidate sees. */
static void add_paths(const fa_wall_view *view, const char *name, const char *list, fa_wall_words *to) {
  char kept[8192], folder[PATH_MAX];
  size_t used = 0;
  kept[0] = 0;
  for (const char *at = list; *at;) {
    const size_t n = strcspn(at, ":");
    if (n > 0 && n < sizeof folder && used + n + 2 < sizeof kept) {
      memcpy(folder, at, n), folder[n] = 0;
      if (folder[0] == '/' && leads_somewhere(view, folder))
        used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%s", used ? ":" : "", folder);
    }
    at += n + (at[n] != 0);
  }
  if (used) fa_wall_add(to, "%s=%s", name, kept);
}

void fa_wall_environment(const fa_wall_view *view, fa_wall_words *to) {
  for (int i = 0; i < N_VARIABLES; ++i) {
    const struct variable *v = &variables[i];
    const char *has = v->kind == FIXED ? NULL : getenv(v->name);
    const char *value = has && *has ? has : v->value;
    if (!value) continue;
    if (v->kind == PATHS)
      add_paths(view, v->name, value, to);
    else
      fa_wall_add(to, "%s=%s", v->name, value);
  }
}

static bool on_list(const char *pair) {
  const size_t n = strcspn(pair, "=");
  for (int i = 0; i < N_VARIABLES; ++i)
    if (strlen(variables[i].name) == n && strncmp(variables[i].name, pair, n) == 0) return true;
  return false;
}

const char *fa_wall_foreign_variable(char *const *environment) {
  for (; *environment; ++environment)
    if (!on_list(*environment)) return *environment;
  return NULL;
}
