/* Cooperative threads inside one host thread: a saved stack pointer each, and a switch of a few
 * nanoseconds. AddressSanitizer is told about every switch. */
#ifndef FA_GPU_SIMT_FIBER_H
#define FA_GPU_SIMT_FIBER_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fa_fiber {
  void *sp; /* where it stopped; ucontext_t * in the portable version */
  const void
      *stack; /* lowest address, above the guard page; for the caller's own fiber learnt at the switch */
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
/* Gives them back; the mapping may be kept for the next that wants as many. */
void fa_fiber_stacks_unmap(fa_fiber_stacks *s);

/* Makes *f begin at entry(), on stack i, at the next switch to it. entry must not return. Whatever ran there
 * before is forgotten. */
void fa_fiber_prepare(fa_fiber *f, fa_fiber_stacks *s, int i, void (*entry)(void));
/* Saves the running context in *from and goes on in *to. */
void fa_fiber_switch(fa_fiber *from, fa_fiber *to);
/* To be called first thing in entry(). */
void fa_fiber_entered(void);
void fa_fiber_free(fa_fiber *f);

#endif
