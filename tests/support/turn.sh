#!/usr/bin/env bash
# A test that takes turns: turn.sh NUMBER/PERIOD BY COMMAND [ARGUMENT...]
# In shares (FA_TEST_SHARE; share.h says more) it runs on one day in PERIOD, on which the day's number divided by PERIOD leaves NUMBER, and
# is skipped on the others. Its lists count turns instead of days then, and their shares are BY times as large: 1, or PERIOD, with which
# they are through after as many days as without turns. Without FA_TEST_SHARE it just runs.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/share.sh"
turn=$1 by=$2
shift 2
number=${turn%/*} period=${turn#*/}
day=$(share_day)
if [ "${FA_TEST_SHARE:-1}" -gt 1 ]; then
  if [ $((day % period)) != "$number" ]; then
    echo "skipped: its turn is $number of $period days, and day $day has turn $((day % period))"
    exit 77
  fi
  export FA_TEST_DAY=$((day / period)) FA_TEST_SHARE=$(((FA_TEST_SHARE + by - 1) / by))
fi
exec "$@"
