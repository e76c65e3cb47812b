#include "fuzz/one/judges.h"
#include "fuzz/device/machine.h"
#include "fuzz/judge_process/process.h"
#include "fuzz/judging/canary.h"

#include <stdio.h>

fa_status fa_judges_start(fa_judge_choice choice, double timeout_s, fa_error *err) {
  if (choice == FA_JUDGE_BY_CPU) return FA_OK;
  const fa_judge_machines *machines =
      choice == FA_JUDGE_BY_HOST ? &fa_judge_machines_host : &fa_device_machines;
  return fa_judge_process_start(machines, timeout_s / 2, err);
}

void fa_judges_stop(void) {
  fa_judge_process_stop();
}

fa_status fa_judges_ask(fa_judge_choice choice, fa_judge_config *config, fa_result *r, fa_error *err) {
  fa_error why = {""};
  bool is_new;
  config->both = choice == FA_JUDGE_BY_BOTH || choice == FA_JUDGE_BY_HOST;
  if (choice == FA_JUDGE_BY_CPU) return FA_OK;
  fa_status status = fa_judge_process_machine(&config->machine, &is_new, &why);
  if (status == FA_OK && is_new) {
    status = fa_canary_try_known(config->machine, &why);
    r->judged.broken = status == FA_ERR_DEVICE;
    if (status != FA_OK) config->machine = NULL;
  }
  if (r->judged.broken) return fa_fail(err, status, "%s", why.text);
  if (status == FA_ERR_IO || status == FA_ERR_MEMORY)
    snprintf(r->judged.left, sizeof r->judged.left, "%.*s", FA_LEFT_TEXT - 1, why.text);
  else if (status != FA_OK && choice != FA_JUDGE_BY_AUTO)
    return fa_fail(err, FA_ERR_DEVICE, "%s", why.text);
  return FA_OK;
}
