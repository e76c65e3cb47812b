/* Arbitrary bytes as safetensors files: what is accepted lies inside the bytes, and is the same after being
 * written and read again. */
#include "fuzz/inputs/fuzzer.h"

#include "cases/tensors/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every byte of every tensor is readable; otherwise a sanitizer reports it. */
static void read_all(const fa_safetensors *f) {
  static volatile unsigned sink; /* otherwise the loop would be optimised away */
  unsigned sum = 0;
  for (int64_t i = 0; i < f->n_entries; ++i) {
    const fa_tensor *t = &f->entry[i].tensor;
    const int64_t n = fa_tensor_count(t) * (int64_t)fa_dtype_size(t->dtype);
    for (int64_t k = 0; k < n; ++k) sum = sum * 31 + (unsigned char)t->data[k];
  }
  sink = sum;
  (void)sink;
}

static fa_status print(const fa_safetensors *f, char **bytes, size_t *n, fa_error *err) {
  const char **name = calloc((size_t)f->n_entries + 1, sizeof *name);
  const fa_tensor **tensor = calloc((size_t)f->n_entries + 1, sizeof *tensor);
  const char **key = calloc((size_t)f->n_meta + 1, sizeof *key);
  const char **value = calloc((size_t)f->n_meta + 1, sizeof *value);
  FILE *file = open_memstream(bytes, n);
  FA_ASSERT(name && tensor && key && value && file);
  for (int64_t i = 0; i < f->n_entries; ++i) name[i] = f->entry[i].name, tensor[i] = &f->entry[i].tensor;
  for (int64_t i = 0; i < f->n_meta; ++i) key[i] = f->meta[i].key, value[i] = f->meta[i].value;
  const fa_status status =
      fa_safetensors_print(file, "again.safetensors", name, tensor, f->n_entries, key, value, f->n_meta, err);
  FA_ASSERT(fclose(file) == 0);
  free(name);
  free(tensor);
  free(key);
  free(value);
  return status;
}

static void check_same(const fa_safetensors *a, const fa_safetensors *b) {
  FA_FUZZ_CHECK(a->n_entries == b->n_entries && a->n_meta == b->n_meta, "%lld tensors, %lld after",
                (long long)a->n_entries, (long long)b->n_entries);
  for (int64_t i = 0; i < a->n_entries; ++i) {
    const fa_tensor *x = &a->entry[i].tensor, *y = fa_safetensors_find(b, a->entry[i].name);
    FA_FUZZ_CHECK(y, "tensor %s is gone", a->entry[i].name);
    const size_t n = (size_t)fa_tensor_count(x) * fa_dtype_size(x->dtype);
    FA_FUZZ_CHECK(x->dtype == y->dtype && x->rank == y->rank &&
                      memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0,
                  "tensor %s changes its shape", a->entry[i].name);
    FA_FUZZ_CHECK(n == 0 || memcmp(x->data, y->data, n) == 0, "tensor %s changes", a->entry[i].name);
  }
  for (int64_t i = 0; i < a->n_meta; ++i) {
    const char *value = fa_safetensors_meta(b, a->meta[i].key);
    FA_FUZZ_CHECK(value && strcmp(value, a->meta[i].value) == 0, "metadata %s changes", a->meta[i].key);
  }
}

static void check_again(const fa_safetensors *f) {
  char *bytes = NULL;
  size_t n = 0;
  fa_safetensors again;
  fa_error err = {""};
  const fa_status status = print(f, &bytes, &n, &err);
  FA_FUZZ_CHECK(status == FA_OK, "%s", err.text);
  FA_FUZZ_CHECK(fa_safetensors_parse(bytes, n, "again", &again, &err) == FA_OK, "%s\n%.*s", err.text,
                (int)n - 8, bytes + 8);
  check_same(f, &again);
  fa_safetensors_close(&again);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fa_safetensors f;
  fa_error err = {""};
  char *copy = malloc(size ? size : 1); /* without a NUL at the end */
  FA_ASSERT(copy);
  if (size) memcpy(copy, data, size);
  const fa_status status = fa_safetensors_parse(copy, size, "fuzz.safetensors", &f, &err);
  if (status == FA_OK) {
    read_all(&f);
    check_again(&f);
  } else {
    FA_FUZZ_CHECK(strncmp(err.text, "fuzz.safetensors", 16) == 0, "no file in \"%s\"", err.text);
    for (const char *s = err.text; *s; ++s)
      FA_FUZZ_CHECK((unsigned char)*s >= 0x20 && *s != 0x7f, "the message is no line of text: %s", err.text);
  }
  fa_safetensors_close(&f);
  free(copy);
  return 0;
}
