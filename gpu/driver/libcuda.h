/* The CUDA driver API, loaded at run time, so that the program also starts without a driver.
 *
 * Call nothing here before a fork if the child uses CUDA too: a driver's state does not survive a fork. */
#ifndef FA_GPU_DRIVER_LIBCUDA_H
#define FA_GPU_DRIVER_LIBCUDA_H

#include "cases/base/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* cuda.h's macros choose the version of each function (cuMemAlloc is cuMemAlloc_v2), here and in the
 * library. */
#define FA_CUDA_FUNCTIONS(F)                                                                                 \
  F(cuInit)                                                                                                  \
  F(cuDriverGetVersion)                                                                                      \
  F(cuGetErrorName)                                                                                          \
  F(cuGetErrorString)                                                                                        \
  F(cuDeviceGetCount)                                                                                        \
  F(cuDeviceGet)                                                                                             \
  F(cuDeviceGetName)                                                                                         \
  F(cuDeviceGetAttribute)                                                                                    \
  F(cuDevicePrimaryCtxRetain)                                                                                \
  F(cuDevicePrimaryCtxRelease)                                                                               \
  F(cuDevicePrimaryCtxSetFlags)                                                                              \
  F(cuCtxSetCurrent)                                                                                         \
  F(cuCtxGetCurrent)                                                                                         \
  F(cuCtxGetDevice)                                                                                          \
  F(cuMemAlloc)                                                                                              \
  F(cuMemFree)                                                                                               \
  F(cuMemcpyHtoD)                                                                                            \
  F(cuMemcpyDtoH)                                                                                            \
  F(cuMemcpyDtoHAsync)                                                                                       \
  F(cuMemcpyHtoDAsync)                                                                                       \
  F(cuMemAllocHost)                                                                                          \
  F(cuMemFreeHost)                                                                                           \
  F(cuMemHostRegister)                                                                                       \
  F(cuMemHostUnregister)                                                                                     \
  F(cuMemsetD8Async)                                                                                         \
  F(cuMemGetAllocationGranularity)                                                                           \
  F(cuMemAddressReserve)                                                                                     \
  F(cuMemAddressFree)                                                                                        \
  F(cuMemCreate)                                                                                             \
  F(cuMemRelease)                                                                                            \
  F(cuMemMap)                                                                                                \
  F(cuMemUnmap)                                                                                              \
  F(cuMemSetAccess)                                                                                          \
  F(cuStreamCreate)                                                                                          \
  F(cuStreamDestroy)                                                                                         \
  F(cuStreamBeginCapture)                                                                                    \
  F(cuStreamEndCapture)                                                                                      \
  F(cuGraphInstantiateWithFlags)                                                                             \
  F(cuGraphLaunch)                                                                                           \
  F(cuGraphExecDestroy)                                                                                      \
  F(cuGraphDestroy)                                                                                          \
  F(cuStreamIsCapturing)                                                                                     \
  F(cuStreamSynchronize)                                                                                     \
  F(cuEventCreate)                                                                                           \
  F(cuEventRecord)                                                                                           \
  F(cuEventSynchronize)                                                                                      \
  F(cuEventElapsedTime)                                                                                      \
  F(cuEventDestroy)                                                                                          \
  F(cuLibraryLoadData)                                                                                       \
  F(cuLibraryUnload)                                                                                         \
  F(cuLibraryGetKernel)                                                                                      \
  F(cuKernelSetAttribute)                                                                                    \
  F(cuTensorMapEncodeTiled)                                                                                  \
  F(cuLaunchKernelEx)                                                                                        \
  F(cuLaunchKernel)

typedef struct fa_cuda_driver {
#define FA_CUDA_FIELD(name) __typeof__(name) *name;
  FA_CUDA_FUNCTIONS(FA_CUDA_FIELD)
#undef FA_CUDA_FIELD
} fa_cuda_driver;

/* Loads and initialises libcuda.so.1 (or the file in the environment's FA_LIBCUDA) once; later calls return
 * the same result. NULL: there is none, it is too old, or it finds no device; the message says which. */
const fa_cuda_driver *fa_cuda_driver_get(fa_error *err);

/* For tests: makes fake the driver from the next fa_cuda_driver_get on. NULL: load the real one again. */
void fa_cuda_driver_replace(const fa_cuda_driver *fake);

/* What was learnt of the driver, its devices and kernels is right while this number stays the same; it is never 0. */
unsigned fa_cuda_generation(void);
/* For tests: gives it another number. */
void fa_cuda_forget(void);

/* FA_ERR_MEMORY if out of memory, else FA_ERR_DEVICE, with "what: CUDA_ERROR_NAME (text)". */
fa_status fa_cuda_fail(const fa_cuda_driver *d, CUresult code, const char *what, fa_error *err);

typedef struct fa_cuda_device {
  CUdevice device;
  char name[128], driver[32]; /* "NVIDIA H100 80GB HBM3", "13.0" */
  int major, minor;           /* compute capability */
  int n_processors;           /* multiprocessors */
  int max_shared_bytes;       /* per block, opt-in maximum */
  int l2_bytes;
} fa_cuda_device;

/* Properties of a device, from the driver. */
fa_status fa_cuda_device_get(const fa_cuda_driver *d, CUdevice device, fa_cuda_device *out, fa_error *err);
/* The device of the calling thread's current context; a thread asks for the properties of a device once. FA_ERR_INPUT:
 * no context is current. */
fa_status fa_cuda_device_current(const fa_cuda_driver *d, fa_cuda_device *out, fa_error *err);

#endif
