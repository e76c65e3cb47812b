#include "tests/mutate/image.h"

#include "cases/data/build.h"
#include "cases/tensors/guard.h"

#include <string.h>

static unsigned passes_of(const fa_case *c, const fa_backend *backend, void *self) {
  char why[256];
  const unsigned wanted = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0);
  return wanted & backend->supports(self, &c->problem, why, sizeof why);
}

bool fa_image_applies(const fa_case *c, const fa_backend *backend, void *self) {
  return c->law == FA_LAW_NONE && c->expect != FA_EXPECT_REJECT &&
         (passes_of(c, backend, self) & FA_PASS_FORWARD);
}

static uint64_t hash_bytes(uint64_t h, const char *from, size_t n) {
  uint64_t word;
  for (; n >= sizeof word; from += sizeof word, n -= sizeof word) {
    memcpy(&word, from, sizeof word);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  for (; n > 0; ++from, --n) h = (h ^ (unsigned char)*from) * 0x100000001b3u;
  return h;
}

static uint64_t hash_buffer(uint64_t h, const fa_buffer *b) {
  const char *payload = fa_buffer_payload(b);
  for (int i = 0; i < fa_buffer_n_spans(b); ++i) {
    const fa_span span = fa_buffer_span(b, i);
    h = hash_bytes(h, payload + span.begin, span.end - span.begin);
  }
  h = hash_bytes(h, payload - FA_GUARD_BYTES, FA_GUARD_BYTES);
  return hash_bytes(h, payload + b->bytes, FA_GUARD_BYTES);
}

static uint64_t hash_tensors(const fa_tensors *t) {
  uint64_t h = 1;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (t->buffer[id].base) h = hash_buffer(h, &t->buffer[id]);
  return h;
}

bool fa_image_take(const fa_case *c, const fa_backend *backend, void *self, fa_image *out) {
  fa_tensors t = {0};
  fa_error err;
  const fa_run_options options = {
      .passes = passes_of(c, backend, self), .schedule_seed = 1 + c->schedule_seed, .n_threads = 1};
  memset(out, 0, sizeof *out);
  const bool ran = fa_case_build(c, &t, &err) == FA_OK &&
                   backend->run(self, &c->problem, &t, &options, &out->outcome, &err) == FA_OK;
  if (ran && out->outcome.state == FA_SUBJECT_OK) out->memory = hash_tensors(&t);
  fa_tensors_free(&t);
  return ran;
}
