/* A subject that misbehaves on purpose, behind the ordinary command line: --backend faulty:HOW. Correct
 * results come from ref-f32. Cases with seqlen_q == 13 get the fault, all others a correct answer, so that a
 * test can see that the cases after a fault still run. */
#include "fuzz/cli/commands.h"
#include "ref/math/blas.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What all of this process share, as those that have one context of a GPU do. */
static struct {
  atomic_int n_running;
  atomic_bool lost;
} context;

typedef struct faulty {
  const char *how;
  void *inner;
  int n_runs; /* on faulty cases */
  bool spent; /* the process can run no more cases */
} faulty;

static fa_status faulty_open(const char *arg, void **self, fa_error *err) {
  if (!arg) return fa_fail(err, FA_ERR_INPUT, "faulty:HOW is needed");
  if (strcmp(arg, "crash_at_open") == 0) raise(SIGSEGV);
  if (strcmp(arg, "no_device") == 0) return fa_fail(err, FA_ERR_DEVICE, "there is no such device");
  faulty *f = calloc(1, sizeof *f);
  if (!f) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  f->how = arg;
  *self = f;
  return fa_backend_ref_f32.open(NULL, &f->inner, err);
}

static void faulty_close(void *self) {
  faulty *f = self;
  fa_backend_ref_f32.close(f->inner);
  free(f);
}

static void faulty_describe(void *self, fa_backend_info *out) {
  fa_backend_ref_f32.describe(((faulty *)self)->inner, out);
}

static unsigned faulty_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  faulty *f = self;
  if (strcmp(f->how, "crash_when_asked") == 0) raise(SIGSEGV);
  if (strcmp(f->how, "unsupported") == 0 && p->seqlen_q == 13) {
    snprintf(reason, reason_size, "thirteen is unlucky");
    return 0;
  }
  if (strcmp(f->how, "refuse") == 0 || (strncmp(f->how, "f32_only", 8) == 0 && p->dtype != FA_F32)) {
    snprintf(reason, reason_size, "it has no %s", fa_dtype_name(p->dtype));
    return 0;
  }
  unsigned passes = fa_backend_ref_f32.supports(f->inner, p, reason, reason_size);
  if (strcmp(f->how, "forward_only") != 0) return passes;
  snprintf(reason, reason_size, "it has no backward");
  return passes & FA_PASS_FORWARD;
}

static void faulty_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(((faulty *)self)->inner, p, out);
}

static void zero(const fa_tensor *t) {
  int64_t n = fa_tensor_count(t), index[FA_MAX_RANK];
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, 0);
  }
}

/* Deeper than any stack; the result depends on every frame, so that no compiler turns it into a loop. */
static int fill_stack(volatile const int *above, int64_t depth) {
  volatile int here[1024];
  here[0] = above ? above[0] + 1 : 0;
  return depth > 0 ? fill_stack(here, depth - 1) + here[0] : here[0];
}

/* Dies by SIGKILL, as a process does if the kernel is out of memory. With a file name, it dies only if the
 * file does not exist, and creates it first. */
static void be_killed(const char *marker) {
  int fd = marker ? open(marker, O_CREAT | O_EXCL | O_WRONLY, 0666) : -1;
  if (!marker || fd >= 0) raise(SIGKILL);
}

/* Waits a while for another to begin. */
static bool is_beside_others(void) {
  for (int i = 0; i < 100 && atomic_load(&context.n_running) < 2; ++i) usleep(3000);
  return atomic_load(&context.n_running) > 1;
}

/* Faults before the run. True: the run is over, with *out. */
static bool fault_before(faulty *f, fa_outcome *out) {
  const char *how = f->how;
  if (strcmp(how, "crash") == 0) raise(SIGSEGV);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit") == 0) _exit(7);
  if (strcmp(how, "stack") == 0) _exit(fill_stack(NULL, INT32_MAX));
  if (strcmp(how, "killed") == 0) be_killed(NULL);
  if (strcmp(how, "crash_beside") == 0 && is_beside_others()) raise(SIGSEGV);
  if (strcmp(how, "hang_beside") == 0 && is_beside_others())
    for (;; sleep(1)) {}
  if (strncmp(how, "killed_once=", 12) == 0) be_killed(how + 12);
  for (; strcmp(how, "hang") == 0; sleep(1)) {}
  static const struct {
    const char *how;
    fa_subject_state state;
    const char *text;
  } states[] = {{"reject", FA_SUBJECT_REJECTED, "thirteen rows are not allowed"},
                {"reject_silently", FA_SUBJECT_REJECTED, ""},
                {"race", FA_SUBJECT_RACE, "two writers at shared[12]"},
                {"deadlock", FA_SUBJECT_DEADLOCK, "half a warp waits"},
                {"executor_oob", FA_SUBJECT_OOB, "read past the end of q"}};
  for (size_t i = 0; i < sizeof states / sizeof *states; ++i) {
    if (strcmp(how, states[i].how) != 0) continue;
    out->state = states[i].state;
    snprintf(out->text, sizeof out->text, "%s", states[i].text);
    return true;
  }
  return false;
}

