/* Prints which of ten items are in the share, of at most so many if a number is given; test_share.sh compares it with what the other
 * languages say. */
#include "tests/support/share.h"

#include <stdio.h>

int main(int argc, char **argv) {
  for (int i = 0; i < 10; ++i)
    if (argc > 1 ? fa_share_of_has(atoi(argv[1]), i) : fa_share_has(i)) printf("%d ", i);
  return 0;
}
