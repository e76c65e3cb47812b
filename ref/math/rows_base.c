#define FA_ROWS_NAME fa_rows_base
#include "ref/math/rows_body.h"
