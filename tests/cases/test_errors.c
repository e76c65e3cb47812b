/* The whole message that a user sees when a case file is wrong, for every kind of mistake. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"

#include <string.h>

/* Loads text as file x.json; it must fail with this message and append nothing. */
static void expect(const char *text, const char *want) {
  fa_case_list list = {0};
  fa_error err = {""};
  fa_status status = fa_case_file_parse(text, strlen(text), "x.json", NULL, &list, &err);
  CHECK_MSG(status == FA_ERR_INPUT, "status %d for %s", status, text);
  CHECK_MSG(strcmp(err.text, want) == 0, "\n text %s\n got  %s\n want %s", text, err.text, want);
  CHECK_MSG(list.n == 0, "appended %lld cases", (long long)list.n);
  fa_case_list_free(&list);
}

/* A case as the only one in a file: its keys, and the message after "x.json: $.cases[0]". */
static void expect_case(const char *keys, const char *want) {
  char text[4096], message[1024];
  snprintf(text, sizeof text, "{\"fa_cases\": 1, \"cases\": [{%s}]}", keys);
  snprintf(message, sizeof message, "x.json: $.cases[0]%s", want);
  expect(text, message);
}

/* Of more cases than 64 bits count: 256 values along each of 9 axes. */
static void test_countless(void) {
  static const char *const axes[] = {"batch",  "heads_q",  "heads_kv",   "seqlen_q", "seqlen_k",
                                     "repeat", "head_dim", "head_dim_v", "softcap"};
  static char text[9 * 600 + 200];
  size_t n = (size_t)snprintf(text, sizeof text, "{\"fa_cases\":1,\"sweeps\":[{\"base\":{},\"over\":{");
  for (int a = 0; a < 9; ++a) {
    n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s\":[1", a ? "," : "", axes[a]);
    for (int i = 1; i < 256; ++i) n += (size_t)snprintf(text + n, sizeof text - n, ",1");
    n += (size_t)snprintf(text + n, sizeof text - n, "]");
  }
  snprintf(text + n, sizeof text - n, "}}]}");
  expect(text, "x.json: $.sweeps[0]: with its 9223372036854775807 cases the file has more than 100000");
}

