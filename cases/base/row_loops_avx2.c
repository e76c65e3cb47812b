#define FA_ROW_LOOPS_NAME fa_row_loops_avx2
#include "cases/base/row_loops_body.h"
