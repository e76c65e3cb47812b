#include "gpu/modules/flex.h"

#include "gpu/modules/rtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept {
  char *key; /* NULL: free */
  size_t key_bytes;
  uint64_t hash, used;
  CUdevice device;
  CUlibrary library; /* NULL: it does not compile */
  CUkernel kernel;
  char *why_not;
  size_t shared_bytes; /* how far its limit has been raised */
} kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept table[FA_CUDA_FLEX_KEPT];
static int n_kept; /* places that were ever used */
static uint64_t clock_now;

/* One kernel being fetched. */
typedef struct job {
  const fa_cuda_device *device;
  fa_cuda_flex_wanted *wanted;
  bool quick;
  kept entry;  /* key, hash and device; then the result */
  kept *place; /* where it is kept already; otherwise */
  fa_rtc_code code;
  bool compiled; /* code, or status and err, are there */
  fa_status status;
  fa_error err;
  pthread_t thread;
  bool has_thread;
} job;

/* ---- keys ---- */

static fa_status get_policies(bool *quick, fa_error *err) {
  fa_rtc_policy policy;
  const char *how = getenv("FA_FLEX_COMPILE");
  const fa_status status = fa_rtc_policy_get(&policy, err);
  if (status != FA_OK) return status;
  *quick = how && strcmp(how, "quick") == 0;
  if (how && *how && !*quick && strcmp(how, "best") != 0)
    return fa_fail(err, FA_ERR_INPUT, "FA_FLEX_COMPILE=%s: quick or best", how);
  if (policy != FA_RTC_OFF) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "kernels for expressions are compiled at run time, and FA_NVRTC=off");
}

/* Everything the unit depends on, the kernel's recipe, and compiler options. */
static bool make_key(job *j) {
  size_t n = 0;
  char *unit = fa_flex_unit_key(&j->wanted->unit, &n);
  const size_t line = strlen(j->wanted->recipe->only) + 1;
  char *key = unit ? realloc(unit, n + line + 1) : NULL;
  if (!key) {
    free(unit);
    return false;
  }
  memcpy(key + n, j->wanted->recipe->only, line);
  key[n + line] = j->quick;
  n += line + 1;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ (unsigned char)key[i]) * 1099511628211u; /* FNV-1a */
  j->entry = (kept){.key = key, .key_bytes = n, .hash = hash, .device = j->device->device};
  return true;
}

static kept *find(const kept *x) {
  for (int i = 0; i < n_kept; ++i) {
    kept *k = &table[i];
    if (k->key && k->hash == x->hash && k->device == x->device && k->key_bytes == x->key_bytes &&
        memcmp(k->key, x->key, x->key_bytes) == 0)
      return k;
  }
  return NULL;
}

/* ---- compiling, without the lock and in separate threads ---- */

static void *compile(void *argument) {
  job *j = argument;
  char only[300];
  const char *const options[] = {only, "--Ofast-compile=mid"}; /* with which those for sm_90a would spill */
  const char *source = fa_kernel_source_find(j->wanted->recipe->source);
  j->compiled = true;
  j->status = FA_ERR_UNSUPPORTED;
  if (!source) {
    fa_fail(&j->err, j->status, "this build has no source %s.cu", j->wanted->recipe->source);
    return NULL;
  }
  char *text = fa_flex_unit_text(&j->wanted->unit, source);
  if (!text) {
    j->status = fa_fail(&j->err, FA_ERR_MEMORY, "out of memory");
    return NULL;
  }
  const fa_rtc_unit unit = {
      .name = j->wanted->recipe->source, .text = text, .options = options, .n_options = j->quick ? 2 : 1};
  snprintf(only, sizeof only, "-DFA_ONLY=%s", j->wanted->recipe->only);
  j->status = fa_rtc_build(&unit, j->device->major, j->device->minor, &j->code, &j->err);
  free(text);
  return NULL;
}

/* Compiles the first one in this thread. */
static void compile_all(job *jobs, int n) {
  job *own = NULL;
  for (int i = 0; i < n; ++i) {
    if (jobs[i].place) continue;
    if (!own)
      own = &jobs[i];
    else
      jobs[i].has_thread = pthread_create(&jobs[i].thread, NULL, compile, &jobs[i]) == 0;
  }
  if (own) compile(own);
  for (int i = 0; i < n; ++i) {
    if (jobs[i].place || &jobs[i] == own) continue;
    if (jobs[i].has_thread)
      pthread_join(jobs[i].thread, NULL);
    else
      compile(&jobs[i]);
  }
}

/* ---- keeping ---- */

static void empty(const fa_cuda_driver *d, kept *k) {
  if (k->library && d) d->cuLibraryUnload(k->library);
  free(k->key);
  free(k->why_not);
  memset(k, 0, sizeof *k);
}

