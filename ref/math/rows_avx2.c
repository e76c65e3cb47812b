#define FA_ROWS_NAME fa_rows_avx2
#include "ref/math/rows_body.h"