static void expect_good(const char *keys) {
  char text[4096];
  fa_case c;
  fa_error err = {""};
  snprintf(text, sizeof text, "{%s}", keys);
  fa_status status = fa_case_from_text(text, &c, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", text, err.text);
  if (status == FA_OK) fa_case_free(&c);
}

/* What has to be an object, at every place of a file. */
static void test_objects(void) {
  expect("5", "x.json: $: 5 is not an object");
  expect("{\"fa_cases\":1,\"defaults\":5,\"cases\":[]}", "x.json: $.defaults: 5 is not an object");
  expect("{\"fa_cases\":1,\"random\":[5]}", "x.json: $.random[0]: 5 is not an object");
  expect("{\"fa_cases\":1,\"sweeps\":[{\"base\":5,\"over\":{\"batch\":[1]}}]}",
         "x.json: $.sweeps[0].base: 5 is not an object");
  expect("{\"fa_cases\":1,\"sweeps\":[5]}", "x.json: $.sweeps[0]: 5 is not an object");
  expect("{\"fa_cases\":1,\"cases\":[5]}", "x.json: $.cases[0]: 5 is not an object");
}

static void test_text(void) {
  expect("{\"fa_cases\": 1, \"cases\": [ { \"seqlen_q\": 1",
         "x.json:1:43: $.cases[0].seqlen_q: ',' or '}' expected, the text ends here");
  expect("{\"fa_cases\": 1, \"cases\": [ { \"na", "x.json:1:30: $.cases[0]: this string does not end");
  expect("", "x.json:1:1: $: a value expected, the text ends here");
  expect("  \n ", "x.json:2:2: $: a value expected, the text ends here");
  expect("{\"fa_cases\": 1}\n}", "x.json:2:1: $: text after the end of the value, found '}'");
  expect("{\"seqlen_q\": 5} x", "x.json:1:17: $: text after the end of the value, found 'x'");
  expect("{\"fa_cases\": 1,\n \"cases\": [{\"scale\": NaN}]}",
         "x.json:2:22: $.cases[0].scale: not a JSON number; numbers are finite");
  expect("{\"scale\": -Infinity}", "x.json:1:12: $.scale: not a JSON number; numbers are finite");
  expect("{\"scale\": 01}", "x.json:1:11: $.scale: a number must not start with 0 followed by digits");
  expect("{\"scale\": 1.}", "x.json:1:13: $.scale: a number needs a digit after its point, found '}'");
  expect("{\"scale\": 1e}", "x.json:1:13: $.scale: a number needs a digit in its exponent, found '}'");
  expect("{\"scale\": -}", "x.json:1:12: $.scale: a number needs a digit here, found '}'");
  expect("{\"scale\": .5}", "x.json:1:11: $.scale: a value expected, found '.'");
  expect("{\"scale\": +1}", "x.json:1:11: $.scale: a value expected, found '+'");
  expect("{\"scale\": 0.0000000000000000000000000000000000000000000000000000000000000000001}",
         "x.json:1:11: $.scale: a number longer than 60 characters");
  expect("{\"a\": 1,}", "x.json:1:9: $: a key in double quotes expected, found '}'");
  expect("{'a': 1}", "x.json:1:2: $: a key in double quotes expected, found '''");
  expect("{\"a\" 1}", "x.json:1:6: $.a: ':' expected, found '1'");
  expect("{\"a\": [1 2]}", "x.json:1:10: $.a[0]: ',' or ']' expected, found '2'");
  expect("{\"a\": tru}", "x.json:1:7: $.a: a value expected, found 't'");
  expect("{\"name\": \"a\tb\"}",
         "x.json:1:12: $.name: a control character (0x09) in a string; write it as \\u0009");
  expect("{\"name\": \"a\\u0000b\"}", "x.json:1:12: $.name: \\u0000 is not allowed in a string");
  expect("{\"name\": \"\\ud800\"}", "x.json:1:11: $.name: half of a surrogate pair");
  expect("{\"name\": \"\\ud800\\u0041\"}", "x.json:1:11: $.name: half of a surrogate pair");
  expect("{\"name\": \"\\udc00\"}", "x.json:1:11: $.name: half of a surrogate pair");
  expect("{\"name\": \"\\x\"}", "x.json:1:11: $.name: this escape is not JSON");
  expect("{\"name\": \"\\u12g4\"}", "x.json:1:11: $.name: \\u needs four hex digits");
  expect("{\"name\": \"\xff\"}", "x.json:1:11: $.name: byte 0xff is not UTF-8");
  expect("{\"name\": \"\xc0\x80\"}", "x.json:1:11: $.name: byte 0xc0 is not UTF-8");
  expect("\xef\xbb\xbf{}", "x.json:1:1: $: a value expected, found byte 0xef");
  expect("{\"mask\": {\"type\": \"none\", \"type\": \"causal\"}}",
         "x.json: $.mask.type: this key is given twice");
  expect("{\"a b\": 1, \"a b\": 2}", "x.json: $[\"a b\"]: this key is given twice");
  expect("{\"a\\n\": 1, \"a\\n\": 2}", "x.json: $[\"a\\u000a\"]: this key is given twice");
  expect("{\"\x7fz\"}", "x.json:1:6: $[\"\\u007fz\"]: ':' expected, found '}'");
  static const char zero[] = "{\"fa_cases\": 1}\0 ";
  fa_case_list list = {0};
  fa_error err;
  CHECK(fa_case_file_parse(zero, sizeof zero - 1, "x.json", NULL, &list, &err) == FA_ERR_INPUT);
  CHECK_MSG(strcmp(err.text, "x.json:1:16: $: text after the end of the value, found byte 0x00") == 0, "%s",
            err.text);
  static char deep[2000];
  memset(deep, '[', sizeof deep - 1);
  CHECK(fa_case_file_parse(deep, sizeof deep - 1, "x.json", NULL, &list, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "nested deeper than 64") != NULL, "%s", err.text);
  /* Messages stay complete with arbitrarily long names. */
  static char longish[100000];
  memset(longish, 'k', sizeof longish - 1);
  memcpy(longish, "{\"", 2);
  memcpy(longish + sizeof longish - 6, "\": 1}", 5);
  CHECK(fa_case_file_parse(longish, sizeof longish - 1, "x.json", NULL, &list, &err) == FA_ERR_INPUT);
  CHECK(strlen(err.text) < sizeof err.text);
}

static void test_values(void) {
  expect_case("\"mask\": {\"type\": \"casual\"}",
              ".mask.type: \"casual\" is not one of \"none\", \"causal\", \"window\", \"chunk\"");
  expect_case("\"seqlen\": 5", ".seqlen: unknown key; did you mean \"seqlen_q\"?");
  expect_case("\"haeds_q\": 5", ".haeds_q: unknown key; did you mean \"heads_q\"?");
  expect_case("\"Batch\": 5", ".Batch: unknown key; did you mean \"batch\"?");
  expect_case("\"mask\": {\"typ\": \"none\"}", ".mask.typ: unknown key; did you mean \"type\"?");
  expect_case("\"mask\": {\"colour\": 1}", ".mask.colour: unknown key; known are type, align, left, right, "
                                           "size");
  expect_case("\"zero\": {\"q\": [[0, 1], [3]]}", ".zero.q[1]: an array is not [from, to]");
  expect_case("\"zero\": {\"q\": [[0, 2]]}", ".zero.q[0]: 0 to 2 is no range within 1 rows");
  expect_case("\"seqlen_q\": 9, \"zero\": {\"k\": [[0, 2], [1, 3]]}",
              ".zero.k[1]: starts at 1, but must lie behind 2, where the range before it ends");
  expect_case("\"backward\": false, \"zero\": {\"do\": [[0, 1]]}",
              ".zero.do: the case has no tensor do with such rows");
  expect_case("\"strides\": {\"p_debug\": {}}",
              ".strides.p_debug: unknown key; known are q, k, v, bias, do, "
              "dlse, k_new, v_new, o_parts, lse_parts, o, lse, dq, dk, dv, dbias, "
              "do_parts, dlse_parts");
  expect_case("\"strides\": {\"lse\": {\"expand\": [\"h\"]}}",
              ".strides.lse.expand: \"h\": an output cannot share memory between its elements");
  expect_case("\"strides\": {\"dlse\": {\"offset\": 1}}", ".strides.dlse: the case has no tensor dlse");
  expect_case("\"family\": \"merge\", \"merge\": {\"parts\": 0}",
              ".merge.parts: 0 is not an integer in 1 .. 1024");
  expect_case("\"family\": \"merge\", \"merge\": {\"base\": \"10\"}",
              ".merge.base: \"10\" is not one of \"e\", \"2\"");
  expect_case("\"merge\": {\"parts\": 3}", ".merge: only family \"merge\" has one, not \"flash\"");
  expect_case("\"family\": \"merge\", \"seqlen_q\": 4, \"seqlen_k\": 5",
              ".seqlen_k: 5, but family \"merge\" has no queries and keys: it is seqlen_q, 4");
  expect_case("\"family\": \"merge\", \"scale\": 1", ".scale: family \"merge\" has no scores to scale");
  expect_case("\"family\": \"merge\", \"mask\": {\"type\": \"causal\"}",
              ".mask: family \"merge\" merges partial states and has no queries and keys");
  expect_case("\"family\": \"merge\", \"empty_lse\": \"+inf\"",
              ".empty_lse: must be \"-inf\": what is empty is merged again, and +inf is only read");
  expect_case("\"family\": \"merge\", \"fill\": {\"do\": \"do_aligned\"}",
              ".fill.do: \"do_aligned\" follows v, which family \"merge\" does not have");
  expect_case("\"batch\": 0", ".batch: 0 is not an integer in 1 .. 1048576");
  expect_case("\"batch\": -1", ".batch: -1 is not an integer in 1 .. 1048576");
  expect_case("\"batch\": 1.5", ".batch: 1.5 is not an integer in 1 .. 1048576");
  expect_case("\"batch\": \"2\"", ".batch: \"2\" is not an integer in 1 .. 1048576");
  expect_case("\"batch\": null", ".batch: null is not an integer in 1 .. 1048576");
  expect_case("\"batch\": [1]", ".batch: an array is not an integer in 1 .. 1048576");
  expect_case("\"batch\": 9007199254740993", ".batch: 9007199254740992 is not an integer in 1 .. 1048576");
  expect_case("\"batch\": 1e999", ".batch: inf is not an integer in 1 .. 1048576");
  expect_case("\"seqlen_q\": -5", ".seqlen_q: -5 is not an integer in 0 .. 1073741824");
  expect_case("\"scale\": 1e999", ".scale: the number is not finite in double precision");
  expect_case("\"scale\": \"NaN\"", ".scale: \"NaN\" is not a number");
  expect_case("\"scale\": 1e300",
              ".scale: 1e+300 is not in -3.4028234663852886e+38 .. 3.4028234663852886e+38");
  expect_case("\"softcap\": -1", ".softcap: -1 is not in 0 .. 3.4028234663852886e+38");
  expect_case("\"backward\": 1", ".backward: 1 is not true or false");
  expect_case("\"name\": 5", ".name: 5 is not a string");
  expect_case("\"name\": \"a\\nb\"", ".name: byte 1 of the string is a control character or not UTF-8");
  expect_case("\"dropout\": {\"p\": 1}",
              ".dropout.p: 1 is not in [0, 1): dropping everything leaves no scale 1/(1-p)");
  expect_case("\"dropout\": {\"p\": 0.99999999999}",
              ".dropout.p: 0.99999999999 is 1 in f32, must be in [0, 1)");
  expect_case("\"dropout\": {\"seed\": 7}",
              ".dropout.seed: 7 is a number, but 64-bit values are strings: a double holds no 64 bits");
  expect_case("\"data_seed\": true", ".data_seed: true is not a string with a 64-bit integer");
  static const char *const junk[] = {"",
                                     " 1",
                                     "1 ",
                                     "-1",
                                     "+1",
                                     "1.0",
                                     "18446744073709551616",
                                     "0x",
                                     "01",
                                     "1e3",
                                     "0x10000000000000000",
                                     "0xg",
                                     "99999999999999999999999"};
  for (size_t i = 0; i < sizeof junk / sizeof *junk; ++i) {
    char keys[100], want[200];
    snprintf(keys, sizeof keys, "\"data_seed\": \"%s\"", junk[i]);
    snprintf(want, sizeof want,
             ".data_seed: \"%s\" is not a decimal (or 0x hexadecimal) integer in 0 .. 18446744073709551615",
             junk[i]);
    expect_case(keys, want);
  }
  expect_good("\"note\": \"\\u00e9, \\ud83d\\ude00\"");
  expect_good("\"data_seed\": \"18446744073709551615\"");
  expect_good("\"data_seed\": \"0xffffFFFFffffFFFF\"");
  expect_good("\"data_seed\": \"0\"");
  expect_case("\"cu_seqlens_q\": 5", ".cu_seqlens_q: 5 is not an array of integers");
  expect_case("\"cu_seqlens_q\": [0, 1.5]", ".cu_seqlens_q[1]: 1.5 is not an integer in 0 .. 1073741824");
  expect_case("\"cu_seqlens_q\": [0]", ".cu_seqlens_q: has 1 elements, must have at least 2");
  expect_case("\"strides\": {\"q\": {\"gap\": [1, 2]}}",
              ".strides.q.gap: an array is not three gaps: after each batch entry, row and head");
  expect_case("\"strides\": {\"q\": {\"expand\": [\"b\", \"b\"]}}",
              ".strides.q.expand[1]: \"b\" is given twice");
  expect_case("\"strides\": {\"q\": {\"expand\": [\"d\"]}}",
              ".strides.q.expand[0]: \"d\" is not one of \"b\", \"s\", \"h\"");
  expect_case("\"family\": \"memeff\", \"bias\": {\"shape\": [\"b\", \"q\", 1, \"k\"]}",
              ".bias.shape[1]: \"q\" is not \"h\" or 1");
  expect_case("\"family\": \"memeff\", \"bias\": {\"shape\": [1, 1, 1, 1]}",
              ".bias.shape[3]: 1 is not \"k\"");
  expect_case(
      "\"alibi\": {\"slopes\": []}",
      ".alibi.slopes: an empty array is not \"standard\", [slope of each head] or [[slope ...] of each "
      "entry]");
  expect_case("\"alibi\": {\"slopes\": [1, \"x\"]}", ".alibi.slopes[1]: \"x\" is not a number");
  expect_case("\"alibi\": {\"slopes\": [[1], 2]}",
              ".alibi.slopes[1]: 2 is not an array, as the element before it");
  expect_case("\"family\": \"flex\", \"buffers\": {\"1x\": {}}",
              ".buffers[\"1x\"]: the name is not an identifier of 1 .. 63 letters, digits and _");
}

static void test_contradictions(void) {
  expect_case("\"heads_q\": 5, \"heads_kv\": 2", ".heads_q: 5 is not a multiple of heads_kv 2");
  expect_case("\"cu_seqlens_q\": [0, 4, 3], \"cu_seqlens_k\": [0, 4, 5]",
              ".cu_seqlens_q[2]: 3 is less than the entry before it, 4; it must not decrease");
  expect_case("\"cu_seqlens_q\": [1, 4], \"cu_seqlens_k\": [0, 4]", ".cu_seqlens_q[0]: 1, must be 0");
  expect_case("\"cu_seqlens_q\": [0, 4]",
              ".cu_seqlens_k: missing; without a cache cu_seqlens_q and cu_seqlens_k come together");
  expect_case("\"cu_seqlens_q\": [0, 4], \"cu_seqlens_k\": [0, 4, 5]",
              ".cu_seqlens_k: has 3 elements, must have 2");
  expect_case("\"batch\": 3, \"cu_seqlens_q\": [0, 4], \"cu_seqlens_k\": [0, 4]",
              ".batch: 3, but cu_seqlens_q is for 1 entries");
  expect_case("\"seqlen_q\": 1073741824, \"heads_q\": 16",
              ".seqlen_q: tensor q would have 1099511627776 elements, the limit is 8589934592");
  expect_case("\"seqlen_q\": 1099511627776", ".seqlen_q: 1099511627776 is not an integer in 0 .. 1073741824");
  expect_case("\"batch\": 1048576, \"seqlen_q\": 1073741824, \"heads_q\": 65536",
              ".seqlen_q: tensor q would have more than 2^63 elements, the limit is 8589934592");
  expect_case("\"family\": \"memeff\", \"heads_q\": 64, \"heads_kv\": 1, \"head_dim\": 1, \"bias\": {}, "
              "\"seqlen_q\": 30000",
              ".bias: tensor bias would have 57600000000 elements, the limit is 8589934592");
  expect_case("\"seqlen_q\": 100000, \"return_softmax\": true",
              ".return_softmax: tensor p_debug would have 10019209216 elements, the limit is 8589934592");
  expect_case("\"strides\": {\"q\": {\"gap\": [8589934592, 0, 0]}}, \"batch\": 9",
              ".strides.q: tensor q would span more than 34359738368 elements");
  expect_case(
      "\"family\": \"merge\", \"seqlen_q\": 0, \"strides\": {\"do_parts\": {\"gap\": [0, 0, 4294967333]}}, "
      "\"merge\": {\"parts\": 33}",
      ".strides.do_parts: tensor do_parts would span more than 34359738368 elements");
  expect_case(
      "\"family\": \"kvcache\", \"seqlen_q\": 1, \"seqlen_k\": 64, \"kvcache\": {\"len\": [0], "
      "\"page_size\": 64}, \"strides\": {\"k\": {\"gap\": [0, 200000000, 0]}}", /* the spare pages count */
      ".strides.k: tensor k would span more than 34359738368 elements");
  expect_case("\"strides\": {\"do\": {\"offset\": 1}}, \"backward\": false",
              ".strides.do: the case has no tensor do");
  expect_case("\"strides\": {\"dq\": {\"expand\": [\"b\"]}}",
              ".strides.dq.expand: \"b\": an output cannot share memory between its elements");
  expect_case("\"packed\": \"qkv\", \"seqlen_q\": 4, \"seqlen_k\": 5",
              ".packed: \"qkv\" needs seqlen_k 5 to be seqlen_q 4");
  expect_case("\"packed\": \"qkv\", \"quantized\": {\"dtype\": \"e5m2\", \"queries\": false}",
              ".packed: \"qkv\" needs one type, and q has f16, k e5m2");
  expect_case("\"packed\": \"kv\", \"strides\": {\"v\": {\"offset\": 4}}",
              ".strides.v: packed \"kv\" takes the strides of tensor k");
  expect_case("\"mask\": {\"type\": \"causal\", \"left\": 3}",
              ".mask.left: 3, but only mask types \"window\" and \"chunk\" have a left edge");
  expect_case("\"mask\": {\"type\": \"chunk\"}", ".mask.size: missing; a chunk has at least one key");
  expect_case("\"mask\": {\"type\": \"causal\", \"size\": 4}",
              ".mask.size: 4, but only mask type \"chunk\" has a size");
  expect_case("\"mask\": {\"type\": \"chunk\", \"size\": 4, \"right\": 2}",
              ".mask.right: 2, but only mask type \"window\" has a right edge");
  expect_case("\"mask_bits\": {}", ".mask_bits: needs one of density and tree");
  expect_case("\"mask_bits\": {\"density\": 0.5, \"tree\": \"star\"}",
              ".mask_bits: needs one of density and tree");
  expect_case("\"mask_bits\": {\"tree\": \"star\"}, \"mask\": {\"type\": \"causal\"}",
              ".mask_bits: they replace mask type \"causal\"; only a window may be beside them");
  expect_case("\"mask_bits\": {\"tree\": \"star\"}, \"mask\": {\"type\": \"chunk\", \"size\": 4}",
              ".mask_bits: they replace mask type \"chunk\"; only a window may be beside them");
  expect_case("\"mask_bits\": {\"tree\": \"star\"}, \"family\": \"memeff\"",
              ".mask_bits: family \"memeff\" has none (flash and kvcache have)");
  expect_case("\"mask_bits\": {\"tree\": \"star\"}, \"mask_mod\": \"q_idx >= kv_idx\"",
              ".mask_bits: not together with mask_mod");
  expect_case("\"mask_bits\": {\"density\": 1}, \"seqlen_q\": 1000000, \"seqlen_k\": 1000000",
              ".mask_bits: a bit for every pair takes more than 2^31 - 1 bytes");
  expect_case("\"family\": \"memeff\", \"return_softmax\": true",
              ".return_softmax: family \"memeff\" has none (flash has)");
  expect_case("\"grad_lse\": true, \"backward\": false", ".grad_lse: true needs backward true");
  expect_case("\"seqused_k\": [3], \"seqlen_k\": 2", ".seqused_k[0]: 3 is not in 0 .. 2");
  expect_case("\"seqused_k\": [3], \"cu_seqlens_q\": [0, 1, 1], \"cu_seqlens_k\": [0, 2, 9]",
              ".seqused_k: has 1 elements, must have 2");
  expect_case("\"seqused_k\": [3, 1], \"cu_seqlens_q\": [0, 1, 1], \"cu_seqlens_k\": [0, 2, 9]",
              ".seqused_k[0]: 3 is more than the entry's 2 keys");
  expect_case("\"leftpad_k\": [3], \"seqused_k\": [2], \"seqlen_k\": 9",
              ".leftpad_k[0]: 3 is more than the entry's 2 keys");
  expect_case("\"heads_q\": 3, \"alibi\": {\"slopes\": [1, 2]}",
              ".alibi.slopes: 2 slopes; must be heads_q = 3 or batch x heads_q");
  expect_case("\"heads_q\": 2, \"batch\": 4, \"alibi\": {\"slopes\": [[1,2,3,4],[1,2,3,4]]}",
              ".alibi.slopes: is 2 x 4, must be batch 4 x heads_q 2");
  expect_case("\"heads_q\": 2, \"batch\": 2, \"alibi\": {\"slopes\": [[1,2],[1]]}",
              ".alibi.slopes[1]: has 1 slopes, the entry before it 2");
  expect_case("\"family\": \"memeff\", \"bias\": {\"fill\": \"small\"}, \"fill\": {\"bias\": \"uniform\"}",
              ".bias.fill: differs from fill.bias");
#define GENERAL_FILLS                                                                                        \
  "\"normal\", \"logits_4x\", \"logits_64x\", \"small\", \"heavy_tail\", \"v_offset\", \"outlier\", "        \
  "\"uniform\", "                                                                                            \
  "\"negative_logits\", \"staircase_up\", \"staircase_down\", \"positional_v\", \"one_hot\", "               \
  "\"uniform_exact\", "                                                                                      \
  "\"integer\", \"duplicate_keys\", \"denormal\", \"near_max\", \"ties\", \"cancellation\", \"sentinel\", "  \
  "\"zero\", \"edges\""
  expect_case("\"fill\": \"neg_inf_rows\"", ".fill: \"neg_inf_rows\" is not one of " GENERAL_FILLS);
  expect_case("\"fill\": \"one_hott\"",
              ".fill: \"one_hott\" is not one of " GENERAL_FILLS "; did you mean \"one_hot\"?");
  expect_case("\"fill\": {\"q\": \"do_one_hot\"}", ".fill.q: \"do_one_hot\" is not one of " GENERAL_FILLS);
  expect_good("\"fill\": {\"do\": \"do_one_hot\", \"bias\": \"neg_inf_rows\", \"default\": \"zero\"}");
}

#define KV "\"family\": \"kvcache\", \"seqlen_k\": 16, "
#define PACKED "\"cu_seqlens_q\": [0, 1, 4], \"cu_seqlens_k\": [0, 2, 9], "

/* What few kernels combine is no fault of the case. */
static void test_combinations(void) {
  static const char *const all[] = {
      "\"mask\": {\"type\": \"causal\", \"align\": \"top_left\"}",
      "\"head_dim_v\": 32",
      "\"head_dim\": 320",
      "\"bias\": {}",
      "\"dropout\": {\"p\": 0.1}",
      "\"score_mod\": \"score + a[h]\", \"buffers\": {\"a\": {\"shape\": [1]}}",
      "\"mask_mod\": \"q_idx >= kv_idx\", \"block_sparse\": {\"from\": \"mask_mod\"}",
      "\"block_sparse\": {\"density\": 0.5}",
      "\"leftpad_k\": [1, 1]",
      "\"splits\": 3",
  };
  static const char *const families[] = {PACKED, PACKED "\"family\": \"memeff\", ",
                                         PACKED "\"family\": \"flex\", ",
                                         KV "\"cu_seqlens_q\": [0, 5, 6], \"kvcache\": {\"len\": [9, 3], "
                                            "\"new\": 2, \"page_size\": 4}, "};
  for (size_t f = 0; f < sizeof families / sizeof *families; ++f)
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) {
      char text[600];
      snprintf(text, sizeof text, "%s%s", families[f], all[k]);
      expect_good(text);
    }
  expect_case(
      KV "\"cu_seqlens_k\": [0, 16], \"kvcache\": {\"len\": [1]}",
      ".cu_seqlens_k: family \"kvcache\" takes its keys from the cache; only its queries can be packed");
  expect_case(KV "\"cu_seqlens_q\": [0, 1, 2], \"kvcache\": {\"len\": [1]}",
              ".kvcache.len: has 1 elements, must have 2");
  expect_case("\"block_sparse\": {\"kv_num_blocks\": [[[1]]], \"kv_indices\": [[[[0]]]]}, "
              "\"cu_seqlens_q\": [0, 1, 130], \"cu_seqlens_k\": [0, 1, 2]", /* as many as the longest needs */
              ".block_sparse.kv_num_blocks: has 1 elements, must have 2");
}

