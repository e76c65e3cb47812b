/* A program with a test of its own that has a hole: nobody asks for a negative number. test_planted.py mutates it. */
static int clamp(int n, int most) {
  if (n < 0) n = 0;
  if (n > most) return most;
  return n;
}

int main(void) {
  return clamp(3, 7) == 3 && clamp(9, 7) == 7 && clamp(7, 7) == 7 ? 0 : 1;
}
