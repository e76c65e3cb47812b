/* A subject in another process that speaks docs/reference/protocol.md: what the backends exec, py and connect share. They
 * differ in how the other side is reached. */
#ifndef FA_GPU_BACKENDS_EXEC_SUBJECT_H
#define FA_GPU_BACKENDS_EXEC_SUBJECT_H

#include "gpu/backends/exec_memory.h"
#include "gpu/child/process.h"
#include "gpu/contract/hello.h"
#include "gpu/wall/terms.h"

struct cJSON;

typedef struct fa_exec_subject fa_exec_subject;

/* How the other side is reached. */
typedef struct fa_exec_reach {
  const char *backend; /* its name, for messages and reports */
  const char *what;    /* the other side in messages: "the child" */
  fa_status (*open)(fa_exec_subject *x, fa_error *err);
  /* Ends it after misbehaviour (at_once), or because it is no longer needed. how: "ended with status 3". */
  void (*close)(fa_exec_subject *x, bool at_once, char *how, size_t how_size);
  /* NULL, or: a better reason why it has said no hello; leaves text alone if it knows none. */
  void (*explain)(const fa_exec_subject *x, char *text, size_t size);
  /* NULL, or: the process that forks its children (gpu/child/forks.h); -1: there is none. */
  int (*server)(const fa_exec_subject *x);
  bool memory_only; /* there is no folder for files: a hello that wants them is refused */
} fa_exec_reach;

struct fa_exec_subject {
  const fa_exec_reach *reach;
  char *name;                 /* in messages: the command, the path */
  char *command;              /* NULL, or what a shell runs */
  const fa_wall_terms *terms; /* NULL: it is trusted. Else of reach that has a child */
  fa_exec_process child;      /* of reach that has one */
  fa_exec_lines *lines;       /* NULL: the other side is not there; it is opened when it is needed */
  fa_hello hello;             /* of the last one */
  char *contract;             /* owned: the same as canonical text; NULL when out of memory */
  char *held;                 /* owned: the text that every hello must have; NULL: any */
  bool adopted[FA_HELLO_DTYPES];
  fa_declaration found[FA_HELLO_DTYPES]; /* what was adopted, for the next one */
  int64_t id;                            /* of the last request */
  double
      patience; /* seconds that an answer to "run" may take; 0: no limit, because the caller of a case has one */
  fa_exec_memory memory;
  char wall[512]; /* what stands around it, for people; "" = it is trusted */

  /* What is known about the last problem. */
  bool has_problem;
  fa_problem problem;
  char *line;           /* as JSON */
  bool asked;           /* "supports" was answered, or failed */
  struct cJSON *answer; /* to it; NULL: none */
  char fault[512];      /* how it failed when asked; "" = it did not */
};

/* Greets the other side. FA_ERR_INPUT: no hello, or one that makes no sense. */
fa_status fa_exec_greet(fa_exec_subject *x, fa_error *err);
/* FA_ERR_INPUT: its last hello is not the one that it is held to. */
fa_status fa_exec_check_contract(const fa_exec_subject *x, fa_error *err);
/* Greets it if it is not there. */
fa_status fa_exec_need(fa_exec_subject *x, fa_error *err);

/* Starts it anew, because it has to get another region. */
fa_status fa_exec_restart(fa_exec_subject *x, fa_error *err);

/* A request of this type, in the version that the other side speaks. */
struct cJSON *fa_exec_request(const fa_exec_subject *x, const char *type);
/* Sends the request, frees it, and returns the answer, owned by the caller. NULL: it misbehaved and was stopped; text
 * says how. seconds 0: no limit, because the caller of a case has one. */
struct cJSON *fa_exec_ask(fa_exec_subject *x, struct cJSON *request, double seconds, char *text, size_t size);

/* Makes p the problem that is spoken about. False: out of memory. */
bool fa_exec_speak_of(fa_exec_subject *x, const fa_problem *p);
void fa_exec_forget(fa_exec_subject *x);
/* Asks a subject that wants to be asked about the problem that is spoken about, once. If it fails at that, it has not
 * said no: fault says how, the case is run, and the failure is its result. */
void fa_exec_ask_support(fa_exec_subject *x);

/* The functions of an fa_backend, but for open and run. */
fa_status fa_exec_open(const fa_exec_reach *reach, const char *name, const char *command,
                       const fa_wall_terms *terms, void **self, fa_error *err);
void fa_exec_close(void *self);
void fa_exec_describe(void *self, fa_backend_info *out);
unsigned fa_exec_supports(void *self, const fa_problem *p, char *reason, size_t reason_size);
void fa_exec_profile(void *self, const fa_problem *p, fa_profile *out);
void fa_exec_declare(void *self, const fa_problem *p, fa_declaration *out);
const fa_hello *fa_exec_hello(void *self);
void fa_exec_adopt(void *self, fa_dtype dtype, const fa_declaration *found);
fa_status fa_exec_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                      fa_outcome *out, fa_error *err);

const char *fa_exec_contract(void *self);
fa_status fa_exec_hold(void *self, const char *contract, fa_error *err);
fa_status fa_exec_renew(void *self, fa_error *err);

/* Those of a subject that is a child. */
fa_status fa_exec_start_child(fa_exec_subject *x, fa_error *err);
void fa_exec_stop_child(fa_exec_subject *x, bool at_once, char *how, size_t how_size);

#define FA_EXEC_MEMBERS(its_name, its_what, its_open, its_open_untrusted)                                    \
  .name = its_name, .what = its_what, .open = its_open, .open_untrusted = its_open_untrusted,                \
  .close = fa_exec_close, .describe = fa_exec_describe, .supports = fa_exec_supports,                        \
  .profile = fa_exec_profile, .run = fa_exec_run, .declare = fa_exec_declare, .adopt = fa_exec_adopt,        \
  .contract = fa_exec_contract, .hold = fa_exec_hold, .renew = fa_exec_renew, .hello = fa_exec_hello
#define FA_EXEC_BACKEND(its_name, its_what, its_open, its_open_untrusted)                                    \
  { FA_EXEC_MEMBERS(its_name, its_what, its_open, its_open_untrusted) }

#endif