static void test_lse_layout(void) {
  expect_case("\"lse_layout\": \"padded\"",
              ".lse_layout: \"padded\" is for packed queries (cu_seqlens_q), others have no rows to pad");
  expect_case("\"lse_layout\": \"dense\"", ".lse_layout: \"dense\" is not one of \"packed\", \"padded\"");
  expect_case("\"family\": \"merge\", \"cu_seqlens_q\": [0, 3, 9], \"lse_layout\": \"padded\"",
              ".lse_layout: family \"merge\" merges partial states and has no queries and keys");
}

static void test_kvcache(void) {
  expect_case("\"family\": \"kvcache\"", ".kvcache: missing; family \"kvcache\" needs it");
  expect_case("\"kvcache\": {\"len\": [1]}", ".kvcache: only family \"kvcache\" has one, not \"flash\"");
  expect_case(KV "\"kvcache\": {}", ".kvcache.len: missing; one length for each of 1 entries");
  expect_case(KV "\"kvcache\": {\"len\": [17]}", ".kvcache.len[0]: 17 is not in 0 .. 16");
  expect_case(KV "\"kvcache\": {\"len\": [15], \"new\": 2}",
              ".kvcache.len[0]: 15 and 2 new keys are more than the capacity seqlen_k 16");
  expect_case("\"mla\": {}", ".mla: only family \"kvcache\" has a latent cache, not \"flash\"");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {}, \"head_dim\": 128",
              ".head_dim: 128, but mla makes it kv_lora_rank + qk_rope_head_dim, 576; leave it out");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {\"kv_lora_rank\": 8}, \"head_dim_v\": 72",
              ".head_dim_v: 72, but mla makes it kv_lora_rank, 8; leave it out");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {\"kv_lora_rank\": 0}",
              ".mla.kv_lora_rank: 0 is not an integer in 1 .. 65536");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {\"rank\": 8}",
              ".mla.rank: unknown key; known are kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"rotary\": {\"dim\": 4}}, \"mla\": {}",
              ".kvcache.rotary: not together with mla, whose cache holds columns that are rotated already");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {}, \"strides\": {\"v\": {\"offset\": 4}}",
              ".strides.v: the case has no tensor v");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"mla\": {}, \"zero\": {\"v\": [[0, 1]]}",
              ".zero.v: the case has no tensor v with such rows");
  expect_case("\"topk\": {}", ".topk: only family \"kvcache\" has lists of keys, not \"flash\"");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {\"k\": 0}",
              ".topk.k: 0 is not an integer in 1 .. 1048576");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {\"none\": 2}", ".topk.none: 2 is not in 0 .. 1");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {\"none_at\": \"middle\"}",
              ".topk.none_at: \"middle\" is not one of \"end\", \"front\", \"anywhere\"");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {\"k\": 8, \"len\": [9]}",
              ".topk.len[0]: 9 is not in 0 .. 8");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {\"len\": [9, 1]}",
              ".topk.len: has 2 elements, must have 1");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"page_size\": 4}, \"topk\": {\"beyond\": true}",
              ".topk.beyond: true, but entries name slots of pages, of which a kernel knows no end");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"topk\": {}, \"mask\": {\"type\": \"causal\"}",
              ".mask: not together with topk, whose lists say which keys a row sees");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"batch_idx\": [2]}, \"topk\": {}",
              ".kvcache.batch_idx: not together with topk, whose lists say which keys a row sees");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"backward\": true",
              ".backward: family \"kvcache\" has no backward pass");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"leftpad\": [2]}",
              ".kvcache.leftpad[0]: 2 is more than the entry's 1 keys");
  expect_case(KV "\"kvcache\": {\"len\": [9], \"leftpad\": [2]}, \"leftpad_k\": [2]",
              ".kvcache.leftpad: leftpad_k is given too; they mean the same");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"page_size\": 5}",
              ".kvcache.page_size: seqlen_k 16, the capacity of an entry, is not a multiple of 5");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"page_size\": 4, \"shared_pages\": 5}",
              ".kvcache.shared_pages: 5 is not in 0 .. 4");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"shared_pages\": 1}",
              ".kvcache.shared_pages: 1, but there are no pages (page_size is 0)");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"page_size\": 4, \"batch_idx\": [0]}",
              ".kvcache.batch_idx: not together with page_size (the block table maps entries)");
  expect_case(KV "\"batch\": 2, \"kvcache\": {\"len\": [1, 1], \"new\": 1, \"batch_idx\": [3, 3]}",
              ".kvcache.batch_idx[1]: cache row 3 is entry 0's too; with new keys each entry needs its own");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"rotary\": {\"dim\": 3}}", ".kvcache.rotary.dim: 3 is odd");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"rotary\": {\"dim\": 66}}",
              ".kvcache.rotary.dim: 66 is not in 0 .. 64");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"seqused_k\": [1]",
              ".seqused_k: family \"kvcache\" takes its lengths from kvcache.len");
  expect_case(KV "\"kvcache\": {\"len\": [1], \"new\": 1}, \"strides\": {\"k\": {\"expand\": [\"b\"]}}",
              ".strides.k.expand: \"b\": the cache is written to (kvcache.new)");
  expect_case(KV "\"kvcache\": {\"len\": [1]}, \"packed\": \"kv\"",
              ".packed: \"kv\", but the caches are tensors of their own");
}

