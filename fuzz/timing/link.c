#include "fuzz/timing/link.h"

#include "cases/base/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { MIXED_BYTES = 1 << 20, PIECE = 256 };

static bool draw(void *to, size_t n) {
  for (size_t got = 0; got < n;) {
    const ssize_t more = getrandom((char *)to + got, n - got, 0);
    if (more < 0 && errno != EINTR) return false;
    if (more > 0) got += (size_t)more;
  }
  return true;
}

fa_status fa_link_start(fa_link *x, bool unchanged, fa_error *err) {
  memset(x, 0, sizeof *x);
  x->unchanged = unchanged;
  return draw(x->secret, sizeof x->secret) ? FA_OK
                                           : fa_fail(err, FA_ERR_IO, "no random bytes: %s", strerror(errno));
}

static void take(fa_link *x, const void *bytes, size_t n, size_t step) {
  fa_sha256 s;
  fa_sha256_init(&s);
  fa_sha256_add(&s, x->last, sizeof x->last);
  for (size_t at = 0; at < n; at += step)
    fa_sha256_add(&s, (const char *)bytes + at, n - at < PIECE ? n - at : PIECE);
  fa_sha256_hex(&s, x->last);
}

/* Elements of tensors with gaps are looked at where the first so many bytes lie: the gaps are known to both sides. */
void fa_link_take_tensor(fa_link *x, const fa_tensor *t) {
  int64_t last = 0;
  if (!t->data || fa_tensor_count(t) == 0) return;
  for (int a = 0; a < t->rank; ++a) last += (t->shape[a] - 1) * t->stride[a];
  const size_t n = (size_t)(last + 1) * fa_dtype_size(t->dtype);
  take(x, t->data, n, n > MIXED_BYTES ? n / (MIXED_BYTES / PIECE) : PIECE);
}

void fa_link_take_words(fa_link *x, const uint64_t *word, int n) {
  take(x, word, (size_t)n * sizeof *word, PIECE);
}

uint64_t fa_link_seed(fa_link *x) {
  fa_sha256 s;
  char hex[65], digits[17];
  uint64_t noise = 0;
  if (x->unchanged) return x->secret[0];
  (void)draw(&noise, sizeof noise); /* it worked before; the secret alone is unknown to everybody */
  ++x->n_drawn;
  fa_sha256_init(&s);
  fa_sha256_add(&s, x->secret, sizeof x->secret);
  fa_sha256_add(&s, &x->n_drawn, sizeof x->n_drawn);
  fa_sha256_add(&s, &noise, sizeof noise);
  fa_sha256_add(&s, x->last, sizeof x->last);
  fa_sha256_hex(&s, hex);
  memcpy(digits, hex, 16);
  digits[16] = 0;
  return strtoull(digits, NULL, 16);
}

int64_t fa_secret_below(int64_t n) {
  uint64_t bits = 0;
  (void)draw(&bits, sizeof bits);
  return (int64_t)(bits % (uint64_t)n);
}
