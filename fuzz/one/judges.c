#include "fuzz/one/judges.h"
#include "fuzz/device/machine.h"
#include "fuzz/judge_process/client.h"
#include "fuzz/judge_process/process.h"
#include "fuzz/judging/canary.h"

#include <stdio.h>

/* What its process begins with, in a turn. Set before it is forked. */
static struct {
  const fa_judge_machines *machines;
  fa_judge_machines in_turn;
  const fa_process_slots *turns;
} begun;

static fa_status begin_in_turn(fa_error *err) {
  enum { PATIENCE_S = 30 };
  const int turn = fa_process_slots_acquire(begun.turns, PATIENCE_S);
  const fa_status status = begun.machines->begin(err);
  fa_process_slots_release(begun.turns, turn);
  return status;
}

fa_status fa_judges_start(fa_judge_choice choice, double timeout_s, const fa_process_slots *turns,
                          fa_error *err) {
  int64_t unused;
  if (choice == FA_JUDGE_BY_CPU) return FA_OK;
  const fa_status status = fa_judge_read_wide_from(&unused, err);
  if (status != FA_OK) return status;
  begun.machines = choice == FA_JUDGE_BY_HOST ? &fa_judge_machines_host : &fa_device_machines;
  begun.in_turn = *begun.machines;
  begun.turns = turns;
  if (turns) begun.in_turn.begin = begin_in_turn;
  return fa_judge_process_start(&begun.in_turn, timeout_s / 2, err);
}

void fa_judges_stop(void) {
  fa_judge_process_stop();
}

/* The machine, if it knows what is known; *let_live: it does not. One that does not is asked for nothing any more. */
static fa_status ask_known(fa_judge_machine **machine, bool *let_live, fa_error *err) {
  static _Thread_local bool is_broken;
  static _Thread_local fa_error broken;
  bool is_new;
  fa_status status = is_broken ? FA_ERR_DEVICE : fa_judge_process_machine(machine, &is_new, err);
  if (is_broken) *err = broken;
  if (status == FA_OK && is_new) {
    status = fa_canary_try_known(*machine, err);
    is_broken = status == FA_ERR_DEVICE;
    broken = *err;
  }
  if (status != FA_OK) *machine = NULL;
  *let_live = is_broken;
  return status;
}

fa_status fa_judges_ask(fa_judge_choice choice, fa_judge_config *config, fa_result *r, fa_error *err) {
  fa_error why = {""};
  config->both = choice == FA_JUDGE_BY_BOTH || choice == FA_JUDGE_BY_HOST;
  if (choice == FA_JUDGE_BY_CPU) return FA_OK;
  const fa_status status = ask_known(&config->machine, &r->judged.broken, &why);
  if (status == FA_ERR_INPUT) return fa_fail(err, FA_ERR_INPUT, "%s", why.text);
  if (status == FA_ERR_IO || status == FA_ERR_MEMORY)
    snprintf(r->judged.left, sizeof r->judged.left, "%.*s", FA_LEFT_TEXT - 1, why.text);
  else if (status != FA_OK && (choice != FA_JUDGE_BY_AUTO || r->judged.broken))
    return fa_fail(err, FA_ERR_DEVICE, "%s", why.text);
  return FA_OK;
}
