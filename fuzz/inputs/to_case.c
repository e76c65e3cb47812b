#include "fuzz/inputs/to_case.h"

#include "fuzz/inputs/draws.h"

#include <string.h>

size_t fa_input_tape_bytes(size_t size) {
  const size_t n = fa_record_bytes();
  return size > n ? size - n : 0;
}

static fa_status attention_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_record record;
  fa_record_read(data, size, &record);
  return fa_record_to_case(&record, FA_RECORD_WORK, out, err);
}

static fa_status families_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_draws draws;
  fa_draws_read(data, size, &draws);
  return fa_draws_to_case(&draws, out, err);
}

/* A quarter of the usual work: a bad order shows within one tile or between two. */
static fa_status schedule_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_record record;
  fa_record_read(data, size, &record);
  record.v[FA_F_RETURN_SOFTMAX] = 0; /* a kernel whose debug matrix costs more than everything else */
  return fa_record_to_case(&record, FA_RECORD_WORK / 4, out, err);
}

/* ---- hopper ----
 *
 * The kernels for sm_90a take tiles of 64 to 176 rows of aligned tensors, so a record means more here. The
 * part of an offset below a multiple of eight elements, which would only select the portable kernels, instead
 * says by how many times 64 rows the longer lengths are lengthened, so that pipelines wrap around. The debug
 * matrix of dropout, which these kernels never write, instead means head dims above 128. */
enum { LONG = FA_RECORD_LENGTH - 64, MAX_MORE_KEYS = 7, MAX_MORE_QUERIES = 3, MEMEFF_DIMS = 16 };
#define HOPPER_WORK (FA_RECORD_WORK * 3)

static void lengthen(uint64_t *length, uint64_t more) {
  for (int b = 0; b < FA_RECORD_ENTRIES; ++b)
    if (length[b] > LONG) length[b] += 64 * more;
}

static fa_status hopper_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_record r;
  fa_record_read(data, size, &r);
  lengthen(&r.v[FA_F_LENGTH_K], r.v[FA_F_OFFSET] % (MAX_MORE_KEYS + 1));
  lengthen(&r.v[FA_F_LENGTH_Q], r.v[FA_F_OFFSET + 1] % (MAX_MORE_QUERIES + 1));
  for (int f = FA_F_GAP; f < FA_F_EXPAND; ++f) r.v[f] -= r.v[f] % 8;
  for (int f = FA_F_OFFSET; f < FA_N_FIELDS; ++f) r.v[f] -= r.v[f] % 8;
  if (r.v[FA_F_RETURN_SOFTMAX]) r.v[FA_F_HEAD_DIM] += MEMEFF_DIMS;
  r.v[FA_F_RETURN_SOFTMAX] = 0;
  return fa_record_to_case(&r, HOPPER_WORK, out, err);
}

/* Undoes lengthen(): by how much it made the longest of these longer; the lengths become its inputs again. */
static uint64_t shorten(uint64_t *length) {
  uint64_t longest = 0;
  for (int b = 0; b < FA_RECORD_ENTRIES; ++b)
    if (length[b] > longest) longest = length[b];
  const uint64_t more = longest > FA_RECORD_LENGTH ? (longest - FA_RECORD_LENGTH + 63) / 64 : 0;
  for (int b = 0; b < FA_RECORD_ENTRIES; ++b)
    if (length[b] > LONG + 64 * more) length[b] -= 64 * more;
  return more;
}

static bool record_of_hopper(const fa_case *c, fa_record *out) {
  uint8_t bytes[512];
  fa_case again;
  if (!fa_record_find(c, out)) return false;
  out->v[FA_F_OFFSET] += shorten(&out->v[FA_F_LENGTH_K]);
  out->v[FA_F_OFFSET + 1] += shorten(&out->v[FA_F_LENGTH_Q]);
  if (out->v[FA_F_RETURN_SOFTMAX]) return false;
  out->v[FA_F_RETURN_SOFTMAX] = out->v[FA_F_HEAD_DIM] >= MEMEFF_DIMS;
  out->v[FA_F_HEAD_DIM] %= MEMEFF_DIMS;
  if (!fa_record_is_in_range(out)) return false;
  FA_ASSERT(fa_record_bytes() <= sizeof bytes);
  fa_record_write(out, bytes);
  if (hopper_case(bytes, fa_record_bytes(), &again, NULL) != FA_OK) return false;
  const bool same = fa_record_same_case(c, &again);
  fa_case_free(&again);
  return same;
}

const fa_input_target fa_input_attention = {"attention", attention_case, false, fa_record_from_case};
const fa_input_target fa_input_families = {"families", families_case, false, NULL};
const fa_input_target fa_input_schedule = {"schedule", schedule_case, true, fa_record_from_case};
const fa_input_target fa_input_hopper = {"hopper", hopper_case, false, record_of_hopper};

const fa_input_target *fa_input_find(const char *name) {
  static const fa_input_target *const all[] = {&fa_input_attention, &fa_input_families, &fa_input_schedule,
                                               &fa_input_hopper};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (strcmp(all[i]->name, name) == 0) return all[i];
  return NULL;
}
