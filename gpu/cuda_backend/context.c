#include "gpu/cuda_backend/context.h"

#include "gpu/modules/kernel.h"

#include <string.h>

static CUresult try_memory(const fa_cuda_driver *d) {
  CUdeviceptr p = 0;
  const CUresult code = d->cuMemAlloc(&p, 1);
  return code == CUDA_SUCCESS ? d->cuMemFree(p) : code;
}

static fa_status find_device(int index, fa_cuda_context *out, fa_error *err) {
  CUdevice device = 0;
  int n = 0;
  memset(out, 0, sizeof *out);
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  CUresult code = d->cuDeviceGetCount(&n);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDeviceGetCount", err);
  if (index >= n) return fa_fail(err, FA_ERR_DEVICE, "there is no device %d: the driver finds %d", index, n);
  code = d->cuDeviceGet(&device, index);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDeviceGet", err);
  return fa_cuda_device_get(d, device, &out->device, err);
}

static fa_status retain(fa_cuda_context *out, fa_error *err) {
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  const CUdevice device = out->device.device;
  CUcontext context = NULL;
  /* Waiting for the device then leaves the processor to other workers. Failure does not matter. */
  d->cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC);
  CUresult code = d->cuDevicePrimaryCtxRetain(&context, device);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDevicePrimaryCtxRetain", err);
  out->driver = d;
  out->context = context;
  code = d->cuCtxSetCurrent(context);
  if (code == CUDA_SUCCESS) code = try_memory(d);
  if (code == CUDA_SUCCESS) return FA_OK;
  const fa_status status = fa_cuda_fail(d, code, "a first allocation", err);
  fa_cuda_context_close(out);
  return status;
}

fa_status fa_cuda_context_open_any(int index, fa_cuda_context *out, fa_error *err) {
  const fa_status status = find_device(index, out, err);
  return status == FA_OK ? retain(out, err) : status;
}

fa_status fa_cuda_context_open(int index, fa_cuda_context *out, fa_error *err) {
  fa_status status = find_device(index, out, err);
  if (status == FA_OK) status = fa_cuda_kernels_exist(&out->device, err);
  return status == FA_OK ? retain(out, err) : status;
}

fa_status fa_cuda_context_use(const fa_cuda_context *c, fa_error *err) {
  const CUresult code = c->driver->cuCtxSetCurrent(c->context);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(c->driver, code, "cuCtxSetCurrent", err);
}

void fa_cuda_context_close(fa_cuda_context *c) {
  if (!c->driver) return;
  c->driver->cuCtxSetCurrent(NULL);
  c->driver->cuDevicePrimaryCtxRelease(c->device.device);
  memset(c, 0, sizeof *c);
}

bool fa_cuda_is_kernels_fault(CUresult code) {
  switch ((int)code) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}
