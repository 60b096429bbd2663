/* Text without stdio or malloc: messages in JSON, and the last words of a runtime that cannot go on. */
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

static void add_char(struct stem_text* text, char c) {
  if (text->at + 1 < text->end) {
    *text->at++ = c;
    *text->at = 0;
  }
}

void stem_text_add(struct stem_text* text, const char* s) {
  while (*s) add_char(text, *s++);
  if (text->at < text->end) *text->at = 0;
}

void stem_text_number(struct stem_text* text, uint64_t number, unsigned base) {
  char digits[24];
  int n = 0;
  do digits[n++] = "0123456789abcdef"[number % base];
  while ((number /= base) != 0);
  while (n) add_char(text, digits[--n]);
}

/* Length of the valid UTF-8 sequence at s, 0 if there is none. */
static size_t utf8(const unsigned char* s, size_t left) {
  size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  if (n == 0 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) return 0;
  if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))) return 0;
  return n;
}

/* A byte that is not part of UTF-8 becomes the character of that number: readable, and always valid JSON. */
void stem_text_json(struct stem_text* text, const char* string, size_t length) {
  const unsigned char* s = (const unsigned char*)string;
  add_char(text, '"');
  for (size_t i = 0; i < length;) {
    size_t n = utf8(s + i, length - i);
    if (text->end - text->at < 16) break; /* cut between characters, and leave room for what closes the message */
    if (n == 0 || s[i] < 0x20 || s[i] == 0x7f) {
      stem_text_add(text, "\\u00");
      add_char(text, "0123456789abcdef"[s[i] >> 4]);
      add_char(text, "0123456789abcdef"[s[i] & 15]);
      i++;
    } else {
      if (s[i] == '"' || s[i] == '\\') add_char(text, '\\');
      for (; n; n--) add_char(text, (char)s[i++]);
    }
  }
  add_char(text, '"');
}

void stem_text_site(struct stem_text* text, const void* site) {
  uint64_t key = stem_site_key(site);
  add_char(text, '"');
  for (int shift = 60; shift >= 0; shift -= 4) add_char(text, "0123456789abcdef"[key >> shift & 15]);
  add_char(text, '"');
}

static void to_stderr(const char* prefix, const char* s) {
  char buffer[4096];
  struct stem_text text = {buffer, buffer + sizeof buffer};
  stem_text_add(&text, prefix);
  stem_text_add(&text, s);
  if (text.at == text.end) text.at--;
  *text.at++ = '\n';
  stem_sys(SYS_write, 2, buffer, text.at - buffer);
}

void stem_message(struct stem_thread* self, const char* json) {
  size_t n = __builtin_strlen(json);
  if (stem_on) stem_blob(self, STEM_BLOB_MESSAGE, json, n);
  if (!stem_launched) to_stderr("stem: ", json);
}

static void message_why(const char* kind, const char* why, const void* site) {
  char buffer[1024];
  struct stem_text text = {buffer, buffer + sizeof buffer};
  stem_text_add(&text, "{\"kind\":\"");
  stem_text_add(&text, kind);
  stem_text_add(&text, "\",\"why\":");
  stem_text_json(&text, why, __builtin_strlen(why));
  if (site) {
    stem_text_add(&text, ",\"site\":");
    stem_text_site(&text, site);
  }
  stem_text_add(&text, "}");
  stem_message(stem_self(), buffer);
}

void stem_note(const char* why) { message_why("note", why, 0); }
void stem_refuse(const char* why, const void* site) { message_why("refused", why, site); }

void stem_die(const char* why) {
  to_stderr("stem: ", why);
  stem_sys(SYS_exit_group, 3, 0, 0);
  __builtin_trap();
}
