/* Shared by the fake driver's parts: tests/fake_cuda/device.c has the device, tests/fake_cuda/memory.c
 * allocations and copies, tests/fake_cuda/virtual.c virtual memory. */
#ifndef FA_TESTS_FAKE_CUDA_PARTS_H
#define FA_TESTS_FAKE_CUDA_PARTS_H

#include "gpu/simt/launch.h"
#include "tests/fake_cuda/fake.h"

enum { FAKE_MAX_ALLOCATIONS = 256 };

/* Memory that kernels and copies may touch. */
typedef struct fake_allocation {
  char *data; /* NULL: unused */
  size_t bytes;
  CUmemGenericAllocationHandle mapped; /* 0: from cuMemAlloc */
  bool closed;                         /* mapped, but access is not allowed yet */
} fake_allocation;
extern fake_allocation fake_allocations[FAKE_MAX_ALLOCATIONS];

/* The allocation that contains all these bytes, or -1. */
int fake_allocation_of(CUdeviceptr p, size_t bytes);
int fake_allocation_unused(void); /* -1: all are in use */

/* Carries out pending copies; called by kernels and by everything that waits. */
void fake_memory_flush(void);
/* A kernel's stray write, according to fake.scribble. */
void fake_memory_scribble(void);
/* Frees everything. */
void fake_memory_reset(void);
/* cuMemAlloc and so on. */
CUresult fake_mem_alloc(CUdeviceptr *p, size_t bytes);
CUresult fake_mem_free(CUdeviceptr p);
CUresult fake_host_alloc(void **p, size_t bytes);
CUresult fake_host_free(void *p);
CUresult fake_copy_up(CUdeviceptr to, const void *from, size_t bytes);
CUresult fake_copy_down(void *to, CUdeviceptr from, size_t bytes);
CUresult fake_copy_up_async(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult fake_copy_down_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult fake_memset_async(CUdeviceptr p, unsigned char value, size_t bytes, CUstream stream);

/* A kernel with its parameters. */
struct fake_kernel;
typedef struct fake_launch {
  const struct fake_kernel *kernel;
  unsigned grid[3], block[3], shared;
  const void *params; /* in a graph: its own copy */
} fake_launch;
void fake_launch_run(const fake_launch *l);

/* Streams and graphs (tests/fake_cuda/graph.c). The kernels of the last capture are kept, and run whenever its graph is
 * launched. */
CUresult fake_stream_create(CUstream *stream, unsigned flags);
CUresult fake_stream_destroy(CUstream stream);
CUresult fake_capture_begin(CUstream stream, CUstreamCaptureMode mode);
CUresult fake_capture_end(CUstream stream, CUgraph *graph);
CUresult fake_graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult fake_graph_launch(CUgraphExec exec, CUstream stream);
CUresult fake_graph_exec_destroy(CUgraphExec exec);
CUresult fake_graph_destroy(CUgraph graph);
/* Records a kernel or write, and checks that the stream may have it. */
void fake_graph_note(const char *what, CUstream stream);
/* True, and the launch is kept, while a graph is captured. */
bool fake_graph_keep(const fake_launch *l, size_t params_bytes);
/* Checks that nothing waits for the device during a capture. */
void fake_graph_no_wait(const char *what);
void fake_graph_reset(void);

/* The kernel "fake_rows" (tests/fake_cuda/rows.c): its parameters are those of tests/gpu/rows_plan.json. */
void fake_rows(const unsigned grid[3], void **arguments);

void __attribute__((format(printf, 1, 2))) fake_misused(const char *format, ...);
/* Every call starts with this. */
CUresult fake_enter(const char *name, bool needs_init, bool needs_context);
#define FAKE_ENTER(needs_init, needs_context)                                                                \
  do {                                                                                                       \
    const CUresult entered = fake_enter(__func__, needs_init, needs_context);                                \
    if (entered != CUDA_SUCCESS) return entered;                                                             \
  } while (0)

CUresult fake_granularity(size_t *granule, const CUmemAllocationProp *prop,
                          CUmemAllocationGranularity_flags option);
CUresult fake_address_reserve(CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr wish,
                              unsigned long long flags);
CUresult fake_address_free(CUdeviceptr p, size_t bytes);
CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags);
CUresult fake_release(CUmemGenericAllocationHandle handle);
CUresult fake_map(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult fake_unmap(CUdeviceptr p, size_t bytes);
CUresult fake_set_access(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *access, size_t n);
/* Frees everything. */
void fake_virtual_reset(void);

#endif
