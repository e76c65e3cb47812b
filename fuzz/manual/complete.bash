# _fa_verify_options COMMAND, _fa_verify_value OPTION and _fa_verify_place COMMAND N, above, are made from the program's
# tables. They set options; kind and choices of an option's value (kind is empty where it takes none) and of a command's
# N-th word.

# Sets words: the line up to the cursor. Bash splits words at : and = too; here they are put together again.
_fa_verify_words() {
  local rest=${COMP_LINE:0:COMP_POINT} blank word i
  words=()
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    blank=${rest%%[![:blank:]]*}
    rest=${rest#"$blank"}
    word=${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && word=$rest
    rest=${rest#"$word"}
    if [[ $i -gt 0 && -z $blank ]]; then words[-1]+=$word; else words+=("$word"); fi
  done
}

# Reads the words before the cursor. Sets command, place (the number of its next word), option (whose value comes next),
# and many if that option takes any number of values.
_fa_verify_read() {
  local word i
  for ((i = 1; i < ${#words[@]} - 1; ++i)); do
    word=${words[i]}
    if [[ -z $over && -n $option && -z $many ]]; then
      option=
    elif [[ -z $over && $word == -- ]]; then
      over=1 option= many=
    elif [[ -z $over && $word == -?* ]]; then
      kind= option= many=
      _fa_verify_value "${word%%=*}"
      [[ -n $kind && ($word != *=* || $kind == cases) ]] && option=${word%%=*}
      [[ $kind == cases ]] && many=1
    elif [[ -n $many ]]; then
      :
    elif [[ -z $command ]]; then
      command=$word
    else
      place=$((place + 1))
    fi
  done
}

# The names of the case files that --cases knows without a path.
_fa_verify_cases() {
  local program folder file
  program=$(type -P -- "${words[0]/#\~/$HOME}") || return
  program=$(readlink -f -- "$program") || return
  for folder in ${FA_CASES_DIR:+"$FA_CASES_DIR"} "${program%/*}/../share/fa-verify/cases" "${program%/*}/../cases"; do
    for file in "$folder"/*.json; do
      file=${file##*/}
      [[ $file != '*.json' && $file != schema.json ]] && printf '%s\n' "${file%.json}"
    done
  done
}

_fa_verify_mutants() {
  local name rest
  "${words[0]/#\~/$HOME}" list mutants 2>/dev/null | while read -r name rest; do printf 'mutant:%s\n' "$name"; done
}

_fa_verify_files() { # SUFFIX, or nothing: files that end so, and folders
  compgen -f ${1:+-X "!*$1"} -- "$cur"
  compgen -d -- "$cur"
}

# Prints what may stand at the cursor, by kind and choices.
_fa_verify_candidates() {
  [[ -n $choices ]] && compgen -W "$choices" -- "$cur"
  case $kind:$cur in
  cases:*)
    compgen -W "$(_fa_verify_cases)" -- "$cur"
    _fa_verify_files .json
    ;;
  json:* | safetensors:*) _fa_verify_files ".$kind" ;;
  file:*) _fa_verify_files ;;
  folder:*) compgen -d -- "$cur" ;;
  backend:mutant:*) compgen -W "$(_fa_verify_mutants)" -- "$cur" ;;
  backend:plugin:*)
    cur=${cur#plugin:}
    _fa_verify_files .so | sed 's/^/plugin:/'
    ;;
  esac
}

# Bash replaces only what stands behind the last : or = of the line, if it splits words there.
_fa_verify_reply() { # OPTION=, or nothing
  mapfile -t COMPREPLY < <(_fa_verify_candidates | sort -u)
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${cur%:*}:"}")
  elif [[ $COMP_WORDBREAKS != *=* ]]; then
    COMPREPLY=("${COMPREPLY[@]/#/$1}")
  fi
}

_fa_verify() {
  local -a words
  local cur command= place=1 option= many= over= kind= choices= options= before=
  _fa_verify_words
  cur=${words[-1]}
  _fa_verify_read
  kind=
  if [[ -n $option && ! (-n $many && $cur == -?*) ]]; then
    _fa_verify_value "$option"
  elif [[ -z $over && $cur == --*=* ]]; then
    _fa_verify_value "${cur%%=*}"
    before=${cur%%=*}= cur=${cur#*=}
  elif [[ -z $over && $cur == -* ]]; then
    _fa_verify_options "${command:-run}"
    choices=$options
  elif [[ -z $command ]]; then
    choices=$_fa_verify_commands
  else
    _fa_verify_place "$command" "$place"
  fi
  case $kind in
  cases | json | safetensors | file | folder) compopt -o filenames 2>/dev/null ;; # quotes them; a folder ends in /
  backend) compopt -o nospace 2>/dev/null ;;
  esac
  _fa_verify_reply "$before"
}
complete -F _fa_verify fa-verify
