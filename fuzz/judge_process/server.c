#include "fuzz/judge_process/server.h"
#include "fuzz/judge_process/commands.h"
#include "fuzz/judge_process/messages.h"
#include "fuzz/judge_process/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One that asks. */
typedef struct guest {
  const fa_judge_machines *machines;
  int socket;
  fa_judge_shared shared;
  fa_judge_machine *machine; /* NULL: not asked for yet */
  size_t pinned;
} guest;

/* Grows by half at least, because every time costs as much as a call. */
static void pin(guest *g, size_t used) {
  if (used <= g->pinned) return;
  const size_t more = used > g->pinned + g->pinned / 2 ? used : g->pinned + g->pinned / 2;
  g->pinned = more < FA_JUDGE_SHARED_BYTES ? more : FA_JUDGE_SHARED_BYTES;
  g->machines->pin(g->machine, g->shared.memory, g->pinned);
}

static void unpin(guest *g) {
  if (g->pinned) g->machines->pin(g->machine, NULL, 0);
  g->pinned = 0;
}

static fa_status reserve(guest *g, const fa_judge_ask *ask, char **memory, fa_error *err) {
  fa_status status = g->machine ? FA_OK : g->machines->open(&g->machine, err);
  if (status == FA_OK && ask->forget) unpin(g);
  return status == FA_OK ? g->machine->reserve(g->machine->self, ask->bytes, memory, err) : status;
}

static fa_status run(guest *g, const fa_judge_ask *ask, fa_error *err) {
  if (!g->machine || ask->used > FA_JUDGE_SHARED_BYTES || ask->from > ask->used ||
      ask->n_bytes > ask->used - ask->from)
    return fa_fail(err, FA_ERR_DEVICE, "no question to the judge");
  pin(g, ask->used);
  return fa_judge_commands_run(g->machine, g->shared.memory + ask->from, ask->n_bytes, g->shared.memory,
                               ask->used, err);
}

static fa_judge_answer answer_to(guest *g, const fa_judge_ask *ask) {
  fa_judge_answer a = {.nonce = ask->nonce, .server = getpid()};
  switch (ask->what) {
  case FA_JUDGE_HELLO:
    a.status = g->machine ? FA_OK : g->machines->open(&g->machine, &a.err);
    if (a.status == FA_OK) a.most_bytes = g->machine->most_bytes;
    break;
  case FA_JUDGE_RESERVE:
    a.status = reserve(g, ask, &a.memory, &a.err);
    break;
  case FA_JUDGE_RUN:
    a.status = run(g, ask, &a.err);
    break;
  }
  return a;
}

static atomic_bool is_ending;

/* After an error of a device its context may be good for nothing: another process has another. Whoever hears of the error
 * comes to the door again, and shall find that one there. */
static bool answer(const guest *g, const fa_judge_ask *ask, const fa_judge_answer *a) {
  const bool ends = a->status == FA_ERR_DEVICE && ask->what != FA_JUDGE_HELLO;
  if (ends) is_ending = true;
  const bool sent = fa_judge_send(g->socket, a, sizeof *a, NULL);
  if (ends) _exit(3);
  return sent;
}

static void *receive_guest(void *context) {
  guest *g = context;
  fa_judge_ask ask;
  while (fa_judge_receive(g->socket, &ask, sizeof ask, NULL, -1) == FA_JUDGE_HEARD) {
    const fa_judge_answer a = answer_to(g, &ask);
    if (!answer(g, &ask, &a)) break;
  }
  unpin(g);
  if (g->machine) g->machines->close(g->machine);
  fa_judge_shared_close(&g->shared);
  close(g->socket);
  free(g);
  return NULL;
}

static void let_in(const fa_judge_machines *machines, const int fds[2]) {
  pthread_t thread;
  guest *g = calloc(1, sizeof *g);
  if (g) *g = (guest){.machines = machines, .socket = fds[0]};
  if (g && fa_judge_shared_open(fds[1], &g->shared, NULL) == FA_OK &&
      pthread_create(&thread, NULL, receive_guest, g) == 0) {
    pthread_detach(thread);
    return;
  }
  if (g) fa_judge_shared_close(&g->shared);
  close(fds[0]);
  free(g);
}

/* There is no machine: everybody is told why, and what that is does not change. */
static void turn_away(const int fds[2], fa_status status, const fa_error *why) {
  fa_judge_ask ask;
  if (fa_judge_receive(fds[0], &ask, sizeof ask, NULL, 1) == FA_JUDGE_HEARD) {
    const fa_judge_answer a = {.nonce = ask.nonce, .status = status, .err = *why, .server = getpid()};
    fa_judge_send(fds[0], &a, sizeof a, NULL);
  }
  close(fds[0]);
  close(fds[1]);
}

int fa_judge_serve(const fa_judge_machines *machines, int door) {
  fa_error why = {""};
  char knock;
  int fds[2];
  const fa_status begun = machines->begin(&why);
  while (fa_judge_hears(door, -1)) {
    if (is_ending) pause();
    if (fa_judge_receive(door, &knock, sizeof knock, fds, -1) != FA_JUDGE_HEARD) break;
    if (fds[0] < 0) continue;
    if (begun == FA_OK)
      let_in(machines, fds);
    else
      turn_away(fds, begun, &why);
  }
  return 0;
}
