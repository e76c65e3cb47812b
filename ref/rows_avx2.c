#define FA_ROWS_NAME fa_rows_avx2
#include "ref/rows_body.h"
