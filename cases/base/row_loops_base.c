#define FA_ROW_LOOPS_NAME fa_row_loops_base
#include "cases/base/row_loops_body.h"
