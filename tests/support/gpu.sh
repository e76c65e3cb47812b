# Scripts that need a GPU which fa-verify can use.
# why_no_gpu FA-VERIFY: why there is none; nothing if there is one
why_no_gpu() { "$1" list backends | grep -A1 '^cuda ' | sed -n 's/.*not usable: //p'; }
# skip_for WHY: ends the script as skipped, unless WHY is empty
skip_for() {
  [ -n "$1" ] || return 0
  echo "skipped: $1"
  exit 77
}
