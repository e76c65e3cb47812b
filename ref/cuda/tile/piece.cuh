/* Part of product.cuh, for a device: how a tile's operands come into shared memory, by the 256 threads of a block. A piece is
 * some elements along k of all of an operand's rows; it is copied while those before it are multiplied (cp.async). What is
 * along k in memory is known when this is compiled. Every instruction here is one less for the matrix units. */
#ifndef FA_REF_CUDA_TILE_PIECE_CUH
#define FA_REF_CUDA_TILE_PIECE_CUH

enum { TILE_THREADS = 256 };

/* Elements along k of a piece, and pieces that are there at once: the one that is multiplied, and what is under way. All of two
 * operands have room in 48 KiB. */
template <typename T> struct fa_judge_piece {
  enum { K = sizeof(T) == 8 ? 8 : 16, STAGES = sizeof(T) == 8 ? 3 : 2 };
};

/* One operand: SIDE along i, pieces along k. Neighbours in the device's memory are neighbours in shared memory, so that 16
 * bytes can be copied at once; the others are APART, so that what lanes read together is in different banks. */
template <typename T, int SIDE, bool ALONG_K> struct fa_judge_side {
  enum {
    K = fa_judge_piece<T>::K,
    WIDE = 16 / sizeof(T), /* elements that are copied at once, where their addresses are multiples of 16 */
    PAD = sizeof(T) == 8 ? (ALONG_K ? 0 : 4)
          : ALONG_K      ? 4
                         : 8,
    APART = (ALONG_K ? (int)K : SIDE) + PAD,
    SIZE = APART * (ALONG_K ? SIDE : (int)K)
  };
  /* Rows are not far enough apart then: of every other two the halves along k are exchanged. */
  static __device__ __forceinline__ int place(int i, int k) {
    return ALONG_K ? i * APART + (sizeof(T) == 8 ? k ^ (i & 2) * 2 : k) : k * APART + i;
  }
  const T *from;    /* the thread's first element of the next piece */
  int64_t apart;    /* in memory, what is APART in shared memory */
  uint32_t to;      /* its place in a piece, in bytes */
  uint32_t valid;   /* ALONG_K: a bit for each of its rows; else how many of its neighbours there are */
  bool wide, whole; /* copied WIDE at once; and no row is missing */
};

/* What a thread copies of a piece, N elements at once: threads lie ACROSS beside each other in memory, its copies are DOWN from
 * each other. */
template <int N, typename T, int SIDE, bool ALONG_K> struct fa_judge_share {
  enum {
    K = fa_judge_piece<T>::K,
    ACROSS = (ALONG_K ? (int)K : SIDE) / N,
    DOWN = TILE_THREADS / ACROSS,
    COUNT = SIDE * K / N / TILE_THREADS,
    STEP = DOWN * fa_judge_side<T, SIDE, ALONG_K>::APART * sizeof(T)
  };
  static __device__ __forceinline__ int across() { return (int)threadIdx.x % ACROSS * N; }
  static __device__ __forceinline__ int down() { return (int)threadIdx.x / ACROSS; }
};

/* N elements of T; _some: n of them, and zeros for the others. */
template <int N, typename T> FA_DEVICE void copy_async(uint32_t to, const T *from) {
  static_assert(N * sizeof(T) == 16, "smaller ones are copied by copy_some_async");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
template <int N, typename T> FA_DEVICE void copy_some_async(uint32_t to, const T *from, int n) {
  const int bytes = n * (int)sizeof(T);
  if (N * sizeof(T) == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(bytes),
                 "n"(N * sizeof(T))
                 : "memory");
}
FA_DEVICE void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int LATER> FA_DEVICE void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

template <int N, typename T, int SIDE, bool ALONG_K>
FA_DEVICE void take_share(fa_judge_side<T, SIDE, ALONG_K> *s, const T *from, int first_i, int m) {
  typedef fa_judge_share<N, T, SIDE, ALONG_K> share;
  const int across = share::across(), down = share::down();
  s->from = from + across + down * s->apart;
  s->to = (uint32_t)(s->place(ALONG_K ? down : across, ALONG_K ? across : down) * (int)sizeof(T));
  s->valid = ALONG_K || across < first_i || across >= m ? 0u : m - across < N ? (uint32_t)(m - across) : N;
  FA_UNROLL
  for (int u = 0; ALONG_K && u < share::COUNT; ++u) {
    const int row = down + u * share::DOWN;
    s->valid |= (uint32_t)(row >= first_i && row < m) << u;
  }
}

/* Rows first_i .. m - 1 of an operand, from its element `first` along k on. */
template <typename T, int SIDE, bool ALONG_K>
FA_DEVICE void begin_side(fa_judge_side<T, SIDE, ALONG_K> *s, const T *from, int64_t by_i, int64_t by_k,
                          int first_i, int m, int64_t first) {
  enum { WIDE = fa_judge_side<T, SIDE, ALONG_K>::WIDE };
  s->apart = ALONG_K ? by_i : by_k;
  from += first * by_k;
  s->wide = (uintptr_t)from % 16 == 0 && s->apart % WIDE == 0 && (ALONG_K || first_i % WIDE == 0);
  s->whole = s->wide && first_i == 0 && m == SIDE;
  if (s->wide)
    take_share<WIDE>(s, from, first_i, m);
  else
    take_share<1>(s, from, first_i, m);
}

template <int N, typename T, int SIDE, bool ALONG_K>
FA_DEVICE void copy_some(const fa_judge_side<T, SIDE, ALONG_K> *s, uint32_t to, int left) {
  typedef fa_judge_share<N, T, SIDE, ALONG_K> share;
  FA_UNROLL
  for (int u = 0; u < share::COUNT; ++u) {
    const int k = ALONG_K ? share::across() : share::down() + u * share::DOWN, rest = left - k;
    const int there = rest <= 0              ? 0
                      : !ALONG_K             ? (int)s->valid
                      : !(s->valid >> u & 1) ? 0
                      : rest < N             ? rest
                                             : N;
    copy_some_async<N>(to + u * share::STEP, s->from + u * share::DOWN * s->apart, there);
  }
}

/* Begins to copy the next piece; left: elements along k from its first on. */
template <typename T, int SIDE, bool ALONG_K>
FA_DEVICE void copy_piece(fa_judge_side<T, SIDE, ALONG_K> *s, T *piece, int left) {
  enum { WIDE = fa_judge_side<T, SIDE, ALONG_K>::WIDE, K = fa_judge_piece<T>::K };
  typedef fa_judge_share<WIDE, T, SIDE, ALONG_K> share;
  const uint32_t to = (uint32_t)__cvta_generic_to_shared(piece) + s->to;
  if (s->whole && left >= K) {
    FA_UNROLL
    for (int u = 0; u < share::COUNT; ++u)
      copy_async<WIDE>(to + u * share::STEP, s->from + u * share::DOWN * s->apart);
  } else if (s->wide)
    copy_some<WIDE>(s, to, left);
  else
    copy_some<1>(s, to, left);
  s->from += ALONG_K ? (int64_t)K : K * s->apart;
}

#endif