#define FLEX "\"family\": \"flex\", \"seqlen_q\": 200, \"block_sparse\": "
static void test_flex(void) {
  expect_case(FLEX "{}",
              ".block_sparse: needs one of the lists kv_num_blocks and kv_indices, from, and density");
  expect_case(FLEX "{\"density\": 0.5, \"from\": \"mask_mod\"}",
              ".block_sparse: needs one of the lists kv_num_blocks and kv_indices, from, and density");
  expect_case(FLEX "{\"from\": \"mask_mod\"}",
              ".block_sparse.from: \"mask_mod\", but the case has no mask_mod");
  expect_case(FLEX "{\"from\": \"mask_mod\", \"seed\": \"1\"}",
              ".block_sparse.seed: only density has a seed");
  expect_case(
      "\"family\": \"flex\", \"seqlen_q\": 100000, \"block_sparse\": {\"density\": 1, \"q_block\": 1, "
      "\"kv_block\": 1}",
      ".block_sparse: tensor kv_indices would have more elements than the limit 8589934592");
  expect_case(FLEX "{\"density\": 2}", ".block_sparse.density: 2 is not in 0 .. 1");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1]]]}", ".block_sparse.kv_indices: missing");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1]]], \"kv_indices\": [[[[0, 1]]]]}",
              ".block_sparse.kv_num_blocks: has 1 elements, must have 2");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": [[[[0, 1]]]]}",
              ".block_sparse: kv_num_blocks and kv_indices differ in size: 2 and 1 along axis 2");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": [[[[0, 1], [2, 0]]]]}",
              ".block_sparse.kv_indices: row 1 entry 0: 2 is not a key block in 0 .. 1");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 2]]], \"kv_indices\": [[[[0, 1], [1, 1]]]]}",
              ".block_sparse.kv_indices: row 1 entry 1: key block 1 is listed twice");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": [[[[0, 7], [1, 7]]]], "
                   "\"full_kv_num_blocks\": [[[0, 1]]], \"full_kv_indices\": [[[[0, 0], [1, 0]]]]}",
              ".block_sparse.full_kv_indices: row 1 entry 0: key block 1 is listed twice");
  expect_case(FLEX "{\"kv_num_blocks\": [[[3, 1]]], \"kv_indices\": [[[[0, 7], [1, 7]]]]}",
              ".block_sparse.kv_num_blocks[0]: 3 is not in 0 .. 2");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1], [1]]], \"kv_indices\": [[[[0, 7], [1, 7]]]]}",
              ".block_sparse.kv_num_blocks[0][1]: has 1 elements, the arrays beside it 2");
  expect_case(FLEX "{\"kv_num_blocks\": [[1, 1]]}",
              ".block_sparse.kv_num_blocks[0][0]: 1 is not an array, 1 more levels are needed");
  expect_case(FLEX "{\"kv_num_blocks\": [[[1, 1]], [[1, 1]], [[1, 1]]], \"kv_indices\": "
                   "[[[[0, 7], [1, 7]]], [[[0, 7], [1, 7]]], [[[0, 7], [1, 7]]]]}",
              ".block_sparse: lists for 3 batch entries; must be a divisor of batch 1");
  expect_case("\"family\": \"flex\", \"buffers\": {\"h\": {}}",
              ".buffers.h: the name has a meaning in score_mod already");
