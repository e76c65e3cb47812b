#include "fuzz/options/untrusted.h"

fa_status fa_cli_terms(const fa_cli *cli, fa_wall_terms *out, const fa_wall_terms **terms, fa_error *err) {
  fa_status status = FA_OK;
  *terms = NULL;
  const char *const alone = cli->without.n      ? "without"
                            : cli->allow.n      ? "allow"
                            : cli->hide.n       ? "hide"
                            : cli->memory_limit ? "memory-limit"
                                                : NULL;
  if (!cli->untrusted && alone) return fa_fail(err, FA_ERR_INPUT, "--%s goes with --untrusted", alone);
  if (!cli->untrusted) return FA_OK;
  if (!cli->backend.n)
    return fa_fail(err, FA_ERR_INPUT,
                   "--untrusted needs a --backend that is a program of its own: exec: or py:");
  *out = (fa_wall_terms){.layers = FA_ALL_LAYERS,
                         .allow = cli->allow.v,
                         .n_allow = cli->allow.n,
                         .hide = cli->hide.v,
                         .n_hide = cli->hide.n,
                         .memory_bytes = (size_t)cli->memory_limit};
  for (int i = 0; status == FA_OK && i < cli->without.n; ++i)
    status = fa_layers_leave_out(&out->layers, cli->without.v[i], err);
  *terms = out;
  return status;
}
