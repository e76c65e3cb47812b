#include "fuzz/workers/wire.h"

#include <stdlib.h>
#include <string.h>

/* magic | lengths | the fixed part of fa_result | verdicts | tail | name NUL | case line NUL | maps */
typedef struct wire_head {
  uint64_t magic;
  uint64_t n_name, n_line; /* with their NUL; 0 = NULL */
  fa_tensor_bits maps;     /* bit i: verdict i has a map */
  fa_result fixed;         /* only its verdicts in use follow, separately */
} wire_head;

#define WIRE_MAGIC 0x66612d726573756cull
#define FIXED_BYTES offsetof(wire_head, fixed.verdict)

/* The fields after the verdict array in fa_result are sent after the used verdicts. */
typedef struct wire_tail {
  bool end_to_end[FA_T_COUNT];
  char dump[sizeof((fa_result *)0)->dump];
} wire_tail;

static fa_tensor_bits maps_of(const fa_result *r) {
  fa_tensor_bits maps = 0;
  for (int i = 0; i < r->n_verdicts && i < FA_T_COUNT; ++i) maps |= (fa_tensor_bits)(r->map[i] != NULL) << i;
  return maps;
}

static size_t bytes_of_maps(fa_tensor_bits maps) {
  size_t n = 0;
  for (; maps; maps &= maps - 1) n += sizeof(fa_map);
  return n;
}

static void forget_pointers(fa_result *r) {
  r->name = r->case_line = NULL;
  memset(r->map, 0, sizeof r->map);
}

char *fa_wire_pack(const fa_result *r, size_t *n_bytes) {
  FA_ASSERT(r->n_verdicts >= 0 && r->n_verdicts <= FA_T_COUNT);
  size_t n_name = r->name ? strlen(r->name) + 1 : 0, n_line = r->case_line ? strlen(r->case_line) + 1 : 0;
  size_t n_verdicts = (size_t)r->n_verdicts * sizeof r->verdict[0];
  *n_bytes = FIXED_BYTES + n_verdicts + sizeof(wire_tail) + n_name + n_line + bytes_of_maps(maps_of(r));
  wire_head *head = malloc(sizeof *head);
  char *bytes = malloc(*n_bytes), *at = bytes;
  if (!head || !bytes) {
    free(head);
    free(bytes);
    return NULL;
  }
  head->magic = WIRE_MAGIC;
  head->n_name = n_name;
  head->n_line = n_line;
  head->maps = maps_of(r);
  head->fixed = *r;
  forget_pointers(&head->fixed);
  memcpy(at, head, FIXED_BYTES);
  at += FIXED_BYTES;
  memcpy(at, r->verdict, n_verdicts);
  at += n_verdicts;
  wire_tail tail;
  memcpy(tail.end_to_end, r->end_to_end, sizeof tail.end_to_end);
  memcpy(tail.dump, r->dump, sizeof tail.dump);
  memcpy(at, &tail, sizeof tail);
  at += sizeof tail;
  if (n_name) memcpy(at, r->name, n_name);
  if (n_line) memcpy(at + n_name, r->case_line, n_line);
  at += n_name + n_line;
  for (int i = 0; i < r->n_verdicts; ++i) {
    if (!r->map[i]) continue;
    memcpy(at, r->map[i], sizeof(fa_map));
    at += sizeof(fa_map);
  }
  free(head);
  return bytes;
}

static bool ends_within(const char *text, size_t size) {
  return memchr(text, 0, size) != NULL;
}

/* A damaged bool may hold any byte, and even reading it is undefined. */
static void mend_bool(bool *b) {
  unsigned char byte;
  memcpy(&byte, b, 1);
  *b = byte != 0;
}

static void mend_bools(fa_result *r) {
  mend_bool(&r->backward_left_out);
  mend_bool(&r->waived);
  mend_bool(&r->known);
  mend_bool(&r->malformed);
  mend_bool(&r->judged.broken);
  mend_bool(&r->dump_failed);
  mend_bool(&r->maps_left_out);
  for (int i = 0; i < FA_T_COUNT; ++i) mend_bool(&r->end_to_end[i]);
  for (int i = 0; i < FA_EXPLANATIONS; ++i) mend_bool(&r->explanation[i].sampled);
  for (int i = 0; i < r->n_verdicts; ++i) {
    fa_verdict *v = &r->verdict[i];
    mend_bool(&v->judged);
    mend_bool(&v->stat_bad);
    mend_bool(&v->finer);
    mend_bool(&v->fail);
    for (int k = 0; k < FA_WORST_POINTS; ++k) mend_bool(&v->worst[k].class_bad);
  }
}