#define BUFFER(text) "\"family\": \"flex\", \"buffers\": {\"x\": {" text "}}"
  expect_case(
      BUFFER("\"dtype\": \"f64\""),
      ".buffers.x.dtype: \"f64\" is not one of \"f32\", \"f16\", \"bf16\", \"i32\", \"i64\", \"bool\"");
  expect_case(BUFFER("\"dtype\": \"i32\", \"below\": 2147483648"),
              ".buffers.x.below: 2147483648; an i32 buffer holds 0 .. below - 1, of at least 1 and at most "
              "2147483647");
  expect_case(BUFFER("\"dtype\": \"bf16\", \"below\": 2"),
              ".buffers.x.below: the buffer is bf16; i32 and i64 ones are drawn below a number");
  expect_case(BUFFER("\"dtype\": \"bool\", \"grad\": true"),
              ".buffers.x.grad: the buffer is bool and has no gradient");
  expect_case(BUFFER("\"dtype\": \"i64\", \"below\": 2, \"fill\": \"small\""),
              ".buffers.x.fill: the buffer is i64; f32, f16 and bf16 ones are filled");
  expect_case(BUFFER("\"share\": 0.5"),
              ".buffers.x: share: the buffer is f32; bool ones have a share that is true");
  expect_case(BUFFER("\"dtype\": \"bool\", \"share\": 2"), ".buffers.x.share: 2 is not in 0 .. 1");
  expect_case(BUFFER("\"shape\": [2, 3], \"strides\": [1]"), ".buffers.x.strides: 1 of them, and 2 axes");
  expect_case(BUFFER("\"shape\": [2, 3], \"strides\": [-3, 1]"),
              ".buffers.x.strides[0]: -3 is not an integer in 0 .. 8589934592");
  expect_case(BUFFER("\"shape\": [2, 3], \"strides\": [2, 1]"),
              ".buffers.x.strides: elements share memory; only an axis of stride 0 may repeat them");
  expect_case(BUFFER("\"shape\": [3], \"strides\": [8589934592]"),
              ".buffers.x.strides: the buffer spans more than 8589934592 elements");
  expect_case("\"family\": \"flex\", \"buffers\": {\"x\": {\"shape\": [1073741824, 1073741824]}}",
              ".buffers.x.shape: more than 8589934592 elements");
  expect_good(FLEX "{\"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": [[[[0, 7], [1, -7]]]]}");
}

