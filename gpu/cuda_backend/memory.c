#include "gpu/cuda_backend/memory.h"

#include "cases/tensors/guard.h"
#include "gpu/cuda_backend/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GROWTH: large enough for most cases, so that a lane allocates once. Pinning takes 0.6 ms a megabyte, and meanwhile all other
 * lanes wait. */
enum { NAN_BYTE = 0xff, ALIGNMENT = FA_BLOCK_ALIGNMENT, GROWTH = 32 << 20, PIN_GROWTH = 8 << 20 };
enum { LARGE = 256 << 20 }; /* a buffer for which it pays to pin as much as is kept */

static size_t round_up(size_t x, size_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

static size_t whole_bytes(const fa_buffer *b) {
  return b->bytes + 2 * FA_GUARD_BYTES;
}

/* ---- the arena ---- */

/* The arena is busy until a wait succeeds: memory that a copy uses must not be freed. */
static CUresult wait_for(const fa_cuda_driver *d, fa_cuda_arena *arena) {
  const CUresult code = d->cuStreamSynchronize(arena->stream);
  arena->busy = code != CUDA_SUCCESS;
  return code;
}

static CUresult settle(const fa_cuda_driver *d, fa_cuda_arena *arena) {
  return arena->busy ? wait_for(d, arena) : CUDA_SUCCESS;
}

static void unpin(const fa_cuda_driver *d, fa_cuda_pinned *p) {
  if (p->memory) d->cuMemFreeHost(p->memory);
  *p = (fa_cuda_pinned){0};
}

/* At least `bytes` of it, or NULL: copies then go without, which is not an error. */
static char *pin(const fa_cuda_driver *d, fa_cuda_pinned *p, size_t bytes) {
  if (bytes > FA_CUDA_STAGE_KEPT) return NULL;
  if (bytes <= p->bytes) return p->memory;
  void *memory = NULL;
  unpin(d, p);
  bytes = round_up(bytes, PIN_GROWTH);
  if (d->cuMemAllocHost(&memory, bytes) == CUDA_SUCCESS) *p = (fa_cuda_pinned){memory, bytes};
  return p->memory;
}

/* With room for the guards of scratch memory behind the tensors. */
char *fa_cuda_arena_block(const fa_cuda_driver *d, fa_cuda_arena *arena, int place, size_t bytes) {
  return settle(d, arena) == CUDA_SUCCESS ? pin(d, &arena->block[place], bytes + 2 * FA_GUARD_BYTES) : NULL;
}

static void drop_memory(const fa_cuda_driver *d, fa_cuda_arena *arena) {
  if (arena->base) d->cuMemFree(arena->base);
  arena->base = 0;
  arena->bytes = 0;
}

static void exchange(fa_cuda_arena *arena) {
  const CUdeviceptr base = arena->base;
  const size_t bytes = arena->bytes;
  arena->base = arena->idle_base;
  arena->bytes = arena->idle_bytes;
  arena->idle_base = base;
  arena->idle_bytes = bytes;
}

void fa_cuda_arena_free(const fa_cuda_driver *d, fa_cuda_arena *arena) {
  settle(d, arena);
  unpin(d, &arena->stage);
  for (int i = 0; i < FA_CUDA_BLOCKS; ++i) unpin(d, &arena->block[i]);
  drop_memory(d, arena);
  exchange(arena);
  drop_memory(d, arena);
}

/* Frees the old memory first: a set may need nearly all of the device's. */
static CUresult reserve(const fa_cuda_driver *d, fa_cuda_arena *arena, size_t bytes) {
  if ((bytes <= GROWTH) != (arena->bytes <= GROWTH)) exchange(arena);
  if (bytes <= arena->bytes) return CUDA_SUCCESS;
  drop_memory(d, arena);
  bytes = round_up(bytes, GROWTH);
  const CUresult code = d->cuMemAlloc(&arena->base, bytes);
  if (code == CUDA_SUCCESS)
    arena->bytes = bytes;
  else
    arena->base = 0;
  return code;
}

/* ---- to the device ---- */

static bool is_in_arena(const fa_buffer *b) {
  return b->base && !fa_buffer_is_virtual(b);
}

/* Sets the offset of each buffer in the arena in base[]; returns the arena's bytes. */
static size_t lay_out(const fa_tensors *host, size_t scratch_bytes, fa_cuda_tensors *out) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (!is_in_arena(&host->buffer[i])) continue;
    out->base[i] = round_up(out->bytes, ALIGNMENT);
    out->bytes = out->base[i] + whole_bytes(&host->buffer[i]);
  }
  out->scratch = round_up(out->bytes, ALIGNMENT);
  out->scratch_bytes = scratch_bytes;
  return scratch_bytes ? out->scratch + scratch_bytes + 2 * FA_GUARD_BYTES : out->bytes;
}

/* Size of the staging memory: the buffers, and both guards of scratch memory without the scratch between. */
static size_t copied_down(const fa_cuda_tensors *t) {
  return t->scratch_bytes ? t->scratch + 2 * FA_GUARD_BYTES : t->bytes;
}