static void fault_after(faulty *f, fa_tensors *t, uint64_t bits_before) {
  const char *how = f->how;
  const fa_tensor *o = &t->t[FA_T_O];
  const int64_t first[FA_MAX_RANK] = {0}, last_row[FA_MAX_RANK] = {0, 12, 0, 0};
  char *payload_end = t->buffer[FA_T_O].base + FA_GUARD_BYTES + t->buffer[FA_T_O].bytes;
  if (strcmp(how, "oob") == 0) payload_end[3] = 0;
  if (strcmp(how, "oob_before") == 0) t->buffer[FA_T_O].base[FA_GUARD_BYTES - 1] = 0;
  if (strcmp(how, "gap") == 0) /* o has one head of D elements, then a gap */
    memset(o->data + (int64_t)fa_dtype_size(o->dtype) * o->shape[3], 0, 2);
  if (strcmp(how, "cache") == 0) fa_tensor_set(&t->t[FA_T_K], first, 9); /* slot 0 must not be written */
  if (strcmp(how, "input") == 0) fa_tensor_set(&t->t[FA_T_Q], last_row, 5);
  if (strcmp(how, "unwritten") == 0) memcpy(o->data, &bits_before, fa_dtype_size(o->dtype));
  if (strcmp(how, "nondeterministic") == 0 && f->n_runs % 2) o->data[fa_tensor_offset(o, last_row)] ^= 1;
  if (strcmp(how, "wrong_o") == 0) fa_tensor_set(o, last_row, 4 * fa_tensor_get(o, last_row));
  if (strcmp(how, "wrong_beside") == 0 && is_beside_others()) fa_tensor_set(o, last_row, 9);
  if (strcmp(how, "nan_o") == 0) fa_tensor_set(o, first, 0.0 / (double)(f->n_runs < 0));
  if (strcmp(how, "zero_o") == 0) zero(o);
  if (strcmp(how, "zero_gradients") == 0 && t->t[FA_T_DQ].data) {
    zero(&t->t[FA_T_DQ]);
    zero(&t->t[FA_T_DK]);
    zero(&t->t[FA_T_DV]);
  }
}

/* A kernel that ends the context of all that have it. */
static bool lose_context(faulty *f, bool now, fa_outcome *out) {
  if (now) atomic_store(&context.lost, true);
  for (int i = 0; i < 20 && !atomic_load(&context.lost); ++i) usleep(1000); /* it may be lost meanwhile */
  if (!atomic_load(&context.lost)) return false;
  f->spent = true;
  out->state = FA_SUBJECT_CRASH;
  snprintf(out->text, sizeof out->text, "an illegal address");
  return true;
}

static fa_status run(faulty *f, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  bool now = p->seqlen_q == 13;
  uint64_t bits_before = 0;
  if (strcmp(f->how, "f32_only_crash") == 0) raise(SIGSEGV);
  if (f->spent) return fa_fail(err, FA_ERR_DEVICE, "this process can run nothing more");
  if (now && strcmp(f->how, "spent") == 0) {
    f->spent = true;
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "the kernel took the context with it");
    return FA_OK;
  }
  if (strcmp(f->how, "context") == 0 && lose_context(f, now, out)) return FA_OK;
  if (now && strcmp(f->how, "memory") == 0) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (now && strcmp(f->how, "device_lost") == 0) return fa_fail(err, FA_ERR_DEVICE, "the device is gone");
  if (now && fault_before(f, out)) return FA_OK;
  memcpy(&bits_before, t->t[FA_T_O].data, fa_dtype_size(p->dtype));
  fa_status status = fa_backend_ref_f32.run(f->inner, p, t, opt, out, err);
  if (status == FA_OK && now) {
    fault_after(f, t, bits_before);
    f->n_runs++;
  }
  return status;
}

static fa_status faulty_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  atomic_fetch_add(&context.n_running, 1);
  if (p->seqlen_q != 13 && strstr(((faulty *)self)->how, "_beside")) usleep(150000);
  const fa_status status = run(self, p, t, opt, out, err);
  atomic_fetch_sub(&context.n_running, 1);
  return status;
}

static void faulty_lanes(int n) {
  (void)n;
}

static bool faulty_spent(void *self) {
  return ((faulty *)self)->spent;
}

static const fa_backend backend_faulty = {.name = "faulty",
                                          .what = "a subject that misbehaves on purpose",
                                          .open = faulty_open,
                                          .close = faulty_close,
                                          .describe = faulty_describe,
                                          .supports = faulty_supports,
                                          .profile = faulty_profile,
                                          .run = faulty_run,
                                          .lanes = faulty_lanes,
                                          .spent = faulty_spent};

int main(int argc, char **argv) {
  static const fa_backend *const backends[] = {&backend_faulty, &fa_backend_ref_f32, NULL};
  fa_blas_startup(argv);
  return fa_cli_main(argc, argv, backends);
}
