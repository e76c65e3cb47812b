#include "fuzz/manual/roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_LINE = 78 };

/* How the character is written so that roff prints just it. "-" would become a hyphen, which no shell knows. */
static const char *escaped(char c, char *one) {
  switch (c) {
  case '\\':
    return "\\e";
  case '-':
    return "\\-";
  case '\'':
    return "\\(aq";
  case '`':
    return "\\(ga";
  case '^':
    return "\\(ha";
  case '~':
    return "\\(ti";
  default:
    one[0] = c;
    return one;
  }
}

typedef enum font { ROMAN, BOLD, ITALIC } font;

/* The font of a usage's character that stands behind one in the font `last`. A word that begins with a capital
 * letter stands for something to its end, as REPORT.json does. */
static font usage_font(const char *text, size_t i, font last) {
  const bool within = i > 0 && (isalnum((unsigned char)text[i - 1]) || strchr("._-", text[i - 1]));
  if (strncmp(text + i, "...", 3) == 0 || (text[i] == '.' && i > 0 && text[i - 1] == '.' && last == ROMAN))
    return ROMAN;
  if (strchr("[]|:, ", text[i])) return ROMAN;
  if (within && last != ROMAN) return last;
  return isupper((unsigned char)text[i]) ? ITALIC : BOLD;
}

/* A text of words; `font_of` NULL: all in one font. Lines are broken between words; `more` is put before each break. */
static void put_words(FILE *out, const char *text, font (*font_of)(const char *, size_t, font), font all,
                      const char *more) {
  static const char *const names[] = {"\\fR", "\\fB", "\\fI"};
  char word[512];
  size_t used = 0;
  int at = 0;
  font now = ROMAN;
  for (size_t i = 0;; ++i) {
    if (text[i] == ' ' || text[i] == 0) {
      if (at > 0 && at + 1 + (int)used > MAX_LINE) {
        fprintf(out, "%s\n", more);
        at = 0;
      } else if (at > 0) {
        at += fprintf(out, " ");
      }
      at += fprintf(out, "%s%.*s", at == 0 && word[0] == '.' && used ? "\\&" : "", (int)used, word);
      used = 0;
      if (text[i] == 0) break;
      continue;
    }
    char one[2] = "";
    const font f = font_of ? font_of(text, i, now) : all;
    used += (size_t)snprintf(word + used, sizeof word - used, "%s%s", f != now ? names[f] : "",
                             escaped(text[i], one));
    now = f;
  }
  fprintf(out, "%s\n", now != ROMAN ? names[ROMAN] : "");
}

void fa_roff_prose(FILE *out, const char *text) {
  put_words(out, text, NULL, ROMAN, "");
}

void fa_roff_command(FILE *out, const char *text) {
  put_words(out, text, NULL, BOLD, " \\");
}

void fa_roff_usage(FILE *out, const char *text) {
  put_words(out, text, usage_font, ROMAN, " \\");
}
