#include "fuzz/judge_process/client.h"
#include "cases/threads/bulk.h"
#include "fuzz/judge_process/messages.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- questions ---- */

/* Of a process that does not answer nothing can be expected any more. While its end of the socket is there, so is it, and its
 * number is nobody else's. */
static fa_status give_up(fa_judge_client *c, bool silent, fa_error *err) {
  if (silent && c->server > 0) kill(c->server, SIGKILL);
  fa_judge_client_close(c);
  c->is_silent = silent;
  return fa_fail(err, FA_ERR_IO, "%s", silent ? FA_JUDGE_SILENT_TEXT : FA_JUDGE_ENDED_TEXT);
}

static fa_status ask(fa_judge_client *c, fa_judge_ask *question, fa_judge_answer *a, fa_error *err) {
  question->nonce = ++c->nonce;
  if (c->socket < 0 || !fa_judge_send(c->socket, question, sizeof *question, NULL))
    return give_up(c, false, err);
  const fa_judge_heard heard = fa_judge_receive(c->socket, a, sizeof *a, NULL, c->patience_s);
  if (heard != FA_JUDGE_HEARD || a->nonce != c->nonce) return give_up(c, heard == FA_JUDGE_NOTHING, err);
  a->err.text[sizeof a->err.text - 1] = 0;
  if (a->status != FA_OK && err) *err = a->err;
  if (a->status == FA_ERR_DEVICE) fa_judge_client_close(c); /* the process ends after such an answer */
  return a->status;
}

/* ---- the machine ---- */

#define MOST_KEPT ((size_t)256 << 20) /* of the shared memory, from a call to the next */

static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  fa_judge_client *c = self;
  const size_t used = c->used;
  fa_judge_ask question = {.what = FA_JUDGE_RESERVE, .bytes = bytes, .forget = used > MOST_KEPT};
  fa_judge_answer a;
  c->list.used = c->used = 0;
  *memory = c->memory;
  if (bytes <= c->kept_bytes && !question.forget) return FA_OK;
  const fa_status status = ask(c, &question, &a, err);
  if (status == FA_OK && question.forget) fa_judge_shared_forget(&c->shared, used);
  c->memory = *memory = status == FA_OK ? a.memory : NULL;
  c->kept_bytes = status == FA_OK ? a.kept_bytes : 0;
  return status;
}

static size_t up(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

static fa_status has_room(size_t used, size_t bytes, fa_error *err) {
  if (used <= FA_JUDGE_SHARED_BYTES && bytes <= FA_JUDGE_SHARED_BYTES - used) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "judge: no room to share %zu bytes", bytes);
}

static fa_status stage(void *self, size_t bytes, char **memory, fa_error *err) {
  fa_judge_client *c = self;
  *memory = c->shared.memory;
  const fa_status status = has_room(0, bytes, err);
  if (status == FA_OK) c->used = up(bytes);
  return status;
}

static fa_status upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  fa_judge_client *c = self;
  const fa_judge_command one = {.what = FA_JUDGE_UPLOAD,
                                .machine = to,
                                .shared = (size_t)((const char *)from - c->shared.memory),
                                .bytes = bytes};
  return fa_judge_commands_add(&c->list, &one, NULL, err);
}

static fa_status clear(void *self, void *at, size_t bytes, fa_error *err) {
  fa_judge_client *c = self;
  const fa_judge_command one = {.what = FA_JUDGE_CLEAR, .machine = at, .bytes = bytes};
  return fa_judge_commands_add(&c->list, &one, NULL, err);
}

static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  fa_judge_client *c = self;
  const fa_judge_command one = {.what = FA_JUDGE_LAUNCH, .kernel = kernel};
  return fa_judge_commands_add(&c->list, &one, job, err);
}

/* What comes down to where it was staged is there at once. */
static bool is_staged(const fa_judge_client *c, const char *to, size_t bytes) {
  const uintptr_t first = (uintptr_t)c->shared.memory, at = (uintptr_t)to;
  return at >= first && at + bytes <= first + c->used;
}

