/* Not compiled into anything: what test_operators.py mutates. */
static int limit(int n, int most) {
  if (n < most && n != 0) n += 2;
  for (int i = 0; i < n; ++i) {
    if (i == 3) continue;
    tell(i, n);
  }
  sync_block();
  return n > most ? most : min_int(n, 7);
}

template <int N> static long wide(int a, int b) {
  constexpr int TWICE = 2 * N;
  if constexpr (N > 4) return static_cast<long>(a) * b;
  static const int table[3] = {1, 2, 3};
  return a % b | table[TWICE - 1];
}
