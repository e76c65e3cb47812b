#include "gpu/cuda/module.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CUBINS 64
#define MAX_KERNELS 512

/* A kernel and how far its limit on shared memory was raised on a device; limits only grow. */
typedef struct ready_kernel {
  char name[96];
  CUdevice device;
  size_t shared_bytes;
  CUkernel kernel;
} ready_kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary library[MAX_CUBINS]; /* of cubin i; NULL: not loaded yet */
static ready_kernel ready[MAX_KERNELS];
static int n_ready;
static const fa_cubin *cubins = fa_cubins;
static int n_cubins = -1; /* as many as the build has */

static int count(void) {
  return n_cubins < 0 ? fa_n_cubins : n_cubins;
}

bool fa_cubin_fits(const char *arch, int major, int minor) {
  char *suffix = NULL;
  const long number = strtol(arch, &suffix, 10);
  if (*suffix == 'a') return number == 10 * major + minor; /* this one and no other */
  return number / 10 == major && number % 10 <= minor;
}

fa_status fa_cuda_kernels_exist(const fa_cuda_device *device, fa_error *err) {
  char have[200] = "";
  size_t used = 0;
  if (count() == 0)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "this build has no device kernels: %s", fa_cubins_why_not);
  for (int i = 0; i < count(); ++i) {
    if (fa_cubin_fits(cubins[i].arch, device->major, device->minor)) return FA_OK;
    bool seen = false;
    for (int k = 0; k < i; ++k) seen |= strcmp(cubins[k].arch, cubins[i].arch) == 0;
    if (!seen && used < sizeof have)
      used += (size_t)snprintf(have + used, sizeof have - used, "%ssm_%s", used ? ", " : "", cubins[i].arch);
  }
  return fa_fail(err, FA_ERR_UNSUPPORTED, "%s is of compute capability %d.%d; this build has kernels for %s",
                 device->name, device->major, device->minor, have);
}

/* Is name a kernel of this cubin's, by the custom that flash_forward.cu holds flash_forward_...? */
static bool is_named_after(const char *name, const fa_cubin *cubin) {
  return strncmp(name, cubin->source, strlen(cubin->source)) == 0;
}

static fa_status load(const fa_cuda_driver *d, int i, fa_error *err) {
  if (library[i]) return FA_OK;
  const CUresult code = d->cuLibraryLoadData(&library[i], cubins[i].begin, NULL, NULL, 0, NULL, NULL, 0);
  if (code == CUDA_SUCCESS) return FA_OK;
  library[i] = NULL;
  return fa_cuda_fail(d, code, "loading the kernels", err);
}

/* Finds name in the code for this device, loading on the way what was not loaded yet. Looks where the name
 * says first: to ask in vain is an error in the eyes of memory checkers. */
static fa_status find(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name, CUkernel *out,
                      fa_error *err) {
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < count() && i < MAX_CUBINS; ++i) {
      if (!fa_cubin_fits(cubins[i].arch, device->major, device->minor)) continue;
      if (is_named_after(name, &cubins[i]) != (pass == 0)) continue;
      const fa_status status = load(d, i, err);
      if (status != FA_OK) return status;
      const CUresult code = d->cuLibraryGetKernel(out, library[i], name);
      if (code == CUDA_SUCCESS) return FA_OK;
      if (code != CUDA_ERROR_NOT_FOUND) return fa_cuda_fail(d, code, name, err);
    }
  }
  return fa_fail(err, FA_ERR_UNSUPPORTED, "kernel %s is not among those compiled ahead of time", name);
}

static fa_status make_ready(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                            size_t shared_bytes, CUkernel *out, fa_error *err) {
  fa_status status = fa_cuda_kernels_exist(device, err);
  if (status == FA_OK && shared_bytes > (size_t)device->max_shared_bytes)
    status =
        fa_fail(err, FA_ERR_UNSUPPORTED, "kernel %s needs %zu bytes of shared memory, %s has %d for a block",
                name, shared_bytes, device->name, device->max_shared_bytes);
  if (status == FA_OK) status = find(d, device, name, out, err);
  if (status != FA_OK || shared_bytes <= 48 * 1024) return status;
  const CUresult code = d->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                (int)shared_bytes, *out, device->device);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, "cuKernelSetAttribute", err);
}

fa_status fa_cuda_kernel(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                         size_t shared_bytes, CUkernel *out, fa_error *err) {
  fa_status status = FA_OK;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < n_ready && (ready[i].device != device->device || ready[i].shared_bytes < shared_bytes ||
                         strcmp(ready[i].name, name) != 0))
    ++i;
  if (i < n_ready) {
    *out = ready[i].kernel;
  } else {
    status = make_ready(d, device, name, shared_bytes, out, err);
    if (status == FA_OK && n_ready < MAX_KERNELS) {
      ready[n_ready] = (ready_kernel){.device = device->device, .shared_bytes = shared_bytes, .kernel = *out};
      snprintf(ready[n_ready++].name, sizeof ready->name, "%s", name);
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void fa_cuda_kernels_replace(const fa_cubin *replacement, int n) {
  pthread_mutex_lock(&lock);
  n_ready = 0;
  memset(library, 0, sizeof library);
  cubins = replacement ? replacement : fa_cubins;
  n_cubins = replacement ? n : fa_n_cubins;
  pthread_mutex_unlock(&lock);
}
