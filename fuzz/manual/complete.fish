# fish completion of fa-verify. Behind these functions: a line for each command, option and word, made from the program's
# tables, and __fa_verify_valued, every option with a value.

# Three lines: the command, which is the first word that is no option and no option's value; how many such words there
# are; the option whose value comes next.
function __fa_verify_read
    set -l command ''
    set -l n 0
    set -l option ''
    set -l many
    for word in (commandline -opc)[2..-1]
        if test -n "$option" -a -z "$many"
            set option ''
        else if string match -qr -- '^-.' $word
            set option ''
            set many
            if string match -qr -- '^--cases(=|$)' $word
                set option --cases
                set many 1
            else if contains -- $word $__fa_verify_valued
                set option $word
            end
        else if test -z "$many"
            test $n -eq 0; and set command $word
            set n (math $n + 1)
        end
    end
    printf '%s\n' $command $n $option
end

# True if one of these is the command, which is run where there is none.
function __fa_verify_is
    set -l command (__fa_verify_read)[1]
    test -n "$command"; or set command run
    contains -- $command $argv
end

# True where the command itself comes.
function __fa_verify_first
    set -l read (__fa_verify_read)
    test $read[2] -eq 0 -a -z "$read[3]"
end

# COMMAND N: true where the N-th word behind it comes; with "more" also behind that one.
function __fa_verify_place
    set -l read (__fa_verify_read)
    test "$read[1]" = $argv[1] -a -z "$read[3]"; or return
    test $read[2] -eq $argv[2]; and return
    test "$argv[3]" = more -a $read[2] -gt $argv[2]
end

# True where another case file may come.
function __fa_verify_more_cases
    test (__fa_verify_read)[3] = --cases
end

# Files that end so, and folders.
function __fa_verify_files
    __fish_complete_suffix $argv[1] | string match -r -- '^[^\t]*(?:/|'(string escape --style=regex -- $argv[1])')(?:\t.*)?$'
end

# The case files that --cases knows without a path, and others.
function __fa_verify_cases
    set -l program (command -s -- (commandline -opc)[1]); and set program (realpath -- $program)
    set -l folder (dirname -- "$program")
    for file in $FA_CASES_DIR/*.json $folder/../share/fa-verify/cases/*.json $folder/../cases/*.json
        string match -q '*/schema.json' $file; or basename -- $file .json
    end
    __fa_verify_files .json
end

function __fa_verify_mutants
    set -l program (commandline -opc)[1]
    for line in ($program list mutants 2>/dev/null)
        echo mutant:(string split -m1 ' ' -- $line)[1]
    end
end

complete -c fa-verify -f
complete -c fa-verify -n __fa_verify_more_cases -a '(__fa_verify_cases)'
