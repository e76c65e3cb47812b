#include "fuzz/generate/within.h"

#include "cases/tensors/table.h"

/* Draws without their backward pass that are passed over for one with it. */
#define PARTIAL_DRAWS 8
/* The sample has cases of no run: all runs have the same one, whatever their seed. */
#define SAMPLE_SEED UINT64_C(0x73616d706c650001)
#define SAMPLE_FORWARD 64 /* forward passes among which a backward would have been seen */

typedef enum answer { REFUSED, PARTIAL, WHOLE } answer;

static fa_status ask(const fa_drawing *d, const char *profile, uint64_t seed, int64_t index, int64_t draw,
                     answer *out, fa_error *err) {
  fa_case c;
  const fa_status status = fa_generate_draw(profile, seed, index, draw, &c, err);
  if (status != FA_OK) return status;
  const unsigned able = d->able(d->ctx, &c.problem);
  const bool lacks_backward = c.problem.backward && !(able & FA_PASS_BACKWARD);
  *out = !(able & FA_PASS_FORWARD) ? REFUSED : lacks_backward ? PARTIAL : WHOLE;
  fa_case_free(&c);
  return FA_OK;
}

static fa_status sample(const fa_drawing *d, const char *profile, fa_drawing_known *known, fa_error *err) {
  fa_status status = FA_OK;
  int n_forward = 0;
  *known = (fa_drawing_known){.sampled = true};
  for (int64_t i = 0; status == FA_OK && i < FA_MAX_DRAWS && n_forward < SAMPLE_FORWARD; ++i) {
    fa_case c;
    status = fa_generate_draw(profile, SAMPLE_SEED, i, i, &c, err); /* wild ones and tame ones */
    if (status != FA_OK) break;
    const unsigned able = d->able(d->ctx, &c.problem);
    const bool forward = able & FA_PASS_FORWARD;
    n_forward += forward;
    known->any |= forward;
    known->backward |= forward && c.problem.backward && (able & FA_PASS_BACKWARD);
    fa_case_free(&c);
    if (known->backward) break;
  }
  return status;
}

static fa_status draw_again(const fa_drawing *d, const fa_drawing_known *known, const char *profile,
                            uint64_t seed, int64_t index, answer first, int64_t *draw, fa_error *err) {
  int64_t partial = first == PARTIAL ? 0 : -1;
  int n_partial = first == PARTIAL;
  fa_status status = FA_OK;
  for (int64_t k = 1; k < FA_MAX_DRAWS && n_partial < PARTIAL_DRAWS; ++k) {
    answer said = REFUSED;
    status = ask(d, profile, seed, index, k, &said, err);
    if (status != FA_OK) return status;
    if (said == WHOLE || (said == PARTIAL && !known->backward)) {
      *draw = k;
      return FA_OK;
    }
    if (said == PARTIAL && n_partial++ == 0) partial = k;
  }
  *draw = partial >= 0 ? partial : 0;
  return FA_OK;
}

fa_status fa_drawing_choose(fa_drawing *d, const char *profile, uint64_t seed, int64_t index, int64_t *draw,
                            fa_error *err) {
  answer said = REFUSED;
  *draw = 0;
  fa_status status = ask(d, profile, seed, index, 0, &said, err);
  if (status != FA_OK || said == WHOLE) return status;
  const int place = fa_generate_profile_find(profile);
  FA_ASSERT(place >= 0 && place < FA_DRAWING_PROFILES);
  fa_drawing_known *known = &d->known[place];
  if (!known->sampled && (status = sample(d, profile, known, err)) != FA_OK) return status;
  if (!known->any && said == REFUSED) return FA_OK;
  if (!known->backward && said == PARTIAL) return FA_OK;
  return draw_again(d, known, profile, seed, index, said, draw, err);
}
