"""Faults planted in the kernels of the judge on a device: the comparison with the judge on the CPU must see each.

usage: test_faults.py TEST_DEVICE_JUDGE TEST_TWO_JUDGES TEST_DEVICE_FILL TEST_JUDGE_TOGETHER CXX

Each is one replacement in a copy of ref/cuda, which is compiled as C++ and given to one of the four programs in place of its own
kernels: faults of what is wanted to the first, of the comparison to the second, of data to the third, of launches for several jobs to the last. The unchanged copy must pass
what a fault was seen by, so that it is the fault that is seen: the one case of the first program, all that another one asks.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from share import share

# name, file, what stands there, what stands there instead
FAULTS = [
    ("last key of a row lost", "find.cuh", "out.end -= b->j_begin;", "out.end -= b->j_begin + (out.end - out.begin > 1);"),
    ("first key of a row lost", "find.cuh", "out.begin -= b->j_begin;", "out.begin += (out.end - out.begin > 2) - b->j_begin;"),
    ("mask a row too low", "find.cuh", "out.e->shift, out.i, &out.begin", "out.e->shift, out.i + 1, &out.begin"),
    ("rows of 64 multiplied by the first ones' keys", "product.cuh", "keys_of_rows(x, b, i0, at_most(M, b->n - i0), &first, &end);\n  if (p->parts",
     "keys_of_rows(x, b, i0, 1, &first, &end);\n  if (p->parts"),
    ("second half of a large tile's rows lost", "product.cuh", "tile / columns * FA_WIDE_M, tile % columns};", "tile / columns * FA_WIDE_M * 2, tile % columns};"),
    ("large tiles of keys of the wave's first head alone", "product.cuh", "return x->head + x->block->head + strip / x->product.strips;", "return x->head + x->block->head;"),
    ("second part of a row's keys lost", "product.cuh", "for (int64_t part = 0; part < p->parts; ++part)", "for (int64_t part = 0; part < 1; ++part)"),
    ("terms of a row's last part alone", "backward.cuh", "row->terms += of->terms;", "row->terms = of->terms;"),
    ("parts of a row differentiated twice", "backward.cuh", "out.first = part * FA_PART;", "out.first = (part > 0 ? part - 1 : 0) * FA_PART;"),
    ("parts of a row's keys overlap", "product.cuh", "first = first > part * FA_PART ? first : part * FA_PART;", "first = first > part * FA_PART - 1 ? first : part * FA_PART - (part > 0);"),
    ("queries of another head of a turn", "find.cuh", "return b->load + (row - b->first_row) * x->q_step;", "return (x->q_step == 1 ? 0 : b->load) + (row - b->first_row) * x->q_step;"),
    ("last column of a tile lost", "product.cuh", "c[i * ldc + j] = alpha * s->sum[i][j]", "c[i * ldc + j] = (j == 63 ? 0 : alpha) * s->sum[i][j]"),
    ("sums of keys overwritten", "product.cuh", "store_sums(&s, m, n, (T)p->alpha, true,", "store_sums(&s, m, n, (T)p->alpha, false,"),
    ("V's unit for K", "chain.cuh", "unit_k = fa_bound_unit_of(p->head->largest_k);", "unit_k = fa_bound_unit_of(p->head->largest_v);"),
    ("errors of logits without ALiBi", "chain.cuh", "if (t->with_alibi) s->e += fa_bound_alibi_error(t->slope, distance, s->x);", ""),
    ("dropout ignored", "chain.cuh", "if (!(kept > 0)) return 1;", "return 1;"),
    ("dropout's row and key swapped", "chain.cuh", "p->i, p->b->j_begin + j)", "p->b->j_begin + j, p->i)"),
    ("errors of exponentials not grown", "chain.cuh", "off += off * off;", ";"),
    ("errors of a tile's first key for all", "chain.cuh", "float off = e[at(u)];", "float off = e[at(0)];"),
    ("distances from a row's first score", "chain.cuh", "last = warp_last(at);", ";"),
    ("own LSE for the given one", "backward.cuh", "{load_element(&x->lse, at), 0};", "{load_element(&x->lse, at) + 1e-3, 0};"),
    ("dLSE not subtracted", "backward.cuh", "row->delta = sum - dlse;", "row->delta = sum;"),
    ("derivative of softcap forgotten", "backward.cuh", "x->dp[pair] = CHAIN ? ds * score->factor : ds;", "x->dp[pair] = ds;"),
    ("terms of the first block alone", "by_key.cuh", "for (; block < end; ++block) {", "for (end = block < end ? block + 1 : end; block < end; ++block) {"),
    ("bound of dQ 2 % too wide", "settle.cuh", "w->accum[row * width + i] = unknown ? INFINITY : s.accum;", "w->accum[row * width + i] = unknown ? INFINITY : 1.02f * s.accum;"),
    ("bound of O infinite", "forward.cuh", "x->want_o.accum[want * dv + i] = s.accum;", "x->want_o.accum[want * dv + i] = INFINITY;"),
    ("bound of the LSE of another row", "forward.cuh", "x->want_lse.accum[lse] = fa_bound_row_lse(", "x->want_lse.accum[lse - (lse > 0)] = fa_bound_row_lse("),
    ("rows settled twice, the second half never", "forward.cuh", "const int64_t lse = p.b->want_lse + p.row - p.b->first_row;", "const int64_t lse = p.b->want_lse + (p.row - p.b->first_row) / 2;"),
    ("heads of a group not summed", "settle.cuh", "const int64_t n = head->sq * c->group, d = c->d;", "const int64_t n = head->sq, d = c->d;"),
    ("P near 1 counted as rounded", "backward.cuh", "f->truncated_p == 0 ? out.limits.per_u_p : 0;", "false ? 1 : 0;"),
    ("bias of the neighbouring key", "chain.cuh", "load_element(&x->bias, t->bias + j)", "load_element(&x->bias, t->bias + (j > 0 ? j - 1 : 0))"),
    ("bias of the first head", "chain.cuh", "fa_ref_bias_index(c->p, p->head->b, p->b->h, p->i)", "fa_ref_bias_index(c->p, p->head->b, 0, p->i)"),
    ("errors of logits without a bias", "chain.cuh", "s->e = fa_bound_bias_error(s->e, bias, s->x);", ";"),
    ("bits of the mask's next row", "chain.cuh", "p->i * p->e->sk + p->b->j_begin", "(p->i + 1 < p->e->sq ? p->i + 1 : 0) * p->e->sk + p->b->j_begin"),
    ("dBias without a block's last row", "dbias.cuh", "for (int64_t r = first; r < end; ++r) {", "for (int64_t r = first; r < end - (end - first > 1); ++r) {"),
    ("dBias of the first head alone", "dbias.cuh", "fa_ref_bias_index(p, x->head[b->head].b, b->h, 0)", "fa_ref_bias_index(p, x->head[b->head].b, 0, 0)"),
    ("dBias's bound of rounded dS", "backward.cuh", "plain.floor_ds = plain.per_u_ds = 0;", "plain.floor_ds = 1;"),
    ("memeff's dropout by the longest sequence", "chain.cuh", "p->e->drop_keys", "x->c->p->seqlen_k"),
    ("a key that is listed twice counted once", "chain.cuh", "times > 1 ? s + log(times) : s", "s"),
    ("a bias's error as of a score without its list", "chain.cuh", "s->e = fa_bound_bias_error(s->e, bias, s->x);", "s->e = fa_bound_bias_error(s->e, bias, x->times.data ? 0 : s->x);"),
    ("flips of rotary embedding forgotten", "chain.cuh", "if (flips > 0) out.e += t->turned * flips;", ";"),
    ("cached keys in the order of another tensor", "load.cuh", "const int64_t from = head->load + (at - head->key) * x->k_step, d = x->c->d", "const int64_t from = head->load + (at > head->key), d = x->c->d"),
    ("tiles that are not visited count", "find.cuh", "return !x->visits.data ||", "return true ||"),
    ("hidden pairs of the next row", "chain.cuh", "c->p->seqlen_q + p->i) * x->hidden_width", "c->p->seqlen_q + (p->i + 1 < p->e->sq ? p->i + 1 : 0)) * x->hidden_width"),
    ("sinks forgotten", "forward.cuh", "if (!(p->b->sink > -INFINITY)) return out;", "return out;"),
    ("an LSE without the sink that it holds", "forward.cuh", "alone ? fa_ref_lse_of(row->key_max, row->key_sum)", "true ? fa_ref_lse_of(row->key_max, row->key_sum)"),
    ("bound of a sink's LSE forgotten", "forward.cuh", "x->want_lse.accum[lse] = fa_bound_sink_alone(x->c->profile, sink);", ";"),
    ("P from an LSE without the sink", "backward.cuh", "if (fa_ref_sink_left_out(c)) lse = fa_ref_sink_add(lse, p->b->sink);", ";"),
    ("exponents without the error of the added sink", "backward.cuh", " +\n               fa_bound_sink_joined(c, p->b->sink, row->lse);", ";"),
    ("dSinks of a wave's first block alone", "dbias.cuh", "if (b->h != h ||", "if (n > 0 || b->h != h ||"),
    ("dSinks's bound without delta's error", "backward.cuh", "row->delta, row->e_delta * unit_ds)", "row->delta, 0)"),
    ("dSinks of the next head", "dbias.cuh", "if (b->h != h ||", "if (b->h != (h + 1) % x->c->heads_q ||"),
    ("score_mod forgotten", "modify.cuh", "x->s[pair] = bad ? 0 : value;", ";"),
    ("errors of score_mod forgotten", "modify.cuh", "x->e[pair] = hidden ? 0 : fa_mod_up(t->error[root]);", ";"),
    ("score_mod of the next row", "modify.cuh", "pairs.i = p->i;", "pairs.i = p->i + 1;"),
    ("score_mod of a block's keys", "modify.cuh", "pairs.j0 = p->b->j_begin + j0;", "pairs.j0 = j0;"),
    ("score_mod of the first rows alone", "modify.cuh", "row += x->mod.places", "row += x->mod.rows"),
    ("derivative of score_mod forgotten", "modify.cuh", "exact * before->factor", "before->factor"),
    ("bound of score_mod's derivative forgotten", "modify.cuh", "x->mod.cap_err[pair] = cap_err;", "x->mod.cap_err[pair] = 0;"),
    ("captured buffers with swapped axes", "modify.cuh", "at * t->shape[a] + index[a];", "at * t->shape[a] + index[t->rank - 1 - a] % t->shape[a];"),
    ("what a narrow P loses forgotten", "backward.cuh", "const float ge = terms.ge + lost;", "const float ge = terms.ge;"),
    ("squares of a P of gradients as if none were below the normal range", "backward.cuh", "r->limits.floor_p, r->limits.floor_ds)", "0, r->limits.floor_ds)"),
    ("squares of dS as if none were below the normal range", "backward.cuh", "r->limits.floor_p, r->limits.floor_ds)", "r->limits.floor_p, 0)"),
    ("squares of P as if none were below the normal range", "forward.cuh", "rounded->at_top, rounded->floor)", "rounded->at_top, 0)"),
    ("roundings of a group's parts forgotten", "settle.cuh", "parts[i] += (float)fabs(sums->value[from]);", ";"),
    ("a group's last head not joined", "settle.cuh", "for (int64_t m = 1; m < members; ++m) {", "for (int64_t m = 1; m < members - 1; ++m) {"),
    ("gradients of buffers from the first rows alone", "dbuffer.cuh", "row += x->mod.gradient_places", "row += x->mod.rows"),
    ("gradients of buffers of the first place alone", "dbuffer.cuh", "place < x->mod.gradient_places", "place < 1"),
    ("gradients of buffers by dS behind the chain", "dbuffer.cuh", "const double g = x->plain_ds[pair];", "const double g = x->dp[pair];"),
    ("errors of dS left out of gradients of buffers", "dbuffer.cuh", "x->plain_ge[pair] * unit +", ""),
    ("gradients of the first buffer for all", "dbuffer.cuh", "*element = x->mod.first[t->e->node[node].buffer] +", "*element ="),
    ("NaN for what a mask hides", "forward.cuh", "x->s[pair] = 0;", "x->s[pair] = NAN;"),
]

# The same of operands of 8 bits, which the first program is asked for alone: that takes three seconds.
EIGHT = [
    ("descales of the neighbouring head", "load.cuh", "(const float *)t->data + row *", "(const float *)t->data + (row ? row - 1 : 0) *"),
    ("a head's first descale for all of K", "load.cuh", "descale_of(x, &x->k_descale, from, d)", "descale_of(x, &x->k_descale, head->load, d)"),
    ("K's descales for V", "load.cuh", "descale_of(x, &x->v_descale, from, dv)", "descale_of(x, &x->k_descale, from, dv)"),
    ("V without descales", "load.cuh", "descale_of(x, &x->v_descale, from, dv)", "descale_of(x, &x->times, from, dv)"),
    ("descales multiplied by twice", "load.cuh", "to[i] *= by.of_row[i / by.tile];", "to[i] *= by.of_row[i / by.tile] * by.of_row[i / by.tile];"),
    ("a row's first tile's descale for all", "load.cuh", "to[i] *= by.of_row[i / by.tile];", "to[i] *= by.of_row[0];"),
    ("descales of tiles of 64 columns", "load.cuh", "to[i] *= by.of_row[i / by.tile];", "to[i] *= by.of_row[i / by.tile / 2];"),
    ("queries' descales of the first query", "load.cuh", "descale_of(x, &x->q_descale, from, x->c->d)", "descale_of(x, &x->q_descale, 0, x->c->d)"),
    ("e5m2 taken for e4m3", "load.cuh", "if (t->dtype == FA_E4M3) return", "if (t->dtype != FA_I8) return"),
    ("int8 without its sign", "load.cuh", "return (float)(int8_t)bits;", "return (float)bits;"),
    ("subnormal numbers of e4m3 lost", "load.cuh", "float_of_bits(magnitude << 20) * 0x1p120f", "float_of_bits(magnitude < 8 ? 0 : magnitude << 20) * 0x1p120f"),
    ("scores' roundings without those of descales", "chain.cuh", "out.steps = fa_bound_score_steps(c);", "out.steps = 3 * FA_F32_UNIT;"),
    ("narrow sums without the query's descale", "chain.cuh", "c->p->scale * q_descale[load_of(x, p.b, at)]", "c->p->scale"),
    ("narrow sums with the first key's descale", "chain.cuh", "k_descale[from + j * x->k_step]", "k_descale[from]"),
    ("narrow sums of the key before", "chain.cuh", "x->stored_k + (key + j) * d", "x->stored_k + (key + (j ? j - 1 : 0)) * d"),
    ("narrow sums 2 % too wide", "chain.cuh", "x->e[p.pair + j] =", "x->e[p.pair + j] = 1.02f *"),
    ("narrow sums of the first half of the columns", "chain.cuh", "(q, k, d, by)", "(q, k, d / 2, by)"),
    ("narrow sums multiplied by units", "chain.cuh", "if (fa_bound_walks_scores(c)) out.k = 1;", ";"),
    ("exponents of another type's subnormals", "load.cuh", "fa_bound_stored_exponent(dtype, to[i])", "fa_bound_stored_exponent(dtype == FA_E4M3 ? FA_E5M2 : FA_E4M3, to[i])"),
]

# The same of the comparison.
COMPARED = [
    ("NaN passes", "check.cuh", "c->odd += 1;", "c->odd += !is_nan(got);"),
    ("a record of another call", "check.cuh", "c.nonce = x->nonce;", "c.nonce = x->nonce + (item == 0);"),
    ("what is outside of the zone passes", "check.cuh", "c->odd += !(err <= bound * o->narrow);", ";"),
    ("zone four times too wide", "check.cuh", "c->odd += !(err <= bound * o->narrow);", "c->odd += !(err <= 4 * bound * o->narrow);"),
    ("first columns compared alone", "check.cuh", "i < end; i += WARP) compare_element", "i < end && i < first + 8; i += WARP) compare_element"),
    ("last element of a row not compared", "check.cuh", "i < end; i += WARP) compare_element", "i < end - 1; i += WARP) compare_element"),
    ("first row's record for all", "check.cuh", "o->check[item] = c;", "o->check[0] = c;"),
    ("statistics of no element", "check.cuh", "c->n += part.used;", ";"),
    ("squares of the statistics twice", "check.cuh", "c->sum_squares += part.square;", "c->sum_squares += 2 * part.square;"),
    ("worst element of the first row", "check.cuh", "c->ratio = ratio;\n  c->worst = at;", "c->ratio = ratio;"),
    ("quant left out of the bound", "check.cuh", "quant = w->quant[at], accum", "quant = 0 * w->quant[at], accum"),
    ("trivially wrong answers not tried", "check.cuh", "if (!(c->passes & bit) || is_nan(want)) return;", "c->passes &= ~bit;"),
    ("what passes taken for what is right", "check.cuh", "return err + 0x1p-19 * bound <=", "return true || bound <="),
    ("a mean that passes taken for right", "check.cuh", "differs |= !is_same(", "differs |= false && !is_same("),
    ("a mean that passes taken for one that fails", "check.cuh", "fails |= err > bound * x->output.wide;", "fails = true;"),
    ("signs of dropout's matrix not looked at", "debug.cuh", "(copysign(1.0, got) < 0) == kept", "false"),
    ("magnitudes of dropout's matrix not looked at", "debug.cuh", "if (!has_keys) return DEBUG_SURE;", "return DEBUG_SURE;"),
    ("what is behind a padded LSE's rows compared", "forward.cuh", "x->want_lse.value[at] = NAN;", ";"),
    ("largest P of a row's first tile", "forward.cuh", "if (x->c->p->quantized.amax) fa_bound_largest_add(", "if (x->c->p->quantized.amax && t0 == 0) fa_bound_largest_add("),
    ("largest P without its row's sink", "forward.cuh", "exp(row->key_max - row->max) / row->sum", "1 / row->key_sum"),
    ("largest P relative to its row's", "forward.cuh", "exp(row->key_max - row->max) / row->sum", "exp(row->key_max - row->max)"),
    ("least of the largest P taken for the most", "forward.cuh", "raise_to(&x->found->least_amax_p, p.least);", "raise_to(&x->found->least_amax_p, p.most);"),
    ("largest P with all of its key's error", "forward.cuh", "row->largest = largest_p;", "row->largest = largest_p, row->largest.others += largest_p.p * largest_p.summed;"),
    ("largest O of the first row", "forward.cuh", "load_element(&x->o, want * dv + i)", "load_element(&x->o, i)"),
    ("largest O with its sign", "forward.cuh", "fabs(load_element(&x->o, want * dv + i))", "load_element(&x->o, want * dv + i)"),
    ("rounded to 0 taken for 0", "forward.cuh", "some |= value != 0 || s.quant > 0 || s.accum > 0;", ";"),
    ("bound of the neighbouring element", "check.cuh", "accum = w->accum[at];", "accum = w->accum[at ^ 1];"),
]

# Of the data.
FILLED = [
    ("hidden slots counted", "fill.cuh", "slot = s->begin + in / t->heads", "slot = in / t->heads"),
    ("first head's numbers for all", "fill.cuh", "<< 32 | (uint64_t)h);", "<< 32 | 0 * (uint64_t)h);"),
    ("last element of a row not made", "fill.cuh", "d < t->numbers.width;", "d < t->numbers.width - 1;"),
    ("gaps left as they are", "fill.cuh", "= FA_PATTERN_WORD(FA_PATTERN_INPUT_GAP);", "= 0;"),
    ("bf16 rounded as f16", "fill.cuh", "t->dtype == FA_BF16 ? fa_narrow_f64(value, 8, 7)", "t->dtype == FA_BF16 ? fa_narrow_f64(value, 5, 10)"),
    ("first sequence's numbers for all", "fill.cuh", "(uint64_t)s->b << 32 |", "0 * (uint64_t)s->b |"),
    ("first sequence for all", "fill.cuh", "return s + low;", "return s;"),
    ("a tensor's first row given to the one before", "fill.cuh", "row >= f->tensor[at + 1].first_row", "row > f->tensor[at + 1].first_row"),
    ("keys of another length for one-hot gradients", "fill.cuh", "at.sq = s->sq;", "at.sq = s->sq + 1;"),
    ("strides of slots and heads swapped", "fill.cuh", "slot * t->slot_step + h * t->head_step", "slot * t->head_step + h * t->slot_step"),
]

# Of launches for several jobs.
TOGETHER = [
    ("first job for all blocks", "kernels.cu", "int low = 0, high = batch->n;", "int low = 0, high = 1;"),
    ("last block of a job given to the next", "kernels.cu", "batch->first[middle] <= *block", "batch->first[middle] <= *block + 1"),
    ("first block of a job given to the one before", "kernels.cu", "batch->first[middle] <= *block", "batch->first[middle] < *block"),
    ("blocks counted through all jobs", "kernels.cu", "*block -= batch->first[low];", ";"),
    ("another job than its blocks'", "kernels.cu", "jobs + batch->at[low]", "jobs + batch->at[low ? low - 1 : 0]"),
    ("last item of a block lost", "kernels.cu", "item < end && item < x->n", "item < end - (end > 1) && item < x->n"),
]


def build(root, folder, cxx, fault):
    copy = folder / "ref" / "cuda"
    shutil.copytree(root / "ref" / "cuda", copy)
    if fault:
        _, file, old, new = fault
        text = (copy / file).read_text()
        assert text.count(old) == 1, f"{fault[0]}: {file} has its text {text.count(old)} times"
        (copy / file).write_text(text.replace(old, new))
    library = folder / "kernels.so"
    subprocess.run([cxx, "-shared", "-fPIC", "-O1", "-std=c++17", "-ffp-contract=off", "-D_GNU_SOURCE", f"-I{folder}", f"-I{root}",
                    "-x", "c++", str(copy / "kernels.cu"), "-o", str(library)], check=True)
    return library


def ask(root, program, library, case=()):
    """Whether it failed, what it said first, and by which of its cases, if it counts them."""
    run = subprocess.run([program[0], str(library), *program[1:], *case], cwd=root, capture_output=True, text=True,
                         env={**os.environ, "FA_TEST_SHARE": "1"})  # a fault may be seen by one case of all
    said = run.stderr.strip().splitlines()
    return run.returncode != 0, said[0] if said else "", tuple(re.findall(r"case (\d+) has shown it", run.stderr))


def seen(root, program, cxx, fault):
    with tempfile.TemporaryDirectory() as name:
        return ask(root, program, build(root, pathlib.Path(name), cxx, fault))


def main():
    judge, compared, filled, together, cxx = sys.argv[1:6]
    root = pathlib.Path.cwd()
    bad = 0
    programs = (((judge,), FAULTS), ((judge, "eight"), EIGHT), ((compared,), COMPARED), ((filled,), FILLED), ((together,), TOGETHER))
    planted = [(program, fault) for program, faults in programs for fault in faults]
    tries = share(planted)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as name:
        unchanged = pool.submit(build, root, pathlib.Path(name), cxx, None)
        found = list(pool.map(lambda one: seen(root, one[0], cxx, one[1]), tries))
        shown_by = sorted({(program, case) for (program, _), (_, _, case) in zip(tries, found)})
        without = dict(zip(shown_by, pool.map(lambda one: ask(root, one[0], unchanged.result(), one[1]), shown_by)))
    for (program, fault), (failed, said, case) in zip(tries, found):
        fails_too, why, _ = without[program, case]
        bad += fails_too or not failed
        print("BAD " if fails_too or not failed else "ok  ", fault[0], "--",
              "unchanged kernels fail too: " + why[-200:] if fails_too else said[-200:] if failed else "not seen")
    print(f"{len(tries)} of {len(planted)} faults, {bad} not as they should be")
    return bad > 0 or not tries


sys.exit(main())
