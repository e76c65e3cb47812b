/* Fibers: stacks, and the switch in assembly (x86-64, AArch64) or with ucontext. */
#include "gpu/simt/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FA_ASAN 1
#endif
#endif

#ifdef FA_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)512 << 10) /* red zones make frames several times larger */
#else
#define STACK_BYTES ((size_t)128 << 10)
#endif

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(FA_FIBER_UCONTEXT)
#define FA_FIBER_ASM 1
#else
#include <ucontext.h>
#endif

/* Creating a mapping with its guard pages takes a millisecond, as much as a small launch, so a few are
 * kept. */
enum { MAX_KEPT = 64 };
static struct {
  pthread_mutex_t lock;
  fa_fiber_stacks v[MAX_KEPT];
  int n;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool take_kept(fa_fiber_stacks *s, int n) {
  bool found = false;
  pthread_mutex_lock(&kept.lock);
  for (int i = kept.n - 1; i >= 0 && !found; --i) {
    if (kept.v[i].n != n) continue;
    *s = kept.v[i];
    kept.v[i] = kept.v[--kept.n];
    found = true;
  }
  pthread_mutex_unlock(&kept.lock);
  return found;
}

static bool keep(const fa_fiber_stacks *s) {
  pthread_mutex_lock(&kept.lock);
  const bool room = kept.n < MAX_KEPT;
  if (room) kept.v[kept.n++] = *s;
  pthread_mutex_unlock(&kept.lock);
  return room;
}

fa_status fa_fiber_stacks_map(fa_fiber_stacks *s, int n, fa_error *err) {
  if (take_kept(s, n)) return FA_OK;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  s->each = STACK_BYTES + page;
  s->n = n;
  s->bytes = s->each * (size_t)n;
  s->base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (s->base == MAP_FAILED) {
    s->base = NULL;
    return fa_fail(err, FA_ERR_MEMORY, "stacks of %d fibers: %s", n, strerror(errno));
  }
  for (int i = 0; i < n; ++i)
    if (mprotect(s->base + s->each * (size_t)i, page, PROT_NONE) != 0) {
      const int why = errno;
      munmap(s->base, s->bytes);
      s->base = NULL;
      return fa_fail(err, FA_ERR_MEMORY, "guard pages of %d fibers: %s", n, strerror(why));
    }
  return FA_OK;
}

void fa_fiber_stacks_unmap(fa_fiber_stacks *s) {
  if (!s->base) return;
#ifdef FA_ASAN
  __asan_unpoison_memory_region(s->base, s->bytes); /* abandoned frames left red zones in the shadow memory */
#endif
  if (!keep(s)) munmap(s->base, s->bytes);
  s->base = NULL;
}

#if FA_FIBER_ASM

/* Pushes the registers that the ABI says a call preserves, swaps stack pointers, pops. The ABI preserves the
 * floating-point control words too, but nothing here changes them. */
#ifdef FA_ASAN
#define SWITCH "fa_fiber_swap"
void fa_fiber_swap(fa_fiber *from, fa_fiber *to);
#else
#define SWITCH "fa_fiber_switch" /* called directly: no further frame on any stack */
#endif
_Static_assert(offsetof(fa_fiber, sp) == 0, "what the assembly below takes it for");
#if defined(__x86_64__)
#define N_SAVED 6
__asm__(".text\n.p2align 4\n.globl " SWITCH "\n.hidden " SWITCH "\n.type " SWITCH ",@function\n" SWITCH ":\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq (%rsi), %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size " SWITCH ", .-" SWITCH "\n");
#else
#define N_SAVED 20
__asm__(".text\n.p2align 4\n.globl " SWITCH "\n.hidden " SWITCH "\n.type " SWITCH ",%function\n" SWITCH ":\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  ldr x9, [x1]\n  mov sp, x9\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n"
        ".size " SWITCH ", .-" SWITCH "\n");
#endif

void fa_fiber_prepare(fa_fiber *f, fa_fiber_stacks *s, int i, void (*entry)(void)) {
  char *low = s->base + s->each * (size_t)i + (s->each - STACK_BYTES);
  f->stack = low;
  f->stack_bytes = STACK_BYTES;
  f->fake_stack = NULL;
#ifdef FA_ASAN
  __asan_unpoison_memory_region(low, STACK_BYTES);
#endif
  /* Stacks are a multiple of the page size apart: without this shift the hot lines of all stacks would share
   * a cache set. */
  uintptr_t top = ((uintptr_t)(low + STACK_BYTES) - (uintptr_t)i % 32 * 128) & ~(uintptr_t)63;
  void **sp = (void **)top;
#if defined(__x86_64__)
  *--sp = NULL; /* the return address that entry() must not use; entry sees the stack as after a call */
  *--sp = (void *)entry;
  for (int r = 0; r < N_SAVED; ++r) *--sp = NULL;
#else
  sp -= N_SAVED;
  memset(sp, 0, N_SAVED * sizeof *sp);
  sp[11] = (void *)entry; /* x30 */
#endif
  f->sp = sp;
}

void fa_fiber_free(fa_fiber *f) {
  f->sp = NULL;
}

#define RAW_SWAP(from, to) fa_fiber_swap(from, to)

#else /* ucontext */

void fa_fiber_prepare(fa_fiber *f, fa_fiber_stacks *s, int i, void (*entry)(void)) {
  char *low = s->base + s->each * (size_t)i + (s->each - STACK_BYTES);
  if (!f->sp) f->sp = malloc(sizeof(ucontext_t));
  FA_ASSERT(f->sp);
  f->stack = low;
  f->stack_bytes = STACK_BYTES;
  f->fake_stack = NULL;
#ifdef FA_ASAN
  __asan_unpoison_memory_region(low, STACK_BYTES);
#endif
  ucontext_t *u = f->sp;
  FA_ASSERT(getcontext(u) == 0);
  u->uc_stack.ss_sp = low;
  u->uc_stack.ss_size = STACK_BYTES;
  u->uc_link = NULL;
  makecontext(u, entry, 0);
}

void fa_fiber_free(fa_fiber *f) {
  free(f->sp);
  f->sp = NULL;
}

static void raw_swap(fa_fiber *from, fa_fiber *to) {
  if (!from->sp) from->sp = malloc(sizeof(ucontext_t));
  FA_ASSERT(from->sp && swapcontext(from->sp, to->sp) == 0);
}
#define RAW_SWAP(from, to) raw_swap(from, to)

#endif

#ifdef FA_ASAN
/* The fiber that left last on this host thread: the arriving side reports the stack bounds of the leaving
 * one. */
static __thread fa_fiber *leaving;

void fa_fiber_entered(void) {
  __sanitizer_finish_switch_fiber(NULL, &leaving->stack, &leaving->stack_bytes);
}
__attribute__((noinline)) void fa_fiber_switch(fa_fiber *from, fa_fiber *to) {
  leaving = from;
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
  RAW_SWAP(from, to);
  fa_fiber *came_from = leaving;
  __sanitizer_finish_switch_fiber(from->fake_stack, &came_from->stack, &came_from->stack_bytes);
}
#else
void fa_fiber_entered(void) {}
#if !FA_FIBER_ASM
void fa_fiber_switch(fa_fiber *from, fa_fiber *to) {
  RAW_SWAP(from, to);
}
#endif
#endif
