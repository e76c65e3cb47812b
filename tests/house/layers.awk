# Checks includes against layers.txt. Input: that file, then lines "file:included", or "file:" for a file alone.
# Prints a line for everything that is wrong; with -v print_rows=1 instead "folder item..." for each row.

function folder_of(path) { sub(/\/?[^\/]*$/, "", path); return path }

# The items of a row or a set, sets written out.
function expand(text,    n, i, word, out) {
  n = split(text, word, " ")
  for (i = 1; i <= n; ++i) {
    if (word[i] !~ /^\{.*\}$/) out = out " " word[i]
    else if (substr(word[i], 2, length(word[i]) - 2) in set) out = out " " set[substr(word[i], 2, length(word[i]) - 2)]
    else print "layers: " word[i] " is no set of the lines above"
  }
  return out
}

function allow(folder, text,    n, i, word) {
  n = split(expand(text), word, " ")
  for (i = 1; i <= n; ++i) {
    if (!(word[i] in row) && !(word[i] ~ /\.h$/ && folder_of(word[i]) in row))
      print "layers: " folder " may include " word[i] ", which is no row above it"
    may[folder, word[i]] = 1
  }
}

FNR == NR && (/^#/ || NF == 0) { next }
FNR == NR && $2 == "=" { name = $1; $1 = $2 = ""; set[name] = expand($0); next }
FNR == NR && /^for now / {
  folder = $3; sub(/:$/, "", folder); $1 = $2 = $3 = ""
  n = split(expand($0), word, " ")
  for (i = 1; i <= n; ++i) { may[folder, word[i]] = 1; unused[folder ": " word[i]] = 1; debt[folder, word[i]] = folder ": " word[i] }
  next
}
FNR == NR {
  folder = $1; sub(/:$/, "", folder); $1 = ""
  allow(folder, $0)
  row[folder] = ++n_rows
  if (print_rows) print folder " " expand($0)
  next
}

{
  at = index($0, ":"); file = substr($0, 1, at - 1); included = substr($0, at + 1)
  folder = folder_of(file)
  if (!(folder in row)) { print file ": its folder has no row"; next }
  if (included == "" || folder_of(included) == folder) next
  if ((folder, folder_of(included)) in debt) delete unused[debt[folder, folder_of(included)]]
  if ((folder, included) in debt) delete unused[debt[folder, included]]
  if (!((folder, folder_of(included)) in may) && !((folder, included) in may)) print file ": " included
}

END { for (text in unused) print "no longer needed: for now " text > "/dev/stderr" }
