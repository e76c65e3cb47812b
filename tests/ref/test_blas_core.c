/* OpenBLAS starts with kernels that fit the processor: a bad choice is corrected by one restart, never
 * more. */
#include "ref/math/blas.h"
#include "tests/support/check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As it would be on a processor that the library does not know. */
char *__real_openblas_get_corename(void);
char *__wrap_openblas_get_corename(void);
char *__wrap_openblas_get_corename(void) {
  char *core = getenv("TEST_BLAS_CORE");
  return core ? core : __real_openblas_get_corename();
}

/* Runs this program again with the given core type; exit code: bit 0 generic at the end, bit 1 with a core type in the environment. */
static int child(const char *program, const char *core, const char *keep) {
  pid_t pid = fork();
  if (pid == 0) {
    if (core) setenv("OPENBLAS_CORETYPE", core, 1);
    if (!core) unsetenv("OPENBLAS_CORETYPE");
    if (keep) setenv("FA_VERIFY_BLAS_CORE", keep, 1);
    execl(program, program, "child", "two words", (char *)NULL);
    _exit(99);
  }
  int status = 0;
  REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void multiply(void) {
  const double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  double c[4] = {10, 20, 30, 40};
  fa_blas_dgemm(FA_BLAS_N, FA_BLAS_N, 2, 2, 3, 2, a, 3, b, 2, 1, c, 2);
  CHECK(c[0] == 10 + 2 * 4 && c[1] == 20 + 2 * 5 && c[2] == 30 + 2 * 10 && c[3] == 40 + 2 * 11);
  const float x[2] = {3, 4}, y[2] = {5, 6};
  float z[4];
  fa_blas_sgemm(FA_BLAS_T, FA_BLAS_N, 2, 2, 1, 1, x, 2, y, 2, 0, z, 2);
  CHECK(z[0] == 15 && z[1] == 18 && z[2] == 20 && z[3] == 24);
}

int main(int argc, char **argv) {
  bool is_child = argc == 3 && strcmp(argv[1], "child") == 0;
  fa_blas_startup(argv);
  if (is_child)
    return (fa_blas_core_is_generic() ? 1 : 0) | (getenv("OPENBLAS_CORETYPE") ? 2 : 0) |
           (strcmp(argv[2], "two words") == 0 ? 0 : 8);
  printf("OpenBLAS core: %s\n", fa_blas_core());
  multiply();
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return check_done();
  CHECK(!fa_blas_core_is_generic());
  const int choice = child(argv[0], NULL, "keep"); /* the library's own; 1: it does not know this processor */
  CHECK((choice == 0 || choice == 1) && child(argv[0], NULL, NULL) == 2 * choice);
  int forced = child(argv[0], "PRESCOTT", NULL);
  CHECK(forced == 3); /* a core type in the environment is deliberate: it is kept, and nothing loops */
  /* The library's choice on a processor that it does not know, kept if the user says so. */
  setenv("TEST_BLAS_CORE", "Prescott", 1);
  CHECK(child(argv[0], NULL, NULL) == 3 && child(argv[0], NULL, "other") == 3);
  CHECK(child(argv[0], NULL, "keep") == 1);
  setenv("TEST_BLAS_CORE", "unknown", 1); /* the last of the names */
  CHECK(child(argv[0], NULL, "keep") == 1);
#endif
  return check_done();
}
