#include "fuzz/inputs/hostile_plugin.h"

#include "gpu/backends/plugin_v1.h"

#include <stdio.h>
#include <string.h>

enum { NAME, OPEN, HELLO, WHY, MESSAGE, KERNEL, OUTPUTS, N_TEXTS, LONGEST = 8192 };
enum { NO_NAME = 1, NO_OPEN = 2, NO_CLOSE = 4, NO_HELLO = 8, NO_SUPPORTS = 16, NO_RUN = 32 };
enum { BEFORE = 32, MOST_WRITTEN = 4096 };

/* One plugin at a time. */
static struct {
  uint8_t head[FA_HOSTILE_PLUGIN_HEAD];
  char text[N_TEXTS][LONGEST];
  const uint8_t *rest;
  size_t rest_size;
  union {
    fa_plugin now;
    fa_plugin_v1 old;
  } table;
} it;

/* ---- what it says ---- */

/* Without a NUL, a text fills its buffer. */
static void say(int which, char *to, size_t size) {
  const char *text = it.text[which];
  const size_t n = strlen(text);
  if (!(it.head[8] >> which & 1) || n == 0) {
    snprintf(to, size, "%s", text);
    return;
  }
  for (size_t i = 0; i < size; ++i) to[i] = text[i % n];
}

static int be_opened(void **self, char *message, size_t size) {
  *self = &it;
  say(OPEN, message, size);
  return (int8_t)it.head[5];
}

static void be_closed(void *self) {
  (void)self;
}

static const char *greet(void *self) {
  (void)self;
  return it.text[HELLO];
}

static unsigned answer(char *why, size_t size) {
  say(WHY, why, size);
  return it.head[6];
}

static unsigned be_asked(void *self, const fa_plugin_problem *p, char *why, size_t size) {
  (void)self, (void)p;
  return answer(why, size);
}

static unsigned be_asked_as_v1(void *self, const fa_plugin_v1_problem *p, char *why, size_t size) {
  (void)self, (void)p;
  return answer(why, size);
}

static void say_arithmetic(void *self, const fa_plugin_v1_problem *p, fa_plugin_v1_arithmetic *out) {
  (void)self, (void)p;
  out->name = it.text[HELLO];
  out->block_n = (int8_t)it.head[9] * 1000;
  out->max_splits = (int8_t)it.head[10] * 100000;
  out->dq_atomic = (int8_t)it.head[11];
}

/* ---- what it writes ---- */

static void write_to(const fa_plugin_tensor *t, int bit) {
  const size_t from = (size_t)it.head[10] | (size_t)it.head[11] << 8;
  if (!(it.head[9] >> bit & 1) || !t->data) return;
  char *to = (char *)t->data - BEFORE + from % MOST_WRITTEN; /* within the tensor, or its guards */
  memcpy(to, it.rest, it.rest_size < MOST_WRITTEN ? it.rest_size : MOST_WRITTEN);
}

static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, fa_plugin_run *r) {
  const fa_plugin_tensor *const outputs[] = {&t->o,  &t->lse, &t->p_debug, &t->dq,
                                             &t->dk, &t->dv,  &t->dbias,   &t->q};
  (void)self, (void)p;
  for (int i = 0; i < 8; ++i) write_to(outputs[i], i);
  say(MESSAGE, r->message, sizeof r->message);
  say(KERNEL, r->kernel, sizeof r->kernel);
  say(OUTPUTS, r->outputs, sizeof r->outputs);
  return (int8_t)it.head[7];
}

static int run_as_v1(void *self, const fa_plugin_v1_problem *p, const fa_plugin_v1_tensors *t,
                     unsigned passes, char *message, size_t size) {
  const fa_plugin_tensor *const outputs[] = {&t->o,  &t->lse, &t->p_debug, &t->dq,
                                             &t->dk, &t->dv,  &t->dbias,   &t->q};
  (void)self, (void)p, (void)passes;
  for (int i = 0; i < 8; ++i) write_to(outputs[i], i);
  say(MESSAGE, message, size);
  return (int8_t)it.head[7];
}

/* ---- its table ---- */

static void read_texts(const uint8_t *at, const uint8_t *end) {
  for (int i = 0; i < N_TEXTS; ++i) {
    const uint8_t *line = at;
    while (at < end && *at != '\n') ++at;
    const size_t n = (size_t)(at - line) < LONGEST - 1 ? (size_t)(at - line) : LONGEST - 1;
    if (n) memcpy(it.text[i], line, n);
    it.text[i][n] = 0;
    if (at < end) ++at;
  }
  it.rest = at;
  it.rest_size = (size_t)(end - at);
}

static uint32_t size_of(uint32_t real, uint32_t up_to_run) {
  switch (it.head[2] % 4) {
  case 1:
    return real - it.head[3];
  case 2:
    return real + it.head[3];
  case 3:
    return up_to_run;
  default:
    return real;
  }
}

static const fa_plugin *table_of_v1(void) {
  const unsigned missing = it.head[4];
  it.table.old = (fa_plugin_v1){.version = 1,
                                .size = size_of(sizeof it.table.old, sizeof it.table.old),
                                .name = missing & NO_NAME ? NULL : it.text[NAME],
                                .open = missing & NO_OPEN ? NULL : be_opened,
                                .close = missing & NO_CLOSE ? NULL : be_closed,
                                .supports = missing & NO_SUPPORTS ? NULL : be_asked_as_v1,
                                .arithmetic = missing & NO_HELLO ? NULL : say_arithmetic,
                                .run = missing & NO_RUN ? NULL : run_as_v1};
  return &it.table.now;
}

const fa_plugin *fa_hostile_plugin_table(const uint8_t *script, size_t size) {
  const size_t head = size < sizeof it.head ? size : sizeof it.head;
  memset(it.head, 0, sizeof it.head);
  memset(&it.table, 0, sizeof it.table);
  if (head) memcpy(it.head, script, head);
  read_texts(script + head, script + size);
  const unsigned missing = it.head[4];
  if (it.head[0] % 4 == 1) return table_of_v1();
  it.table.now =
      (fa_plugin){.version = it.head[0] % 4 == 2 ? it.head[1] : FA_PLUGIN_VERSION,
                  .size = size_of(sizeof it.table.now, offsetof(fa_plugin, run) + sizeof it.table.now.run),
                  .name = missing & NO_NAME ? NULL : it.text[NAME],
                  .open = missing & NO_OPEN ? NULL : be_opened,
                  .close = missing & NO_CLOSE ? NULL : be_closed,
                  .hello = missing & NO_HELLO ? NULL : greet,
                  .supports = missing & NO_SUPPORTS ? NULL : be_asked,
                  .run = missing & NO_RUN ? NULL : run};
  if (it.table.now.version == 1) return table_of_v1();
  return &it.table.now;
}