/* The block in which the set has its buffers just as in the arena; NULL: none. base[]: offsets in the arena. */
static char *block_with(const fa_cuda_arena *arena, const fa_tensors *host, const fa_cuda_tensors *t) {
  for (int k = 0; k < FA_CUDA_BLOCKS; ++k) {
    const fa_cuda_pinned *b = &arena->block[k];
    bool same = t->bytes > 0 && b->memory && copied_down(t) <= b->bytes;
    for (int i = 0; i < FA_T_COUNT && same; ++i)
      same = !is_in_arena(&host->buffer[i]) || host->buffer[i].base == b->memory + t->base[i];
    if (same) return b->memory;
  }
  return NULL;
}

/* Copies all buffers at once, and overwrites what is between them. */
static CUresult copy_staged(const fa_cuda_driver *d, const fa_tensors *host, const fa_cuda_tensors *t) {
  size_t end = 0;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (!is_in_arena(&host->buffer[i])) continue;
    const size_t begin = t->base[i] - t->arena->base, bytes = whole_bytes(&host->buffer[i]);
    memset(t->stage + end, NAN_BYTE, begin - end);
    if (host->buffer[i].base != t->stage + begin) memcpy(t->stage + begin, host->buffer[i].base, bytes);
    end = begin + bytes;
  }
  return d->cuMemcpyHtoDAsync(t->arena->base, t->stage, t->bytes, t->arena->stream);
}

static CUresult copy_one(const fa_cuda_driver *d, CUdeviceptr to, const fa_buffer *b, fa_cuda_arena *arena) {
  if (whole_bytes(b) >= LARGE && pin(d, &arena->stage, FA_CUDA_STAGE_KEPT))
    return fa_cuda_copy_pieces(d, to, b->base, whole_bytes(b), &arena->stage, arena->stream);
  return fa_cuda_copy_up(d, to, b->base, whole_bytes(b), arena->stream);
}

static CUresult copy_each(const fa_cuda_driver *d, const fa_tensors *host, const fa_cuda_tensors *t) {
  CUresult code = CUDA_SUCCESS;
  for (int i = 0; i < FA_T_COUNT && code == CUDA_SUCCESS; ++i)
    if (is_in_arena(&host->buffer[i])) code = copy_one(d, t->base[i], &host->buffer[i], t->arena);
  return code;
}

/* The whole arena from there on becomes NaN: scratch memory, gaps, and whatever an earlier call left. */
static CUresult fill(const fa_cuda_driver *d, const fa_cuda_arena *arena, size_t from) {
  return d->cuMemsetD8Async(arena->base + from, NAN_BYTE, arena->bytes - from, arena->stream);
}

/* What is staged covers the gaps between buffers; the rest is filled behind the copy, with the kernels that follow: contexts
 * take turns on a device, and so a call waits for fewer of them. */
static CUresult up(const fa_cuda_driver *d, const fa_tensors *host, const fa_cuda_tensors *t) {
  const bool staged = t->stage && t->bytes > 0;
  CUresult code = staged ? copy_staged(d, host, t) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS && (!staged || t->bytes < t->arena->bytes))
    code = fill(d, t->arena, staged ? t->bytes : 0);
  return code == CUDA_SUCCESS && !staged ? copy_each(d, host, t) : code;
}

static CUresult arena_up(const fa_cuda_driver *d, const fa_tensors *host, size_t scratch_bytes,
                         fa_cuda_tensors *out) {
  fa_cuda_arena *arena = out->arena;
  const size_t needed = lay_out(host, scratch_bytes, out);
  if (needed == 0) return CUDA_SUCCESS;
  CUresult code = settle(d, arena); /* the device may still be reading what is about to be overwritten */
  if (code == CUDA_SUCCESS) code = reserve(d, arena, needed);
  if (code != CUDA_SUCCESS) {
    memset(out->base, 0, sizeof out->base);
    return code;
  }
  out->stage = block_with(arena, host, out);
  if (!out->stage) out->stage = pin(d, &arena->stage, copied_down(out));
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (is_in_arena(&host->buffer[i])) out->base[i] += arena->base;
  arena->busy = true;
  return up(d, host, out);
}

fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                             size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code, fa_error *err) {
  memset(out, 0, sizeof *out);
  memcpy(out->set.t, host->t, sizeof host->t);
  memcpy(out->set.owner, host->owner, sizeof host->owner);
  out->arena = arena;
  *code = arena_up(d, host, scratch_bytes, out);
  fa_status status =
      *code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, *code, "copying tensors to the device", err);
  for (int i = 0; status == FA_OK && i < FA_T_COUNT; ++i) {
    if (!host->buffer[i].base || is_in_arena(&host->buffer[i])) continue;
    status = fa_cuda_virtual_up(d, &host->buffer[i], arena->stream, &out->sparse[i], code, err);
    out->base[i] = out->sparse[i].base;
  }
  if (status != FA_OK) {
    fa_cuda_tensors_free(d, out);
    return status;
  }
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_tensor *t = &host->t[i];
    const int owner = host->owner[i];
    if (t->data) out->set.t[i].data = (char *)out->base[owner] + (t->data - host->buffer[owner].base);
  }
  return FA_OK;
}

