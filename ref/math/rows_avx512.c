#define FA_ROWS_NAME fa_rows_avx512
#include "ref/math/rows_body.h"
