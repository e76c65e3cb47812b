# Shared by the tests of the simulated kernel; sourced from the top of the source tree by scripts whose arguments are FA-VERIFY SIMULATED.so.
# They go on in a folder of their own.
verify=$(realpath "$1") plugin=$(realpath "$2") root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
source "$root/tests/support/cli_check.sh"

outputs='"o", "lse"' # which it says it returns
# What the harness's conventions are: whoever says nothing of conventions is asked by a probe.
conventions='"lse": {"base": "e", "scaled": true, "empty": "as_case", "alibi": "distance"}, "empty_o": "0"'
ask() { # HELLO SETTINGS ARGUMENTS...: it says that of itself, and computes as the settings say
  local hello=$1 settings=$2
  shift 2
  FA_SIMULATED_HELLO=$hello FA_SIMULATED=$settings run "$verify" "$@" --backend "plugin:$plugin" --no-progress --color never
}
judge() { # ARITHMETIC-MEMBERS SETTINGS ARGUMENTS...
  local arithmetic=$1
  shift
  ask "\"arithmetic\": {$arithmetic}, \"outputs\": [$outputs], $conventions" "$@"
}