/* The place is that of the wrong value, not of the case. */
static void test_places(void) {
  expect("{\"fa_cases\": 1, \"defaults\": {\"dtype\": \"f64\"}, \"cases\": [{\"dtype\": \"f16\"}]}",
         "x.json: $.defaults.dtype: \"f64\" is not one of \"f16\", \"bf16\", \"f32\"");
  expect("{\"fa_cases\": 1, \"defaults\": {\"heads_q\": 3}, \"cases\": [{}, {\"heads_kv\": 2}]}",
         "x.json: $.defaults.heads_q: 3 is not a multiple of heads_kv 2");
  expect("{\"fa_cases\": 1, \"defaults\": {\"heads_kv\": 2}, \"cases\": [{\"heads_q\": 3}]}",
         "x.json: $.cases[0].heads_q: 3 is not a multiple of heads_kv 2");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"heads_q\": [2, 3]}, \"base\": {\"heads_kv\": 2}}]}",
         "x.json: $.sweeps[0].over.heads_q[1]: 3 is not a multiple of heads_kv 2");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"seqlen_q\": [2, -3]}}]}",
         "x.json: $.sweeps[0].over.seqlen_q[1]: -3 is not an integer in 0 .. 1073741824");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"mask\": [{\"type\": \"none\"}, {\"type\": \"x\"}]}}]}",
         "x.json: $.sweeps[0].over.mask[1].type: \"x\" is not one of \"none\", \"causal\", \"window\", "
         "\"chunk\"");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"mask.type\": [\"none\", \"x\"]}}]}",
         "x.json: $.sweeps[0].over[\"mask.type\"][1]: \"x\" is not one of \"none\", \"causal\", \"window\", "
         "\"chunk\"");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"mask\": {\"type\": \"causal\"}}, \"over\": "
         "{\"mask.left\": "
         "[-1, 4]}}]}",
         "x.json: $.sweeps[0].over[\"mask.left\"][1]: 4, but only mask types \"window\" and \"chunk\" have a "
         "left edge");
  expect(
      "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"mask\": {\"left\": 4}}, \"over\": {\"mask.type\": "
      "[\"window\", \"causal\"]}}]}",
      "x.json: $.sweeps[0].base.mask.left: 4, but only mask types \"window\" and \"chunk\" have a left edge");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"batch.x\": [1]}}]}",
         "x.json: $.sweeps[0].over[\"batch.x\"]: batch is not an object, nothing is inside it");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"mask.typ\": [1]}}]}",
         "x.json: $.sweeps[0].over[\"mask.typ\"][0]: unknown key; did you mean \"type\"?");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"fill\": \"small\"}, \"over\": {\"fill.q\": "
         "[\"normal\"]}}]}",
         "x.json: $.sweeps[0].over: \"fill.q\": the base's \"fill\" is not an object");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"mask\": [{}], \"mask.type\": [\"none\"]}}]}",
         "x.json: $.sweeps[0].over: \"mask.type\" is inside \"mask\", which is swept too");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"seqlen_q\": 5}}]}",
         "x.json: $.sweeps[0].over.seqlen_q: 5 is not an array of values");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"seqlen_q\": []}}]}",
         "x.json: $.sweeps[0].over.seqlen_q: an empty array; a sweep needs values");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"name\": [\"a\"]}}]}",
         "x.json: $.sweeps[0].over.name: the name cannot be swept; names are made from the swept values");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"base\": {}}]}", "x.json: $.sweeps[0]: \"over\" is missing");
  expect("{\"fa_cases\": 1, \"sweeps\": [{\"over\": {}}]}",
         "x.json: $.sweeps[0].over: an empty object; a sweep needs keys");
  expect("{\"fa_cases\": 1, \"random\": [{\"count\": 3}]}", "x.json: $.random[0]: \"profile\" is missing");
  expect("{\"fa_cases\": 1, \"random\": [{\"count\": 3, \"profile\": \"x\"}]}",
         "x.json: $.random[0]: random cases cannot be made here (no generator)");
  expect("{\"fa_cases\": 1, \"random\": [{\"count\": 3, \"profile\": \"x\", \"seed\": 1}]}",
         "x.json: $.random[0].seed: 1 is a number, but 64-bit values are strings: a double holds no 64 bits");
  expect("{\"fa_cases\": 2}",
         "x.json: $.fa_cases: 2 is not a version of this format that can be read, which is 1");
  expect("{\"fa_cases\": 1, \"case\": []}", "x.json: $.case: unknown key; did you mean \"cases\"?");
  expect("{\"fa_cases\": 1, \"cases\": {}}", "x.json: $.cases: an object is not an array");
  expect("{\"fa_cases\": 1, \"cases\": [3]}", "x.json: $.cases[0]: 3 is not an object");
  expect("[]", "x.json: $: an array is not an object");
  expect("{\"seqlen_q\": 4}\n{\"seqlen_q\": -4}",
         "x.json: line 2: $.seqlen_q: -4 is not an integer in 0 .. 1073741824");
  expect("\n{\"seqlen_q\": -4}\n{}", "x.json: line 2: $.seqlen_q: -4 is not an integer in 0 .. 1073741824");
  expect("{\"seqlen_q\": 4}\n{\"seqlen_q\": ",
         "x.json:2:14: $.seqlen_q: a value expected, the text ends here");
}

