/* What a child of mutate_serve tells about one case, and what its parent makes of its end. */
#ifndef FA_TESTS_MUTATE_ANSWER_H
#define FA_TESTS_MUTATE_ANSWER_H

#include "report/result.h"

#include <sys/types.h>

enum { IMAGE_CHARS = 100 };

/* SAME: it left what the program as it is leaves. WASTE: and worked more or less. */
typedef enum how { JUDGED, SAME, WASTE } how;

typedef struct answer {
  fa_state state;
  how how;
  double seconds; /* of the processor */
  char image[IMAGE_CHARS], kernels[200], reason[200];
  char judge[FA_LEFT_TEXT]; /* the GPU's: PASS, or why it is the CPU's word; "": it was not asked */
} answer;

/* Waits for the child's end. One that had no answer is a CRASH, or a HANG if its `seconds` of the processor or a time
 * that no machine is too busy for were over. */
void answer_wait(pid_t child, int from, double seconds, answer *a);
/* All fields but the last, with tabs after them. */
void answer_print(const answer *a);

#endif
