#include "fuzz/judge_process/server.h"
#include "fuzz/judge_process/lines.h"
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
  fa_judge_machine *machine; /* NULL: not asked for yet. Of its memory the guest knows, */
  fa_judge_machine *lists;   /* and of this one's not: lists lie there */
  size_t pinned;
  char *memory; /* that it reserved */
  size_t memory_bytes;
  fa_judge_call call;
  bool fails; /* the machine; what it says is not to be relied on */
} guest;

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Grows by half at least, and has some room to begin with, because every time costs as much as a call. */
static void pin(guest *g, size_t used) {
  if (used <= g->pinned) return;
  const size_t more = larger(larger(used, (size_t)16 << 20), g->pinned + g->pinned / 2);
  g->pinned = more < FA_JUDGE_SHARED_BYTES ? more : FA_JUDGE_SHARED_BYTES;
  g->machines->pin(g->machine, g->shared.memory, g->pinned);
}

static void unpin(guest *g) {
  if (g->pinned) g->machines->pin(g->machine, NULL, 0);
  g->pinned = 0;
}

static fa_status open_machines(guest *g, fa_error *err) {
  fa_status status = g->machine ? FA_OK : g->machines->open(&g->machine, err);
  if (status == FA_OK && !g->lists) status = g->machines->open(&g->lists, err);
  return status;
}

static fa_status reserve(guest *g, const fa_judge_ask *ask, fa_judge_answer *a) {
  fa_status status = open_machines(g, &a->err);
  if (status == FA_OK && ask->forget) unpin(g);
  if (status == FA_OK) status = g->machine->reserve(g->machine->self, ask->bytes, &a->memory, &a->err);
  g->fails = status == FA_ERR_DEVICE;
  g->memory = status == FA_OK ? a->memory : NULL;
  a->kept_bytes = status == FA_OK ? g->machine->kept_bytes : 0;
  g->memory_bytes = status != FA_OK ? 0 : a->kept_bytes > ask->bytes ? a->kept_bytes : ask->bytes;
  return status;
}

/* Reads the list, and finds room for it. */
static fa_status take_list(guest *g, const fa_judge_ask *ask, fa_error *err) {
  const fa_judge_bounds bounds = {g->memory, g->memory_bytes, ask->used};
  fa_judge_call *c = &g->call;
  if (!g->lists || ask->used > FA_JUDGE_SHARED_BYTES || ask->from > ask->used ||
      ask->n_bytes > ask->used - ask->from)
    return fa_fail(err, FA_ERR_DEVICE, "no question to the judge");
  c->shared = g->shared.memory;
  c->list = c->shared + ask->from;
  c->bytes = ask->n_bytes;
  const fa_status status = fa_judge_steps_read(c->list, c->bytes, &bounds, &c->steps, err);
  if (status != FA_OK || c->steps.n_launches == 0) return status;
  return g->lists->reserve(g->lists->self, c->bytes, &c->there, err);
}

/* One that takes long is nobody's neighbour. */
static bool is_large(const guest *g) {
  enum { MANY = 200 };
  return g->call.steps.in_order || g->call.steps.n_launches > MANY || g->memory_bytes > (size_t)2 << 30;
}

static fa_status run(guest *g, const fa_judge_ask *ask, fa_error *err) {
  fa_judge_call *c = &g->call;
  const fa_status status = take_list(g, ask, err);
  if (status != FA_OK) return status;
  pin(g, ask->used);
  if (is_large(g)) {
    c->status = fa_judge_run_alone(g->machine, c, &c->err);
  } else {
    fa_judge_lines_do(c);
  }
  g->fails = c->status != FA_OK;
  *err = c->err;
  return c->status;
}

static fa_judge_answer answer_to(guest *g, const fa_judge_ask *ask) {
  fa_judge_answer a = {.nonce = ask->nonce, .server = getpid()};
  switch (ask->what) {
  case FA_JUDGE_HELLO:
    a.status = open_machines(g, &a.err);
    if (a.status == FA_OK) a.most_bytes = g->machine->most_bytes;
    break;
  case FA_JUDGE_RESERVE:
    a.status = reserve(g, ask, &a);
    break;
  case FA_JUDGE_RUN:
    a.status = run(g, ask, &a.err);
    break;
  }
  return a;
}

static atomic_bool is_ending;

/* After an error of a device its context may be good for nothing: another process has another. Whoever hears of the error
 * comes to the door again, and shall find that one there. Of a list that is none, he alone hears who sent it. */
static bool answer(const guest *g, const fa_judge_answer *a) {
  if (g->fails) is_ending = true;
  const bool sent = fa_judge_send(g->socket, a, sizeof *a, NULL);
  if (g->fails) _exit(3);
  return sent;
}

static void *receive_guest(void *context) {
  guest *g = context;
  fa_judge_ask ask;
  while (fa_judge_receive(g->socket, &ask, sizeof ask, NULL, -1) == FA_JUDGE_HEARD) {
    const fa_judge_answer a = answer_to(g, &ask);
    if (!answer(g, &a)) break;
  }
  unpin(g);
  if (g->machine) g->machines->close(g->machine);
  if (g->lists) g->machines->close(g->lists);
  fa_judge_shared_close(&g->shared);
  close(g->socket);
  free(g->call.steps.step);
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
  fa_status begun = machines->begin(&why);
  if (begun == FA_OK) begun = fa_judge_lines_start(machines, &why);
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