/* A free place; NULL: the only candidate may still be in use. What other threads have under way is not among the oldest. */
static kept *make_place(const fa_cuda_driver *d, CUstream stream, uint64_t begin) {
  if (n_kept < FA_CUDA_FLEX_KEPT) return &table[n_kept++];
  kept *oldest = &table[0];
  for (int i = 1; i < n_kept; ++i)
    if (table[i].used < oldest->used) oldest = &table[i];
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (oldest->used >= begin || d->cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
      capture != CU_STREAM_CAPTURE_STATUS_NONE || d->cuStreamSynchronize(stream) != CUDA_SUCCESS)
    return NULL;
  empty(d, oldest);
  return oldest;
}

/* Loads what was compiled; a unit that does not compile is also remembered. */
static fa_status keep(const fa_cuda_driver *d, job *j, CUstream stream, uint64_t begin, fa_error *err) {
  kept *x = &j->entry;
  fa_status status = j->status;
  if (status != FA_OK && status != FA_ERR_UNSUPPORTED) {
    if (err) *err = j->err;
    return status;
  }
  if (status == FA_OK) {
    CUresult code = d->cuLibraryLoadData(&x->library, j->code.cubin, NULL, NULL, 0, NULL, NULL, 0);
    if (code == CUDA_SUCCESS) code = d->cuLibraryGetKernel(&x->kernel, x->library, j->wanted->name);
    if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, j->wanted->name, err);
  } else if (!(x->why_not = strdup(j->err.text))) {
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  kept *place = make_place(d, stream, begin);
  if (!place) {
    empty(d, x);
    return fa_fail(err, FA_ERR_UNSUPPORTED, "more than %d flex kernels, while a stream is captured",
                   FA_CUDA_FLEX_KEPT);
  }
  x->used = ++clock_now; /* so that it does not go for the others of the call */
  *place = *x;
  memset(x, 0, sizeof *x);
  j->place = place;
  return FA_OK;
}

static fa_status make_ready(const fa_cuda_driver *d, const fa_cuda_device *device, job *j, fa_error *err) {
  kept *k = j->place;
  k->used = ++clock_now;
  if (!k->library) return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", k->why_not);
  j->wanted->kernel = k->kernel;
  if (j->wanted->shared_bytes <= k->shared_bytes || j->wanted->shared_bytes <= 48 * 1024) return FA_OK;
  if (j->wanted->shared_bytes > (size_t)device->max_shared_bytes)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "kernel %s needs %zu bytes of shared memory, %s has %d for a block", j->wanted->name,
                   j->wanted->shared_bytes, device->name, device->max_shared_bytes);
  const CUresult code = d->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                (int)j->wanted->shared_bytes, k->kernel, device->device);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuKernelSetAttribute", err);
  k->shared_bytes = j->wanted->shared_bytes;
  return FA_OK;
}

static void find_all(job *jobs, int n) {
  for (int i = 0; i < n; ++i) {
    jobs[i].place = find(&jobs[i].entry);
    if (jobs[i].place) jobs[i].place->used = ++clock_now; /* so that the others do not evict it */
  }
}

/* Other threads go on while this one compiles. They may have compiled the same meanwhile, which is then kept, or, if they were
 * very many, have evicted what was there: that is compiled now. */
static fa_status get_all(const fa_cuda_driver *d, const fa_cuda_device *device, job *jobs, int n,
                         CUstream stream, fa_error *err) {
  fa_status status = FA_OK;
  find_all(jobs, n);
  pthread_mutex_unlock(&lock);
  compile_all(jobs, n);
  pthread_mutex_lock(&lock);
  const uint64_t begin = clock_now + 1;
  find_all(jobs, n);
  for (int i = 0; i < n; ++i)
    if (!jobs[i].place && !jobs[i].compiled) compile(&jobs[i]);
  for (int i = 0; status == FA_OK && i < n; ++i)
    if (!jobs[i].place) status = keep(d, &jobs[i], stream, begin, err);
  for (int i = 0; status == FA_OK && i < n; ++i) status = make_ready(d, device, &jobs[i], err);
  return status;
}

fa_status fa_cuda_flex_kernels(const fa_cuda_driver *d, const fa_cuda_device *device,
                               fa_cuda_flex_wanted *wanted, int n, CUstream stream, fa_error *err) {
  job jobs[FA_CUDA_FLEX_WANTED];
  bool quick = false;
  FA_ASSERT(n <= FA_CUDA_FLEX_WANTED);
  memset(jobs, 0, sizeof jobs);
  fa_status status = get_policies(&quick, err);
  for (int i = 0; status == FA_OK && i < n; ++i) {
    jobs[i].device = device;
    jobs[i].wanted = &wanted[i];
    jobs[i].quick = quick && strncmp(wanted[i].recipe->source, "flex/", 5) == 0;
    if (!make_key(&jobs[i])) status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  if (status == FA_OK) {
    pthread_mutex_lock(&lock);
    status = get_all(d, device, jobs, n, stream, err);
    pthread_mutex_unlock(&lock);
  }
  for (int i = 0; i < n; ++i) {
    free(jobs[i].entry.key);
    free(jobs[i].entry.why_not);
    fa_rtc_code_free(&jobs[i].code);
  }
  return status;
}

void fa_cuda_flex_forget(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < n_kept; ++i) empty(NULL, &table[i]);
  n_kept = 0;
  pthread_mutex_unlock(&lock);
}
