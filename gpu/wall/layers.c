#include "gpu/wall/layers.h"

#include <stdio.h>
#include <string.h>

const fa_layer_row fa_layers[FA_N_LAYERS] = {
    [FA_LAYER_PROCESSES] = {"processes", FA_LAYER_OF_WALL,
                            "sees and signals no process but its own, and none of them outlives it"},
    [FA_LAYER_NETWORK] = {"network", FA_LAYER_OF_WALL, "has no network, not even this machine's own"},
    [FA_LAYER_FILES] =
        {"files", FA_LAYER_OF_WALL,
         "sees the system's files read-only, nothing of the judge's, and keeps none that it writes"},
    [FA_LAYER_ENVIRONMENT] = {"environment", FA_LAYER_OF_WALL, "is handed only a short list of variables"},
    [FA_LAYER_SECCOMP] =
        {"seccomp", FA_LAYER_OF_WALL,
         "may not ask the kernel for what attention does not need: ptrace, mounts, io_uring"},
    [FA_LAYER_LIMITS] = {"limits", FA_LAYER_OF_WALL,
                         "has so much memory, so many processes and no core dumps"},
    [FA_LAYER_MEMORY] = {"memory", FA_LAYER_OF_WALL,
                         "shares only a region of fixed size with the judge, who copies every answer once"},
    [FA_LAYER_STDERR] = {"stderr", FA_LAYER_OF_WALL, "what it prints is cut, cleaned and marked as its own"},
    [FA_LAYER_CONTRACT] =
        {"contract", FA_LAYER_OF_JUDGE,
         "is held to its first hello: a refusal inside it fails, and so does another hello"},
    [FA_LAYER_PROFILE] = {"profile", FA_LAYER_OF_JUDGE,
                          "does not choose its own error bounds: a claim may only make them narrower"},
    [FA_LAYER_SEEDS] = {"seeds", FA_LAYER_OF_JUDGE,
                        "gets data that are drawn after its hello, from a secret shown at the end"},
    [FA_LAYER_REPLAY] =
        {"replay", FA_LAYER_OF_JUDGE,
         "gets the same call with other data, scales or seeds in between, and each answer is judged"},
    [FA_LAYER_HIDDEN] = {"hidden", FA_LAYER_OF_JUDGE,
                         "is judged on cases that nobody knew before, beside the named ones"},
    [FA_LAYER_FRESH] = {"fresh", FA_LAYER_OF_JUDGE,
                        "is started anew every so many cases, and must answer as before"},
    [FA_LAYER_FINAL] = {"final", FA_LAYER_OF_JUDGE,
                        "has one try: odd statistics, a kill, silence or a late refusal are failures"},
    [FA_LAYER_BOUNDS] = {"bounds", FA_LAYER_ALWAYS,
                         "is held to a derived bound for each element; without: allclose with 1e-2"},
    [FA_LAYER_POISON] = {"poison", FA_LAYER_ALWAYS, "finds its outputs full of NaN; without: zeros"},
    [FA_LAYER_GUARDS] = {"guards", FA_LAYER_ALWAYS,
                         "may write nothing but its outputs: guards, gaps and inputs are compared"},
    [FA_LAYER_REPEAT] = {"repeat", FA_LAYER_ALWAYS,
                         "runs each case again, over other poison, and must agree bit for bit"},
};

fa_status fa_layers_leave_out(fa_layer_set *set, const char *name, fa_error *err) {
  char all[400];
  for (int l = 0; l < FA_N_LAYERS; ++l) {
    if (strcmp(fa_layers[l].name, name) != 0) continue;
    *set &= ~(1u << l);
    return FA_OK;
  }
  fa_layers_text(FA_ALL_LAYERS, all, sizeof all);
  return fa_fail(err, FA_ERR_INPUT, "--without %s: no such layer; there are: %s", name, all);
}

void fa_layers_text(fa_layer_set set, char *out, size_t size) {
  size_t used = 0;
  if (size) out[0] = 0;
  for (int l = 0; l < FA_N_LAYERS && used < size; ++l)
    if (fa_layer_in(set, (fa_layer)l))
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", fa_layers[l].name);
}
