/* Shadows of private memory: reading back in other sizes than it was written gives expressions over the same values. Checked
 * by evaluating the recorded expressions (the script) against the concrete value printed here. */
#include <stdio.h>

#include "hooks.h"

static uint64_t shared = 0x1122334455667788;
static unsigned char memory[64];

static void check(unsigned at, unsigned size) {
  uint64_t value = 0;
  memcpy(&value, memory + at, size);
  uint32_t id = __stem_shadow_get(memory + at, size, value);
  if (id) __stem_pin(id, value, SITE());
  printf("%u %u %d\n", at, size, id != 0);
}

int main(void) {
  uint64_t v = hook_load(&shared, 8 | STEM_AUX_LEAF, SITE(), 8);
  uint32_t id = __stem_tls.result_id;
  for (unsigned i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)i;
  memcpy(memory + 8, &v, 8);
  __stem_shadow_set(memory + 8, 8, id);
  check(8, 8);   /* whole */
  check(8, 4);   /* low half */
  check(12, 4);  /* high half */
  check(11, 2);  /* middle */
  check(6, 4);   /* half concrete */
  check(12, 8);  /* across its end */
  check(0, 8);   /* concrete */
  uint32_t low = __stem_convert(STEM_OP_Trunc, 16, 64, 0, id);
  memcpy(memory + 21, &v, 2);
  __stem_shadow_set(memory + 21, 2, low); /* unaligned */
  check(20, 4);
  __stem_shadow_copy(memory + 40, memory + 8, 8);
  memmove(memory + 40, memory + 8, 8);
  check(40, 8);
  check(41, 4);
  __stem_shadow_set(memory + 10, 2, 0); /* overwritten by a constant */
  memory[10] = memory[11] = 0xee;
  check(8, 8);
  __stem_shadow_clear(memory, sizeof memory);
  check(8, 8);
  printf("live %u\n", __stem_tls.shadow_live);
  uint32_t flag = __stem_binary(STEM_OP_Ult, 64, id, 0, 0, 5);
  __stem_pin(flag, v < 5, SITE());
  uint32_t chosen = __stem_ite(64, flag, id, 0, 0, 77);
  __stem_pin(chosen, v < 5 ? v : 77, SITE());
  return 0;
}