static void test_sizes(void) {
  expect("{\"fa_cases\": 1, \"random\": [{\"count\": 100001, \"profile\": \"x\"}]}",
         "x.json: $.random[0].count: 100001 is not an integer in 1 .. 100000");
  /* 24^5 cases: rejected before any is made. */
  char list[200] = "[1", text[2000];
  for (int i = 2; i <= 24; ++i) snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", i);
  snprintf(text, sizeof text,
           "{\"fa_cases\": 1, \"sweeps\": [{\"over\": {\"seqlen_q\": %s], \"seqlen_k\": %s], \"batch\": %s], "
           "\"heads_q\": %s], \"head_dim\": %s]}}]}",
           list, list, list, list, list);
  expect(text, "x.json: $.sweeps[0]: with its 7962624 cases the file has more than 100000");
  /* A long array times many cases: 24^3 times 4 x 5000 bytes would be a quarter of a gigabyte. */
  static char array[20000], bomb[30000];
  for (int i = 0; i < 5000; ++i) memcpy(array + 2 * i, i ? ",0" : " 0", 2);
  snprintf(bomb, sizeof bomb,
           "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"batch\": 5000, \"seqused_k\": [%s]}, \"over\": "
           "{\"seqlen_q\": "
           "%s], \"seqlen_k\": %s], \"head_dim\": %s]}}]}",
           array, list, list, list);
  expect(bomb, "x.json: $.sweeps[0]: the arrays and texts of the file's cases are more than 134217728 bytes");
}

static void test_files(void) {
  fa_case_list l = {0};
  fa_error err;
  CHECK(fa_case_file_load("no/such/file.json", NULL, &l, &err) == FA_ERR_IO);
  CHECK_MSG(strcmp(err.text, "no/such/file.json: No such file or directory") == 0, "%s", err.text);
  CHECK(fa_case_file_load("tests", NULL, &l, &err) == FA_ERR_IO);
  CHECK_MSG(strcmp(err.text, "tests: Is a directory") == 0, "%s", err.text);
  CHECK(fa_case_file_load("no/such/file.json", NULL, &l, NULL) == FA_ERR_IO); /* err may be NULL */
  CHECK(fa_case_file_parse("{", 1, "x", NULL, &l, NULL) == FA_ERR_INPUT);
  CHECK(fa_case_file_parse("{\"a\":1}", 7, "x", NULL, &l, NULL) == FA_ERR_INPUT);
  CHECK(l.n == 0 && l.v == NULL);
}

int main(void) {
  test_text();
  test_objects();
  test_values();
  test_countless();
  test_contradictions();
  test_combinations();
  test_lse_layout();
  test_kvcache();
  test_flex();
  test_places();
  test_sizes();
  test_files();
  return check_done();
}
