/* What the driver takes for its part in a call. */
#ifndef FA_TESTS_BENCH_HOST_DRIVER_H
#define FA_TESTS_BENCH_HOST_DRIVER_H

/* Prints microseconds of what a call asks of the driver, and of the smallest launch there is, which no call is faster
 * than: one block that writes two numbers. After bench_open. */
void bench_host_driver_print(void);

#endif
