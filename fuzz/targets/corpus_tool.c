/* Converts case files to corpora of the targets whose inputs are cases, and back. The default target is
 * attention.
 *
 *   corpus_tool seeds DIR                               one input per pair of tile class and mask class
 *   corpus_tool draws DIR N                             N inputs of families per profile, of nothing but keys
 *   corpus_tool from-cases [--target NAME] DIR FILE...  one input per case that an input of the target can give
 *   corpus_tool to-cases [--target NAME] INPUT...       each input's case as a JSON line */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/generate/draw.h"
#include "fuzz/inputs/draws.h"
#include "fuzz/inputs/mutate.h"
#include "fuzz/inputs/to_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_bytes(const char *folder, const char *name, const uint8_t *bytes, size_t n) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  bool ok = file && fwrite(bytes, 1, n, file) == n;
  if (file && fclose(file) != 0) ok = false;
  if (!ok) fprintf(stderr, "corpus_tool: cannot write %s\n", path);
  return ok ? 0 : 1;
}

static int write_input(const char *folder, const char *name, const fa_record *r) {
  uint8_t bytes[512];
  FA_ASSERT(fa_record_bytes() <= sizeof bytes);
  fa_record_write(r, bytes);
  return write_bytes(folder, name, bytes, fa_record_bytes());
}

/* Every other one is wide, every third for sm_90a. */
static int draws(const char *folder, int n) {
  int code = 0, made = 0;
  for (int profile = 0; fa_generate_profiles[profile].name; ++profile)
    for (int i = 0; i < n; ++i, ++made) {
      uint8_t bytes[FA_DRAWS_BYTES];
      char name[80];
      const fa_draws x = {.head = (uint8_t)(profile | i % 2 << 5 | (i % 3 == 2) << 7), .key = (uint64_t)i};
      snprintf(name, sizeof name, "%s-%d", fa_generate_profiles[profile].name, i);
      code |= write_bytes(folder, name, bytes, fa_draws_write(&x, bytes));
    }
  printf("%d inputs\n", made);
  return code;
}

/* Lengths around tile edges under every mask; dims, types and features vary with the count. */
static int seeds(const char *folder) {
  static const uint8_t lengths[] = {1, 16, 63, 64, 65, 127, 128, 129};
  static const uint8_t masks[][3] = {{0, 0, 0}, {1, 0, 0}, {2, 17, 1}, {2, 0, 9}, {2, 65, 33}, {2, 1, 1}};
  enum { N_LENGTHS = sizeof lengths, N_MASKS = sizeof masks / sizeof *masks };
  int n = 0, code = 0;
  for (int m = 0; m < N_MASKS; ++m)
    for (int q = 0; q < N_LENGTHS; ++q)
      for (int k = q % 2; k < N_LENGTHS; k += 2, ++n) {
        char name[64];
        fa_record r = {{0}};
        r.v[FA_F_DTYPE] = (uint64_t)n % 2;
        r.v[FA_F_BACKWARD] = n % 3 != 0;
        r.v[FA_F_HEAD_DIM] = (uint64_t)(n * 7 + m) % 16;
        r.v[FA_F_LENGTH_Q] = lengths[q];
        r.v[FA_F_LENGTH_K] = lengths[k];
        r.v[FA_F_MASK] = masks[m][0];
        r.v[FA_F_LEFT] = masks[m][1];
        r.v[FA_F_RIGHT] = masks[m][2];
        r.v[FA_F_DROPOUT] = n % 5 == 1 ? 1 + (uint64_t)n % 9 : 0;
        r.v[FA_F_SOFTCAP] = n % 7 == 2 ? 9 : 0;
        r.v[FA_F_ALIBI] = n % 7 == 3;
        r.v[FA_F_DATA_SEED] = (uint64_t)n;
        r.v[FA_F_OFFSET] = n % 11 == 4;
        r.v[FA_F_REPEAT] = n % 4 == 0;
        snprintf(name, sizeof name, "tile-q%d-k%d-mask%d", lengths[q], lengths[k], m);
        code |= write_input(folder, name, &r);
      }
  printf("%d seeds\n", n);
  return code;
}

