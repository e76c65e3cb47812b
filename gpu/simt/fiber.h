/* Cooperative threads (fibers) inside one host thread: each is a saved stack pointer, and a switch takes a
 * few nanoseconds. AddressSanitizer is informed of every switch. */
#ifndef FA_GPU_SIMT_FIBER_H
#define FA_GPU_SIMT_FIBER_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fa_fiber {
  void *sp;          /* where it stopped; ucontext_t * in the portable version */
  const void *stack; /* lowest address, above the guard page; for the caller's own fiber set at the switch */
  size_t stack_bytes;
  void *fake_stack; /* AddressSanitizer's */
} fa_fiber;

/* Stacks for n fibers in one mapping, each above an unreadable page. */
typedef struct fa_fiber_stacks {
  char *base;
  size_t bytes, each;
  int n;
} fa_fiber_stacks;
fa_status fa_fiber_stacks_map(fa_fiber_stacks *s, int n, fa_error *err);
/* Releases them; the mapping may be kept for the next caller with the same n. */
void fa_fiber_stacks_unmap(fa_fiber_stacks *s);

/* Makes *f start at entry(), on stack i, at the next switch to it. entry must not return. Whatever ran on
 * that stack before is abandoned. */
void fa_fiber_prepare(fa_fiber *f, fa_fiber_stacks *s, int i, void (*entry)(void));
/* Saves the running context in *from and continues in *to. */
void fa_fiber_switch(fa_fiber *from, fa_fiber *to);
/* Must be the first call in entry(). */
void fa_fiber_entered(void);
void fa_fiber_free(fa_fiber *f);

#endif
