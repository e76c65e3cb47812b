/* From --backend to a backend that can run. */
#ifndef FA_FUZZ_OPTIONS_CHOOSE_BACKEND_H
#define FA_FUZZ_OPTIONS_CHOOSE_BACKEND_H

#include "gpu/backend.h"
#include "gpu/contract/hello.h"
#include "gpu/contract/canonical.h"
#include "gpu/wall/terms.h"

#include <stdbool.h>

#define FA_MAX_BACKENDS 16

enum { FA_CHOICE_DTYPES = 3 }; /* f16, bf16, f32: the first of fa_dtype */

/* What a backend says of itself in general, by element type; all 0 if it has no `declare`. */
typedef struct fa_self_portrait {
  bool declares, adopts;
  fa_declaration of[FA_CHOICE_DTYPES];
  bool greeted;   /* it is a foreign kernel, and this is its contract: */
  fa_hello hello; /* as it was greeted, before anything was adopted */
  char contract[FA_CONTRACT_TEXT]; /* its first hello; "" = it has none, or a longer one */
} fa_self_portrait;

typedef struct fa_choice {
  const fa_backend *backend;
  char spec[320];  /* as on the command line: "host", "mutant:NAME" */
  const char *arg; /* after the colon, inside spec; NULL = none */
  fa_backend_info info;
  fa_self_portrait said;
  unsigned probed;                        /* element types (bits) of which a probe has found more: */
  fa_declaration found[FA_CHOICE_DTYPES]; /* fuzz/probe/adopt.h */
  bool untrusted;                         /* it stands behind a wall, on these terms: */
  fa_wall_terms terms;
  fa_layer_set layers; /* in force, trusted or not */
} fa_choice;

/* What one backend says about itself. It is opened in a child process, because a driver's state would not
 * survive the fork of the workers, and a crashing driver must not take this program down. said: NULL, or receives what
 * it declares. Otherwise the error
 * why it could not be opened, with out->why_not; FA_ERR_INPUT if the text after the colon is invalid. */
fa_status fa_backend_probe(const fa_backend *backend, const char *arg, fa_backend_info *out,
                           fa_self_portrait *said);

/* Opens a backend: trusted if terms is NULL, else behind a wall. FA_ERR_INPUT: it cannot stand behind one. */
fa_status fa_backend_open(const fa_backend *backend, const char *arg, const fa_wall_terms *terms, void **self,
                          fa_error *err);

/* Before a backend is chosen that several processes will open: starts what they share, if there is anything like that. */
void fa_backend_share(const fa_backend *const *table, const char *spec);

/* The backend of the table that "name" or "name:arg" names; NULL: there is none. */
const fa_backend *fa_backend_named(const fa_backend *const *table, const char *spec);
/* True if it runs code that is not this program's. */
bool fa_backend_is_foreign(const fa_backend *backend);

/* Finds "name" or "name:arg" in the table and probes it. FA_ERR_INPUT lists the known names; FA_ERR_DEVICE:
 * it exists but cannot be used here. */
fa_status fa_choose_backend(const fa_backend *const *table, const char *spec, fa_choice *out, fa_error *err);

/* The same on these terms; NULL: it is trusted. terms->allow outlives the choice. */
fa_status fa_choose_untrusted(const fa_backend *const *table, const char *spec, const fa_wall_terms *terms,
                              fa_choice *out, fa_error *err);
/* The terms of a choice; NULL: it is trusted. */
const fa_wall_terms *fa_choice_terms(const fa_choice *choice);

/* Opens the chosen backend, behind a wall if nobody trusts it, and lets it adopt what was found. */
fa_status fa_choice_open(const fa_choice *choice, void **self, fa_error *err);

/* Without --backend: cuda if usable, else host, else the first usable one. Names it on stderr. */
fa_status fa_choose_default(const fa_backend *const *table, bool quiet, fa_choice *out, fa_error *err);

#endif
