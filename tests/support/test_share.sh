#!/usr/bin/env bash
# The shares of a list are the same in C, bash and Python, and N days in a row have each item once: test_share.sh TEST_SHARE
set -euo pipefail
here=$(dirname -- "${BASH_SOURCE[0]}")
. "$here/share.sh"
of_three_in_bash() { for i in {0..9}; do ! share_of_has 3 "$i" || printf '%d ' "$i"; done; }
in_bash() { for i in {0..9}; do ! share_has "$i" || printf '%d ' "$i"; done; }
neighbours() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 -c 'import share; print(*share.share_of_neighbours(list(range(10))), end=" ")'; }
in_python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 -c 'import share; print(*share.share(range(10)), end=" ")'; }

unset FA_TEST_SHARE FA_TEST_DAY
[ "$("$1")" = '0 1 2 3 4 5 6 7 8 9 ' ]
! command -v python3 >/dev/null || [ "$(neighbours)" = '0 1 2 3 4 5 6 7 8 9 ' ]
export FA_TEST_SHARE
for FA_TEST_SHARE in 1 2 3 4 7; do
  all='' beside=''
  for ((day = 20780; day < 20780 + FA_TEST_SHARE; ++day)); do
    export FA_TEST_DAY=$day
    chosen=$("$1")
    printf '1/%d, day %d: %s\n' "$FA_TEST_SHARE" "$day" "$chosen"
    [ "$chosen" = "$(in_bash)" ]
    ! command -v python3 >/dev/null || [ "$chosen" = "$(in_python)" ]
    all+=$chosen
    ! command -v python3 >/dev/null || beside+=$(neighbours)
  done
  [ "$(tr ' ' '\n' <<<"$all" | grep . | sort -n | paste -sd' ')" = '0 1 2 3 4 5 6 7 8 9' ]
  ! command -v python3 >/dev/null || [ "$(tr ' ' '\n' <<<"$beside" | grep . | sort -n | paste -sd' ')" = '0 1 2 3 4 5 6 7 8 9' ]
  all=''
  for ((day = 20780; day < 20780 + (FA_TEST_SHARE < 3 ? FA_TEST_SHARE : 3); ++day)); do
    export FA_TEST_DAY=$day
    chosen=$("$1" 3)
    [ "$chosen" = "$(of_three_in_bash)" ]
    all+=$chosen
  done
  [ "$(tr ' ' '\n' <<<"$all" | grep . | sort -n | paste -sd' ')" = '0 1 2 3 4 5 6 7 8 9' ]
  unset FA_TEST_DAY
  today=$("$1")
  [ "$today" = "$(in_bash)" ] || [ "$("$1")" = "$(in_bash)" ] # midnight may lie between two of them
done
