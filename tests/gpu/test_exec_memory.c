/* The region shared with a child: its guards are not written for every run, and yet whatever has changed them is found, and
 * the next run finds them as they should be. */
#include "cases/tensors/guard.h"
#include "gpu/backends/exec_memory.h"
#include "tests/support/check.h"

#include <string.h>
#include <unistd.h>

enum { O = FA_T_O, LSE = FA_T_LSE };

typedef struct setup {
  fa_exec_memory region;
  fa_tensors t;
  fa_exec_tensors list;
} setup;

static void describe(setup *s, int64_t n_o) {
  const int64_t shape[2] = {n_o, 24};
  fa_error err;
  fa_tensors_free(&s->t);
  REQUIRE(fa_tensors_add(&s->t, FA_T_O, FA_F16, 1, shape, NULL, 0, &err) == FA_OK);
  REQUIRE(fa_tensors_add(&s->t, FA_T_LSE, FA_F32, 1, shape + 1, NULL, 0, &err) == FA_OK);
  s->list.n = 0;
  for (int i = 0; i < 2; ++i) {
    const int id = i ? LSE : O;
    s->list.at[s->list.n++] = (fa_exec_tensor){.name = fa_tensor_id_name((fa_tensor_id)id),
                                               .access = FA_EXEC_WRITE,
                                               .tensor = &s->t.t[id],
                                               .buffer = &s->t.buffer[id]};
  }
}

/* Up to the moment when the child is asked. */
static void begin(setup *s, int64_t n_o) {
  fa_error err;
  describe(s, n_o);
  REQUIRE(fa_exec_memory_place(&s->region, &s->list, &err) == FA_OK);
  fa_exec_memory_copy_in(&s->region);
}

/* The byte of the region at this distance from the first one of a tensor. */
static char *byte_at(const setup *s, int i, int64_t distance) {
  return s->region.map + fa_exec_memory_offset(&s->region, &s->list.at[i]) + distance;
}

static bool region_is_guarded(const setup *s) {
  const uint32_t word = FA_PATTERN_WORD(FA_PATTERN_GUARD);
  bool intact = true;
  for (int i = 0; i < 2; ++i) {
    const int64_t bytes = (int64_t)s->list.at[i].buffer->bytes;
    intact &=
        fa_pattern_first_difference(byte_at(s, i, -FA_GUARD_BYTES), FA_GUARD_BYTES, word) == FA_GUARD_BYTES;
    intact &= fa_pattern_first_difference(byte_at(s, i, bytes), FA_GUARD_BYTES, word) == FA_GUARD_BYTES;
  }
  return intact;
}

/* The child has answered; what is found in the call's own tensors? */
static bool ends_intact(setup *s, char *where) {
  fa_exec_memory_copy_out(&s->region);
  where[0] = 0;
  return fa_tensors_guards_intact(&s->t, where, 200);
}

static void check_damage(setup *s, int i, int64_t distance, const char *says) {
  char where[200];
  begin(s, 40);
  CHECK(region_is_guarded(s));
  *byte_at(s, i, distance) ^= 1;
  CHECK(!ends_intact(s, where));
  CHECK_MSG(strstr(where, says) != NULL, "%s", where);
  begin(s, 40);
  CHECK(region_is_guarded(s));
  CHECK(ends_intact(s, where));
}

/* A region that is inherited has one size for good: more is another region, with guards of its own. */
static void test_inherited(void) {
  setup s = {0};
  char where[96] = "";
  fa_error err;
  REQUIRE(fa_exec_memory_inherit(&s.region, 3, true, &err) == FA_OK);
  CHECK(s.region.renewed && strcmp(s.region.path, "/proc/self/fd/3") == 0);
  const size_t first = s.region.bytes;
  CHECK(ftruncate(s.region.fd, 0) != 0 && ftruncate(s.region.fd, (off_t)(2 * first)) != 0);
  s.region.renewed = false;
  begin(&s, 40);
  CHECK(!s.region.renewed && ends_intact(&s, where));
  begin(&s, (int64_t)first);
  CHECK(s.region.renewed && s.region.bytes > first && region_is_guarded(&s));
  CHECK(ftruncate(s.region.fd, 0) != 0);
  fa_exec_memory_close(&s.region);
  fa_tensors_free(&s.t);
}

int main(void) {
  setup s = {.list = {.n = 0}};
  char where[200];
  begin(&s, 40);
  CHECK(region_is_guarded(&s) && ends_intact(&s, where));
  /* The guards stand from the run before; damage to any of them is found all the same. */
  check_damage(&s, 0, 80, "back guard of o: 1 byte overwritten, the nearest 0 bytes past");
  check_damage(&s, 0, 80 + FA_GUARD_BYTES - 1,
               "back guard of o: 1 byte overwritten, the nearest 65535 bytes past");
  check_damage(&s, 0, -1, "front guard of o: 1 byte overwritten, the nearest 1 byte before");
  check_damage(&s, 1, -FA_GUARD_BYTES,
               "front guard of lse: 1 byte overwritten, the nearest 65536 bytes before");
  /* A child that damages them and dies: nothing is copied out, and the next one finds whole guards. */
  begin(&s, 40);
  *byte_at(&s, 1, 96) ^= 1;
  begin(&s, 40);
  CHECK(region_is_guarded(&s) && ends_intact(&s, where));
  /* Other sizes: guards elsewhere, over what was a payload, and back again. */
  for (int64_t n = 1; n < 200000; n = n * 3 + 1) {
    begin(&s, n);
    CHECK(region_is_guarded(&s));
    memset(byte_at(&s, 0, 0), 0x11, s.list.at[0].buffer->bytes);
    CHECK(ends_intact(&s, where));
    CHECK(s.t.t[O].data[0] == 0x11);
    begin(&s, 40);
    CHECK(region_is_guarded(&s) && ends_intact(&s, where));
  }
  fa_exec_memory_close(&s.region);
  fa_tensors_free(&s.t);
  test_inherited();
  return check_done();
}
