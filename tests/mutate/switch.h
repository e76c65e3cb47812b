/* Included before every mutated source: which mutant is in force, and which have been reached. */
#ifndef FA_TESTS_MUTATE_SWITCH_H
#define FA_TESTS_MUTATE_SWITCH_H

#ifdef __cplusplus
extern "C" {
#endif

#define FA_MUTANTS_MAX 65536

extern int fa_mutant;                    /* 0: none */
extern unsigned char *fa_mutant_reached; /* by number: the place of the mutant was executed */

/* True if mutant n is in force. */
static inline int fa_m(int n) {
  fa_mutant_reached[n] = 1;
  return __builtin_expect(n == fa_mutant, 0);
}

#ifdef __cplusplus
}
#include <type_traits>
namespace fa_mutate {
template <class A, class B> struct one_type;
template <class A> struct one_type<A, A> { static constexpr int ok = 1; };
} // namespace fa_mutate
/* Does not compile where the two have different types. */
#define FA_ONE_TYPE(...) fa_mutate_one_type_of(__VA_ARGS__)
#define fa_mutate_one_type_of(a, b)                                                                          \
  (void)fa_mutate::one_type<typename std::decay<decltype(a)>::type,                                          \
                            typename std::decay<decltype(b)>::type>::ok
/* A value, in the type of an expression that is not evaluated. */
#define FA_AS_TYPE_OF(like, ...) static_cast<typename std::decay<decltype(like)>::type>(__VA_ARGS__)
#else
#define FA_ONE_TYPE(a, b)                                                                                    \
  (void)sizeof(char[__builtin_types_compatible_p(__typeof__(a), __typeof__(b)) ? 1 : -1])
#define FA_AS_TYPE_OF(like, ...) ((__typeof__(like))(__VA_ARGS__))
#endif

#endif