static bool verdict_is_sound(const fa_verdict *v) {
  return v->id >= 0 && v->id < FA_T_COUNT && v->n_worst >= 0 && v->n_worst <= FA_WORST_POINTS &&
         v->rank >= 0 && v->rank <= FA_MAX_RANK && v->dtype >= 0 && v->dtype < FA_N_DTYPES &&
         (unsigned)v->stat_which < FA_N_STATISTICS && ends_within(v->where, sizeof v->where) &&
         ends_within(v->vacuous, sizeof v->vacuous) && ends_within(v->finer_why, sizeof v->finer_why);
}

static bool explanations_are_sound(const fa_result *r) {
  if (r->n_explanations < 0 || r->n_explanations > FA_EXPLANATIONS) return false;
  for (int i = 0; i < r->n_explanations; ++i) {
    const fa_explanation *e = &r->explanation[i];
    if (!ends_within(e->hypothesis, sizeof e->hypothesis) || !ends_within(e->text, sizeof e->text))
      return false;
  }
  return true;
}

static bool result_is_sound(const fa_result *r) {
  if (!(r->state >= 0 && r->state < FA_N_STATES && ends_within(r->reason, sizeof r->reason) &&
        ends_within(r->backend, sizeof r->backend) && ends_within(r->kernel, sizeof r->kernel) &&
        ends_within(r->backward_kernel, sizeof r->backward_kernel) &&
        ends_within(r->profile, sizeof r->profile) && ends_within(r->notes, sizeof r->notes) &&
        ends_within(r->waiver, sizeof r->waiver) && ends_within(r->features, sizeof r->features) &&
        ends_within(r->shape, sizeof r->shape) && ends_within(r->place, sizeof r->place) &&
        ends_within(r->dump, sizeof r->dump) && ends_within(r->record, sizeof r->record) &&
        (unsigned)r->law < FA_N_LAWS && explanations_are_sound(r)))
    return false;
  for (int i = 0; i < r->n_verdicts; ++i)
    if (!verdict_is_sound(&r->verdict[i])) return false;
  return true;
}

static fa_status bad(fa_error *err) {
  return fa_fail(err, FA_ERR_IO, "the worker's answer is damaged");
}

/* Copies the maps out of the bytes. FA_ERR_IO: one of them is none. */
static fa_status take_maps(fa_result *r, fa_tensor_bits maps, const char *at, fa_error *err) {
  for (int i = 0; i < r->n_verdicts; ++i) {
    if (!(maps >> i & 1)) continue;
    r->map[i] = malloc(sizeof(fa_map));
    if (!r->map[i]) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    memcpy(r->map[i], at, sizeof(fa_map));
    if (!fa_map_is_sound(r->map[i])) return bad(err);
    at += sizeof(fa_map);
  }
  return FA_OK;
}

fa_status fa_wire_unpack(const char *bytes, size_t n_bytes, fa_result *out, fa_error *err) {
  if (n_bytes < FIXED_BYTES) return bad(err);
  wire_head *head = calloc(1, sizeof *head);
  if (!head) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  memcpy(head, bytes, FIXED_BYTES);
  const fa_result *r = &head->fixed;
  size_t n_verdicts = 0;
  bool good = head->magic == WIRE_MAGIC && r->n_verdicts >= 0 && r->n_verdicts <= FA_T_COUNT &&
              head->n_name <= FA_WIRE_MAX_BYTES && head->n_line <= FA_WIRE_MAX_BYTES &&
              (head->maps >> r->n_verdicts) == 0;
  if (good) {
    n_verdicts = (size_t)r->n_verdicts * sizeof r->verdict[0];
    good = n_bytes == FIXED_BYTES + n_verdicts + sizeof(wire_tail) + head->n_name + head->n_line +
                          bytes_of_maps(head->maps);
  }
  const char *at = bytes + FIXED_BYTES;
  if (good) {
    memcpy(head->fixed.verdict, at, n_verdicts);
    at += n_verdicts;
    wire_tail tail;
    memcpy(&tail, at, sizeof tail);
    at += sizeof tail;
    memcpy(head->fixed.end_to_end, tail.end_to_end, sizeof tail.end_to_end);
    memcpy(head->fixed.dump, tail.dump, sizeof tail.dump);
    forget_pointers(&head->fixed);
    mend_bools(&head->fixed);
    good = result_is_sound(r);
  }
  fa_status status = good ? FA_OK : bad(err);
  if (good) {
    *out = *r;
    if (head->n_name) out->name = strndup(at, head->n_name - 1);
    if (head->n_line) out->case_line = strndup(at + head->n_name, head->n_line - 1);
    status = take_maps(out, head->maps, at + head->n_name + head->n_line, err);
    if (status != FA_OK) fa_result_free(out);
  }
  free(head);
  return status;
}
