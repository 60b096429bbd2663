/* What a run has to say (tracer/launch/message.h): JSON without a library, in fixed memory; what does not fit is cut.
 */
#include "tracer/binary/engine.h"

static void add(struct bin_text* text, char c) {
  if (text->at + 1 < text->end) {
    *text->at++ = c;
    *text->at = 0;
  }
}

void bin_text_add(struct bin_text* text, const char* s) {
  while (*s) add(text, *s++);
}

void bin_text_number(struct bin_text* text, uint64_t number, unsigned base) {
  char digits[24];
  int n = 0;
  do digits[n++] = "0123456789abcdef"[number % base];
  while ((number /= base) != 0);
  while (n) add(text, digits[--n]);
}

void bin_text_json(struct bin_text* text, const char* s) {
  add(text, '"');
  for (; *s && text->end - text->at > 16; s++) {
    unsigned char c = (unsigned char)*s;
    if (c < 0x20 || c >= 0x7f) {
      bin_text_add(text, "\\u00");
      add(text, "0123456789abcdef"[c >> 4]);
      add(text, "0123456789abcdef"[c & 15]);
    } else {
      if (c == '"' || c == '\\') add(text, '\\');
      add(text, (char)c);
    }
  }
  add(text, '"');
}

static const char* kind_text(unsigned kind) {
  static const char* const names[] = {
#define STEM_EVENT(Name, text, visible) text,
#include "trace/events.def"
  };
  return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static void add_site(struct bin_text* text, uint64_t key) {
  bin_text_add(text, "\"site\":\"");
  for (int shift = 60; shift >= 0; shift -= 4) add(text, "0123456789abcdef"[key >> shift & 15]);
  bin_text_add(text, "\"");
}

void bin_text_operation(struct bin_text* text, const char* name, unsigned kind_plus_1, uint64_t key) {
  bin_text_add(text, ",\"");
  bin_text_add(text, name);
  bin_text_add(text, "\":{");
  if (kind_plus_1) {
    bin_text_add(text, "\"op\":\"");
    bin_text_add(text, kind_text(kind_plus_1 - 1));
    bin_text_add(text, key ? "\"," : "\"");
  }
  if (key) add_site(text, key);
  bin_text_add(text, "}");
}

void bin_text_threads(struct bin_text* text) {
  bin_text_add(text, "\"threads\":[");
  for (uint32_t i = 0; i < bin.live_count; i++) {
    struct bin_thread* t = bin.live[i];
    if (text->end - text->at < BIN_MAX_PATH * 2 + 300) break;
    if (i) bin_text_add(text, ",");
    bin_text_add(text, "{\"thread\":");
    bin_text_json(text, t->path);
    if (t->state == BIN_PARKED && !t->pending.arriving) {
      bin_text_add(text, ",\"op\":\"");
      bin_text_add(text, kind_text(t->pending.kind));
      bin_text_add(text, "\"");
      if (t->pending.addr) {
        bin_text_add(text, ",\"addr\":\"");
        bin_text_number(text, t->pending.addr, 16);
        bin_text_add(text, "\"");
      }
      uint64_t key = t->pending.site ? stem_host_key(t->pending.site) : 0;
      if (key) {
        bin_text_add(text, ",");
        add_site(text, key);
      }
      int owner = t->pending.kind == STEM_KIND_Lock && !(t->pending.arg & 1) ? ((const int*)t->pending.addr)[2] : 0;
      for (uint32_t k = bin.thread_count; owner && k-- > 0;)
        if (bin.all[k]->tid == owner) {
          bin_text_add(text, ",\"holder\":");
          bin_text_json(text, bin.all[k]->path);
          if (bin.all[k]->state == BIN_ENDED) bin_text_add(text, ",\"ended\":1");
          break;
        }
    }
    bin_text_add(text, "}");
  }
  bin_text_add(text, "]");
}

void bin_message(const char* json) {
  size_t n = 0;
  while (json[n]) n++;
  bin_blob(STEM_BLOB_MESSAGE, json, n);
}

void bin_note(const char* why) {
  char buffer[1024];
  struct bin_text text = {buffer, buffer + sizeof buffer};
  bin_text_add(&text, "{\"kind\":\"note\",\"why\":");
  bin_text_json(&text, why);
  bin_text_add(&text, "}");
  bin_message(buffer);
}

void bin_deadlock(void) {
  static char buffer[65536];
  struct bin_text text = {buffer, buffer + sizeof buffer};
  bin_text_add(&text, "{\"kind\":\"deadlock\",");
  bin_text_threads(&text);
  bin_text_add(&text, "}");
  bin_message(buffer);
  bin_finish(BIN_DEADLOCK, STEM_EXIT_DEADLOCK);
  stem_host_exit(STEM_EXIT_DEADLOCK);
}
