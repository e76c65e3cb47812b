/* FA_MUTANT: the number of the mutant in force. FA_MUTANT_REACHED: a file of FA_MUTANTS_MAX bytes into which the numbers
 * of the mutants that were reached are marked; several processes may share it. */
#include "tests/mutate/switch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char unwatched[FA_MUTANTS_MAX];

int fa_mutant;
unsigned char *fa_mutant_reached = unwatched;

__attribute__((constructor)) static void read_environment(void) {
  const char *number = getenv("FA_MUTANT"), *path = getenv("FA_MUTANT_REACHED");
  if (number) fa_mutant = atoi(number);
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, FA_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) fa_mutant_reached = map;
  close(file);
}
