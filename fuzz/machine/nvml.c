/* The state of the first GPU, from the driver's own library. */
#include "fuzz/machine/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0, MAX_PROCESSES = 64 };

/* nvmlProcessInfo_t of version 2 and later: only how many there are is looked at. */
typedef struct process {
  unsigned pid;
  unsigned long long bytes;
  unsigned instance[2];
} process;

typedef struct nvml {
  bool tried, usable;
  char why_not[96];
  void *device;
  int (*clock)(void *, int, unsigned *);
  int (*power)(void *, unsigned *);
  int (*temperature)(void *, int, unsigned *);
  int (*throttle)(void *, unsigned long long *);
  int (*name)(void *, char *, unsigned);
  int (*processes)(void *, unsigned *, process *);
} nvml;

/* A function pointer from dlsym, which returns an object pointer. */
static bool find(void *library, const char *symbol, void *to) {
  void *found = dlsym(library, symbol);
  memcpy(to, &found, sizeof found);
  return found != NULL;
}

static void say(nvml *x, const char *why) {
  snprintf(x->why_not, sizeof x->why_not, "%s", why);
}

static void load(nvml *x) {
  int (*init)(void) = NULL, (*handle)(unsigned, void **) = NULL;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  x->tried = true;
  if (!library) {
    say(x, "no libnvidia-ml.so.1");
    return;
  }
  if (!find(library, "nvmlInit_v2", &init) || !find(library, "nvmlDeviceGetHandleByIndex_v2", &handle) ||
      !find(library, "nvmlDeviceGetName", &x->name)) {
    say(x, "libnvidia-ml.so.1 is too old");
    return;
  }
  find(library, "nvmlDeviceGetClockInfo", &x->clock);
  find(library, "nvmlDeviceGetPowerUsage", &x->power);
  find(library, "nvmlDeviceGetTemperature", &x->temperature);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &x->throttle);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &x->processes);
  if (init() != SUCCESS)
    say(x, "NVML cannot start: no driver");
  else if (handle(0, &x->device) != SUCCESS)
    say(x, "NVML sees no GPU");
  else
    x->usable = true;
}

static int clock_of(const nvml *x, int which) {
  unsigned mhz = 0;
  return x->clock && x->clock(x->device, which, &mhz) == SUCCESS ? (int)mhz : 0;
}

static int processes_of(const nvml *x) {
  process list[MAX_PROCESSES];
  unsigned n = MAX_PROCESSES;
  return x->processes && x->processes(x->device, &n, list) == SUCCESS ? (int)n : -1;
}

void fa_gpu_state_read(fa_gpu_state *out) {
  static nvml x;
  unsigned value = 0;
  memset(out, 0, sizeof *out);
  if (!x.tried) load(&x);
  snprintf(out->why_not, sizeof out->why_not, "%s", x.why_not);
  if (!x.usable) return;
  out->known = true;
  x.name(x.device, out->name, sizeof out->name);
  out->sm_mhz = clock_of(&x, CLOCK_SM);
  out->memory_mhz = clock_of(&x, CLOCK_MEMORY);
  if (x.temperature && x.temperature(x.device, TEMPERATURE_GPU, &value) == SUCCESS) out->celsius = (int)value;
  if (x.power && x.power(x.device, &value) == SUCCESS) out->watts = value * 1e-3;
  if (x.throttle) x.throttle(x.device, &out->throttle);
  out->processes = processes_of(&x);
}

void fa_gpu_throttle_text(unsigned long long bits, char *out, size_t size) {
  static const struct {
    unsigned long long bit;
    const char *word;
  } reasons[] = {{0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x20, "thermal (software)"},
                 {0x40, "thermal"},  {0x80, "power brake"},      {0x2, "clocks set"}};
  size_t used = 0;
  out[0] = 0;
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons && used < size; ++i)
    if (bits & reasons[i].bit)
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", reasons[i].word);
  if (!used) snprintf(out, size, "none");
}
