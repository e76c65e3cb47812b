#include "gpu/args/drop.h"

/* The offset inside a graph. PyTorch's are multiples of 4; this one shows in every number. */
enum { IN_GRAPH = 5 };

#define NOBODYS UINT64_C(0x7ff4dead7ff4dead)

fa_args_drop fa_args_drop_of(const fa_problem *p) {
  return (fa_args_drop){
      .seed = p->dropout.seed, .offset = p->dropout.offset - IN_GRAPH, .used = {NOBODYS, NOBODYS}};
}

fa_args_drop fa_args_drop_decoy(const fa_problem *p) {
  fa_args_drop d = fa_args_drop_of(p);
  d.seed ^= NOBODYS;
  d.offset ^= NOBODYS;
  return d;
}

void fa_args_drop_from(fa_args_drop *at, fa_attention *a) {
  a->dropout_seed = NOBODYS;
  a->dropout_offset = IN_GRAPH;
  a->dropout_seed_at = &at->seed;
  a->dropout_offset_at = &at->offset;
  a->dropout_used = at->used;
}

void fa_args_drop_as_used(fa_args_drop *at, fa_attention *a) {
  a->dropout_seed = NOBODYS;
  a->dropout_offset = 0;
  a->dropout_seed_at = &at->used[0];
  a->dropout_offset_at = &at->used[1];
  a->dropout_used = NULL;
}