/* Keeps letters and digits. */
static void file_name(const char *name, char *out, size_t size) {
  size_t n = 0;
  for (; *name && n + 1 < size; ++name)
    out[n++] =
        strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", *name) ? *name : '_';
  out[n] = 0;
}

static int from_cases(const fa_input_target *target, const char *folder, int n_files, char **files) {
  fa_case_list list = {0};
  fa_error err = {""};
  int n = 0, code = 0;
  for (int i = 0; i < n_files && code == 0; ++i)
    if (fa_case_file_load(files[i], fa_generate, &list, &err) != FA_OK) {
      fprintf(stderr, "corpus_tool: %s\n", err.text);
      code = 2;
    }
  for (int64_t i = 0; i < list.n && code == 0; ++i) {
    fa_record r;
    char name[120], path[140];
    if (!target->from_case(&list.v[i], &r)) continue;
    r.v[FA_F_REPEAT] = 0; /* a case file that is a test runs twice */
    file_name(list.v[i].name, name, sizeof name);
    snprintf(path, sizeof path, "case-%s", name);
    code = write_input(folder, path, &r);
    ++n;
  }
  printf("%d of %lld cases fit\n", n, (long long)list.n);
  fa_case_list_free(&list);
  return code;
}

static int to_case(const fa_input_target *target, const char *path) {
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "corpus_tool: cannot read %s\n", path);
    return 2;
  }
  const size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  fa_case c;
  fa_error err = {""};
  const fa_status status = target->to_case(bytes, n, &c, &err);
  if (status != FA_OK) {
    fprintf(stderr, "corpus_tool: %s: %s\n", path, err.text);
    return status == FA_ERR_INPUT ? 2 : 3;
  }
  if (target->case_lacks_tape && fa_input_tape_bytes(n) > 0)
    fprintf(stderr, "corpus_tool: %s: the case runs in the plain order; replay_%s runs it in the input's\n",
            path, target->name);
  char *line = fa_case_to_line(&c);
  if (line) printf("%s\n", line);
  free(line);
  fa_case_free(&c);
  return line ? 0 : 3;
}

/* Removes --target NAME from the arguments; NULL: there is no such target, which is reported. */
static const fa_input_target *take_target(int *n, char ***args) {
  if (*n < 2 || strcmp((*args)[0], "--target") != 0) return &fa_input_attention;
  const fa_input_target *target = fa_input_find((*args)[1]);
  if (!target)
    fprintf(stderr, "corpus_tool: no target %s has cases for inputs; those are: %s\n", (*args)[1],
            FA_INPUT_NAMES);
  *n -= 2, *args += 2;
  return target;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "seeds") == 0) return seeds(argv[2]);
  if (argc == 4 && strcmp(argv[1], "draws") == 0) return draws(argv[2], atoi(argv[3]));
  if (argc >= 3 && (strcmp(argv[1], "from-cases") == 0 || strcmp(argv[1], "to-cases") == 0)) {
    int n = argc - 2, code = 0;
    char **args = argv + 2;
    const fa_input_target *target = take_target(&n, &args);
    if (!target) return 2;
    if (argv[1][0] == 't' && n >= 1) {
      for (int i = 0; i < n && code == 0; ++i) code = to_case(target, args[i]);
      return code;
    }
    if (argv[1][0] == 'f' && n >= 2 && target->from_case) return from_cases(target, args[0], n - 1, args + 1);
    if (!target->from_case) fprintf(stderr, "corpus_tool: the inputs of %s are no records\n", target->name);
  }
  fprintf(stderr, "usage: corpus_tool seeds DIR | draws DIR N | from-cases [--target NAME] DIR FILE... | "
                  "to-cases [--target NAME] INPUT...\n");
  return 2;
}
