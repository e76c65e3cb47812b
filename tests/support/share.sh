# Long lists in shares (share.h says more).
# share_day: the day, whole days since 1970 where FA_TEST_DAY names no other
share_day() { echo "${FA_TEST_DAY:-$(($(date +%s) / 86400))}"; }
# share_shard: the share as fa-verify's --shard has it, I/N
share_shard() {
  local n=${FA_TEST_SHARE:-1} day
  day=$(share_day)
  [ "$n" -ge 1 ] || n=1
  echo "$(((n - day % n) % n))/$n"
}
# share_has I: whether item I of a list is in the share
share_has() {
  local shard
  shard=$(share_shard)
  [ $(($1 % ${shard#*/})) = "${shard%/*}" ]
}
# share_of_has MOST I: the same where a day tries one item in MOST, if shares are not larger
share_of_has() {
  local n=${FA_TEST_SHARE:-1}
  if [ "$n" -gt "$1" ]; then n=$1; fi
  FA_TEST_SHARE=$n share_has "$2"
}
