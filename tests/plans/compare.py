#!/usr/bin/env python3
"""plan_diff.py [--renames FILE] [--ignore FIELD,...] [--show N] OLD NEW

Compares two dumps (files), or the plans-*.txt of two folders, case by case. --renames: lines "old_entry
new_entry", kernels' names. --ignore: fields of the lines that may differ: writes, unit, workspace, text, ...
Exit code 1 where cases differ."""
import argparse, collections, os, re, sys

FIELD = re.compile(r' (able|passes|state|launches|profile|kernel|backward|why|text|grid|block|cluster|shared|overlaps|workspace|writes|unit|params)=')

def fields(line):
    head, *rest = FIELD.split(line)
    return dict([('', head.strip())] + list(zip(rest[::2], rest[1::2])))

def read(path, renames, ignored):
    cases = collections.OrderedDict()
    for line in open(path, errors='replace'):
        line = line.rstrip('\n')
        if line.startswith('case '):
            x = fields(line)
            current = cases.setdefault(x.pop(''), [])
        elif re.match(r' +\d+ ', line):
            current[-1].setdefault('words', []).append(line.strip())
            continue
        elif line.startswith('  '):
            x = fields(line)
            x['name'] = renames.get(x.pop(''), None) or fields(line)['']
            if 'unit' in x:
                x['unit'] = re.sub(r'\w+', lambda m: renames.get(m[0], m[0]), x['unit'])
        else: # a message of several lines
            continue
        for f in ignored: x.pop(f, None)
        current.append(x)
    return cases

def compare(old, new):
    """What differs, as a tuple of words."""
    what = set()
    if len(old) != len(new): return ('number of launches',)
    for i, (a, b) in enumerate(zip(old, new)):
        for k in sorted(set(a) | set(b)):
            if a.get(k) != b.get(k): what.add(('case ' if i == 0 else 'launch ') + k)
    return tuple(sorted(what))

def one(old_path, new_path, renames, args):
    old = read(old_path, renames, args.ignore.split(','))
    new = read(new_path, {}, args.ignore.split(','))
    kinds, same, launches = collections.OrderedDict(), 0, 0
    for name in old:
        if name not in new: what = ('missing',)
        else: what = compare(old[name], new[name])
        launches += len(old[name]) - 1
        if what: kinds.setdefault(what, []).append(name)
        else: same += 1
    added = [n for n in new if n not in old]
    if added: kinds[('added',)] = added
    print(f'{os.path.basename(old_path)}: {len(old)} cases, {launches} launches: {same} cases same, {len(old) - same} differ')
    for what, names in sorted(kinds.items(), key=lambda x: -len(x[1])):
        print(f'  {len(names):6d}  {", ".join(what)}')
        for n in names[:args.show]:
            print(f'          {n}')
            if n in old and n in new:
                for i in range(max(len(old[n]), len(new[n]))):
                    a, b = (x[n][i] if i < len(x[n]) else {} for x in (old, new))
                    d = [k for k in list(a) + [k for k in b if k not in a] if a.get(k) != b.get(k)]
                    for k in d:
                        x, y = a.get(k), b.get(k)
                        if k == 'words':
                            z = [f'{p} -> {q}' for p, q in zip(x or [], y or []) if p != q]
                            print(f'            {a.get("name")}: ' + '; '.join(z[:12]))
                        else: print(f'            {i}: {a.get("name", "")} {k}: {x} -> {y}')
    return bool(kinds)

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument('--renames'); p.add_argument('--ignore', default=''); p.add_argument('--show', type=int, default=2)
p.add_argument('old'); p.add_argument('new')
args = p.parse_args()
renames = dict(l.split()[:2] for l in open(args.renames) if len(l.split()) >= 2) if args.renames else {}
if os.path.isdir(args.old):
    names = sorted(n for n in os.listdir(args.old) if n.startswith('plans-') and n.endswith('.txt'))
    pairs = [(os.path.join(args.old, n), os.path.join(args.new, n)) for n in names]
else: pairs = [(args.old, args.new)]
if not pairs: sys.exit('no dumps')
bad = False
for a, b in pairs:
    if not os.path.exists(b): print(f'{os.path.basename(a)}: no {b}'); bad = True
    else: bad |= one(a, b, renames, args)
sys.exit(bad)
