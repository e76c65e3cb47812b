/* FA_SANITIZED: 1 in a build with AddressSanitizer, else 0; gcc and clang say it differently. */
#ifndef FA_TESTS_SUPPORT_SANITIZED_H
#define FA_TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define FA_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FA_SANITIZED 1
#endif
#endif
#ifndef FA_SANITIZED
#define FA_SANITIZED 0
#endif

#endif
