/* The time of calls on the host. */
#ifndef FA_TESTS_BENCH_MEDIAN_H
#define FA_TESTS_BENCH_MEDIAN_H

/* Microseconds of a call of f(data): the median over batches of n calls, after some that are not counted. wait: called
 * behind each batch, outside of the time; NULL: nothing is. */
double bench_median_us(void (*f)(void *data), void *data, int n, void (*wait)(void));

#endif
