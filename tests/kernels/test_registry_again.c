/* The registry answers a repeated question from memory (fa_flash_backward_find): with what it answers when it looks. */
#include "gpu/kernels/registry/device.h"
#include "gpu/kernels/registry/select.h"

#include "cases/base/rng.h"
#include "tests/support/check.h"

#include <string.h>

enum { QUESTIONS = 2000, NUMBERS = sizeof(fa_kernel_ability) / sizeof(int) };
_Static_assert(sizeof(fa_kernel_ability) == NUMBERS * sizeof(int), "compared as bytes");

typedef struct answer {
  int there;
  fa_flash_backward_kernels kernels;
} answer;

static answer ask(const fa_kernel_ability *wanted, const fa_kernel_device *device) {
  answer a;
  memset(&a, 0, sizeof a);
  a.there = fa_flash_backward_find(*wanted, device, &a.kernels);
  return a;
}

/* After a question that nobody else asks here. */
static answer look(const fa_kernel_ability *wanted, const fa_kernel_device *device) {
  static const fa_kernel_ability other = {.bf16 = 1, .head_dim = 40, .narrow = 40};
  static const fa_kernel_device any = {(size_t)1 << 30, 1, 0};
  CHECK(ask(&other, &any).there);
  return ask(wanted, device);
}

static int same(const answer *x, const answer *y) {
  const fa_flash_backward_kernels *a = &x->kernels, *b = &y->kernels;
  if (!x->there || !y->there) return x->there == y->there;
  return a->prepare.name == b->prepare.name && a->prepare_only.name == b->prepare_only.name &&
         a->clear.name == b->clear.name && a->convert.name == b->convert.name &&
         a->convert_keys.name == b->convert_keys.name && a->by_keys.kernel.name == b->by_keys.kernel.name &&
         a->by_queries.kernel.name == b->by_queries.kernel.name &&
         a->dbias_convert.name == b->dbias_convert.name && a->head_dim == b->head_dim;
}

static fa_kernel_ability draw(fa_rng *rng) {
  const int head_dim = 8 * (int)fa_rng_range(rng, 1, 32);
  return (fa_kernel_ability){.bf16 = (int)fa_rng_range(rng, 0, 1),
                             .head_dim = head_dim,
                             .narrow = head_dim,
                             .alibi = (int)fa_rng_range(rng, 0, 1),
                             .softcap = (int)fa_rng_range(rng, 0, 1),
                             .unaligned = (int)fa_rng_range(rng, 0, 1)};
}

/* One number of it is another. */
static fa_kernel_ability change(fa_rng *rng, const fa_kernel_ability *of) {
  int numbers[NUMBERS];
  fa_kernel_ability x;
  memcpy(numbers, of, sizeof numbers);
  numbers[fa_rng_range(rng, 0, NUMBERS - 1)] ^= 1;
  memcpy(&x, numbers, sizeof x);
  return x;
}

/* A device that differs in one field is another. A field more: look at fa_kernel_device_same, and here. */
static void check_fields(void) {
  _Static_assert(sizeof(fa_kernel_device) == sizeof(size_t) + 2 * sizeof(int), "one more field");
  static const fa_kernel_device one = {1024, 1, 132}, others[] = {{1025, 1, 132}, {1024, 0, 132}, {1024, 1, 0}};
  CHECK(fa_kernel_device_same(&one, &one));
  for (int i = 0; i < 3; ++i) CHECK_MSG(!fa_kernel_device_same(&one, &others[i]), "field %d", i);
}

int main(void) {
  static const fa_kernel_device devices[] = {{(size_t)227 << 10, 1, 132},
                                             {(size_t)227 << 10, 0, 0},
                                             {(size_t)99 << 10, 1, 0},
                                             {(size_t)48 << 10, 0, 0}};
  int n_there = 0, n_other = 0;
  fa_rng rng = fa_rng_make(5, 0);
  for (int i = 0; i < QUESTIONS; ++i) {
    const fa_kernel_ability one = draw(&rng), two = change(&rng, &one);
    const fa_kernel_device *device = &devices[fa_rng_range(&rng, 0, 3)],
                           *next = &devices[fa_rng_range(&rng, 0, 3)];
    const answer want = look(&one, device), again = ask(&one, device);
    const answer changed = ask(&two, device), want_changed = look(&two, device);
    look(&one, device);
    const answer moved = ask(&one, next), want_moved = look(&one, next);
    CHECK_MSG(same(&again, &want) && same(&changed, &want_changed) && same(&moved, &want_moved),
              "question %d", i);
    n_there += want.there;
    n_other += !same(&changed, &want) || !same(&moved, &want);
  }
  check_fields();
  CHECK_MSG(n_there > QUESTIONS / 2 && n_other > QUESTIONS / 10, "%d, %d", n_there, n_other);
  return check_done();
}