/* The list goes behind what is staged, and what comes back behind the list. */
static fa_status download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  fa_judge_client *c = self;
  fa_judge_command one = {.what = FA_JUDGE_DOWNLOAD, .machine = (char *)from, .bytes = bytes};
  const size_t n = c->list.used + sizeof one, behind = c->used + up(n);
  const bool staged = is_staged(c, to, bytes);
  one.shared = staged ? (size_t)((char *)to - c->shared.memory) : behind;
  fa_status status = has_room(behind, bytes, err);
  if (status == FA_OK) status = fa_judge_commands_add(&c->list, &one, NULL, err);
  if (status != FA_OK) return status;
  memcpy(c->shared.memory + c->used, c->list.bytes, n);
  fa_judge_ask question = {.what = FA_JUDGE_RUN, .used = behind + up(bytes), .from = c->used, .n_bytes = n};
  fa_judge_answer a;
  c->list.used = 0;
  if ((status = ask(c, &question, &a, err)) == FA_OK && !staged)
    fa_bulk_copy(to, c->shared.memory + behind, bytes);
  return status;
}

/* ---- the connection ---- */

static fa_status knock(fa_judge_client *c, int door, fa_error *err) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return fa_fail(err, FA_ERR_IO, "socketpair: %s", strerror(errno));
  c->socket = pair[0];
  const bool sent = fa_judge_send(door, "", 1, (const int[]){pair[1], c->shared.fd});
  close(pair[1]);
  return sent ? FA_OK : fa_fail(err, FA_ERR_IO, FA_JUDGE_ENDED_TEXT);
}

fa_status fa_judge_read_wide_from(int64_t *pairs, fa_error *err) {
  const char *text = getenv("FA_JUDGE_WIDE_FROM");
  char *end = NULL;
  *pairs = text ? strtoll(text, &end, 10) : 0;
  if (!text || (end != text && !*end && *pairs > 0)) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "FA_JUDGE_WIDE_FROM=%s: how many pairs, 1 or more", text);
}

fa_status fa_judge_client_connect(fa_judge_client *c, int door, double patience_s, bool *is_silent,
                                  fa_error *err) {
  fa_judge_answer a;
  fa_judge_ask hello = {.what = FA_JUDGE_HELLO};
  int64_t wide_from = 0;
  *c = (fa_judge_client){.socket = -1, .patience_s = patience_s};
  getrandom(&c->nonce, sizeof c->nonce, 0); /* any beginning will do */
  fa_status status = fa_judge_read_wide_from(&wide_from, err);
  if (status == FA_OK) status = fa_judge_shared_make(&c->shared, err);
  if (status == FA_OK) status = knock(c, door, err);
  if (status == FA_OK) status = ask(c, &hello, &a, err);
  *is_silent = c->is_silent;
  if (status != FA_OK) {
    fa_judge_client_close(c);
    return status;
  }
  c->server = a.server;
  c->machine = (fa_judge_machine){.self = c,
                                  .most_bytes = a.most_bytes,
                                  .wide_from = wide_from,
                                  .reserve = reserve,
                                  .stage = stage,
                                  .upload = upload,
                                  .download = download,
                                  .clear = clear,
                                  .launch = launch};
  return FA_OK;
}

bool fa_judge_client_is_there(const fa_judge_client *c) {
  struct pollfd p = {.fd = c->socket, .events = POLLIN};
  return c->socket >= 0 && poll(&p, 1, 0) == 0; /* there is nothing to hear but its end */
}

/* Its machine may still be asked, and says that the process ended. */
void fa_judge_client_close(fa_judge_client *c) {
  if (c->socket >= 0) close(c->socket);
  fa_judge_shared_close(&c->shared);
  free(c->list.bytes);
  *c = (fa_judge_client){.machine = c->machine, .socket = -1};
}