void *fa_cuda_tensors_scratch(const fa_cuda_tensors *t) {
  return t->scratch_bytes ? (void *)(t->arena->base + t->scratch + FA_GUARD_BYTES) : NULL;
}

/* ---- to the host ---- */

/* The front guard of scratch memory follows the buffers. */
static CUresult begin_down(const fa_cuda_driver *d, const fa_cuda_tensors *t, char *guards) {
  const CUdeviceptr base = t->arena->base, front = base + t->scratch;
  const CUstream stream = t->arena->stream;
  const bool scratch = t->scratch_bytes > 0;
  CUresult code = CUDA_SUCCESS;
  if (t->stage)
    code = d->cuMemcpyDtoHAsync(t->stage, base, scratch ? t->scratch + FA_GUARD_BYTES : t->bytes, stream);
  else if (scratch)
    code = d->cuMemcpyDtoHAsync(guards, front, FA_GUARD_BYTES, stream);
  if (code == CUDA_SUCCESS && scratch)
    code = d->cuMemcpyDtoHAsync(guards + FA_GUARD_BYTES, front + FA_GUARD_BYTES + t->scratch_bytes,
                                FA_GUARD_BYTES, stream);
  return code;
}

static bool guards_intact(const char *guards, char *where, size_t where_size) {
  for (int back = 0; back < 2; ++back) {
    size_t changed = 0;
    for (size_t i = 0; i < FA_GUARD_BYTES; ++i)
      changed += (unsigned char)guards[back * FA_GUARD_BYTES + i] != NAN_BYTE;
    if (changed == 0) continue;
    snprintf(where, where_size, "%s guard of the workspace: %zu bytes changed", back ? "back" : "front",
             changed);
    return false;
  }
  return true;
}

static CUresult buffers_down(const fa_cuda_driver *d, const fa_cuda_tensors *t, fa_tensors *host) {
  CUresult code = CUDA_SUCCESS;
  for (int i = 0; code == CUDA_SUCCESS && i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &host->buffer[i];
    if (!is_in_arena(b)) continue;
    const char *staged = t->stage ? t->stage + (t->base[i] - t->arena->base) : NULL;
    if (staged && staged != b->base)
      memcpy(b->base, staged, whole_bytes(b));
    else if (!staged)
      code = fa_cuda_copy_down(d, b->base, t->base[i], whole_bytes(b), t->arena->stream);
  }
  return code;
}

/* Waits for kernels and copies. Afterwards the host has the arena's buffers, unless the scratch memory's
 * guards have changed. */
static fa_status arena_down(const fa_cuda_driver *d, const fa_cuda_tensors *t, const char *what,
                            fa_tensors *host, bool *intact, char *where, size_t where_size, CUresult *code,
                            fa_error *err) {
  const bool scratch = t->scratch_bytes > 0;
  char *own = scratch && !t->stage ? malloc(2 * FA_GUARD_BYTES) : NULL;
  char *guards = own || !t->stage ? own : t->stage + t->scratch;
  if (scratch && !guards) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *code = begin_down(d, t, guards);
  const CUresult ended = fa_cuda_tensors_wait(d, t);
  if (*code == CUDA_SUCCESS) *code = ended;
  if (*code == CUDA_SUCCESS && scratch) *intact = guards_intact(guards, where, where_size);
  free(own);
  if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, what, err);
  if (*intact) *code = buffers_down(d, t, host);
  return *code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, *code, "copying tensors back", err);
}

fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, const char *what,
                               fa_tensors *host, bool *intact, char *where, size_t where_size, CUresult *code,
                               fa_error *err) {
  *intact = true;
  fa_status status = arena_down(d, from, what, host, intact, where, where_size, code, err);
  if (status != FA_OK || !*intact) return status;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    bool kept = true;
    char beyond[128];
    if (!from->sparse[i].base) continue;
    status = fa_cuda_virtual_down(d, &from->sparse[i], &host->buffer[i], from->arena->stream, &kept, beyond,
                                  sizeof beyond, code, err);
    if (status != FA_OK) return status;
    if (!kept && *intact) snprintf(where, where_size, "%s: %s", fa_tensor_id_name((fa_tensor_id)i), beyond);
    *intact = *intact && kept;
  }
  return FA_OK;
}

CUresult fa_cuda_tensors_wait(const fa_cuda_driver *d, const fa_cuda_tensors *t) {
  return wait_for(d, t->arena);
}

void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t) {
  if (t->arena) settle(d, t->arena);
  for (int i = 0; i < FA_T_COUNT; ++i) fa_cuda_virtual_free(d, &t->sparse[i]);
  if (t->arena && t->arena->bytes > FA_CUDA_ARENA_KEPT) drop_memory(d, t->arena);
  memset(t->base, 0, sizeof t->base);
}
