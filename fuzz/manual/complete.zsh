
# Behind what was made from the program's tables: _fa_verify_specs COMMAND sets specs, what _arguments takes;
# _fa_verify_valued is every option with a value.

# The names of the case files that --cases knows without a path, and case files.
_fa_verify_cases() {
  local program=${${(Q)_fa_verify_program}:c:A} folder
  local -a names
  for folder in ${FA_CASES_DIR:+$FA_CASES_DIR} ${program:h}/../share/fa-verify/cases ${program:h}/../cases; do
    names+=($folder/*.json(N:t:r))
  done
  names=(${names:#schema})
  _alternative "names:case file:compadd -a names" 'files:case file:_files -g "*.json"'
}

_fa_verify_backends() {
  local -a names
  if compset -P 'mutant:'; then
    names=(${${(f)"$(${(Q)_fa_verify_program} list mutants 2>/dev/null)"}%% *})
    _wanted mutants expl 'planted bug' compadd -S '' -a names
  elif compset -P 'plugin:'; then
    _files -g '*.so'
  else
    _fa_verify_backend_names
  fi
}

# WORD...: one of these, or a file.
_fa_verify_json() {
  _alternative ${1:+"words:word:($*)"} 'files:file:_files -g "*.json"'
}

_fa-verify() {
  local _fa_verify_program=$words[1] command= option= many= word
  local -a specs
  integer i at=0 from=0
  # The command is the first word that is no option and no option's value; from: where an option stands whose value is
  # being typed.
  for ((i = 2; i < CURRENT; ++i)); do
    word=$words[i]
    if [[ -n $option && -z $many ]]; then
      option=
    elif [[ $word == -?* ]]; then
      option= many= from=i
      (( ${_fa_verify_valued[(Ie)$word]} )) && option=$word
      [[ ${word%%=*} == --cases ]] && option=--cases many=1
    elif [[ -z $many && $at -eq 0 ]]; then
      command=$word at=i
    fi
  done
  # _arguments would take an option behind --cases for one more value.
  if [[ -n $many && $words[CURRENT] == -* ]]; then
    words[from,CURRENT-1]=()
    CURRENT=from option=
  fi
  # It need not know options that belong to a command which is still to come.
  if (( at )); then
    words[at]=()
    (( --CURRENT ))
  elif [[ -z $option ]]; then
    words[2,CURRENT-1]=()
    CURRENT=2
  fi
  _fa_verify_specs ${command:-run}
  [[ -z $command ]] && specs+=('1: :_fa_verify_commands')
  _arguments -s -S : $specs
}

if [[ $funcstack[1] == _fa-verify ]]; then
  _fa-verify "$@"
else
  compdef _fa-verify fa-verify
fi
