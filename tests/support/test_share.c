/* Prints which of ten items are in the share; test_share.sh compares it with what the other languages say. */
#include "tests/support/share.h"

#include <stdio.h>

int main(void) {
  for (int i = 0; i < 10; ++i)
    if (fa_share_has(i)) printf("%d ", i);
  return 0;
}
