/* Parses and runs the PTX that FormulaPtx writes. The parser knows only the instructions of this PTX. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cuda_ptx.h"
#include "stub_cuda_streams.h"

enum { MOST_NAMES = 20000, MOST_OPERANDS = 5, THREADS = 256, NAME_BYTES = 24 };

#define INSTRUCTIONS(X) \
  X(MOV_U32, "mov.u32") X(MOV_U64, "mov.u64") X(MOV_B32, "mov.b32") \
  X(PARAM_U32, "ld.param.u32") X(PARAM_U64, "ld.param.u64") \
  X(REM, "rem.u32") X(DIV, "div.u32") X(AND, "and.b32") X(OR, "or.b32") X(XOR, "xor.b32") \
  X(SHL, "shl.b32") X(SHR, "shr.u32") X(ADD, "add.u32") X(ADD_LONG, "add.u64") X(SUB, "sub.u32") \
  X(MUL, "mul.lo.u32") X(MUL_LONG, "mul.lo.u64") X(MAD, "mad.lo.u32") X(MAD_LONG, "mad.lo.u64") \
  X(MAD_SIGNED, "mad.lo.s64") X(MAD_WIDE, "mad.wide.u32") X(MAX, "max.u32") X(MIN, "min.u32") \
  X(CVT_LONG, "cvt.u64.u32") X(CVT_SIGNED, "cvt.s64.s32") X(CVT_SHORT, "cvt.u16.u32") \
  X(CVT_INT, "cvt.u32.u16") X(HALF_TO_FLOAT, "cvt.f32.f16") X(FLOAT_TO_HALF, "cvt.rn.f16.f32") \
  X(INT_TO_FLOAT, "cvt.rn.f32.s32") X(GE, "setp.ge.u32") X(GT, "setp.gt.u32") X(LT, "setp.lt.u32") \
  X(EQ, "setp.eq.u32") X(EQ_FLOAT, "setp.eq.f32") X(LE_AND, "setp.le.and.u32") X(SELECT, "selp.b32") \
  X(ADD_FLOAT, "add.rn.f32") X(SUB_FLOAT, "sub.rn.f32") X(MUL_FLOAT, "mul.rn.f32") \
  X(DIV_FLOAT, "div.rn.f32") X(LOAD_BYTE, "ld.global.nc.u8") X(LOAD_INT, "ld.global.nc.u32") \
  X(LOAD_FLOAT, "ld.global.nc.f32") X(STORE_FOUR, "st.global.v4.b32") X(STORE_INT, "st.global.b32") \
  X(STORE_SHORT, "st.global.b16") X(BRANCH, "bra") X(RETURN, "ret")

enum opcode {
#define KIND(kind, name) kind,
  INSTRUCTIONS(KIND) UNKNOWN
};

static const char *const names[] = {
#define NAME(kind, name) name,
    INSTRUCTIONS(NAME)};

struct instruction {
  enum opcode kind;
  int guard;
  int operand[MOST_OPERANDS];
  int64_t offset;
};

/* Registers, constants, tables and labels each have a number and an initial value. */
struct program {
  struct instruction *code;
  int length, count, table_count;
  char name[MOST_NAMES][NAME_BYTES];
  uint64_t initial[MOST_NAMES];
  uint32_t *tables[64];
  size_t table_bytes[64];
};

static int number_of(struct program *all, const char *name) {
  for (int i = 0; i < all->count; i++) {
    if (strcmp(all->name[i], name) == 0) {
      return i;
    }
  }
  if (all->count == MOST_NAMES || strlen(name) >= NAME_BYTES) {
    return -1;
  }
  strcpy(all->name[all->count], name);
  all->initial[all->count] =
      name[0] == '-' ? (uint64_t)strtoll(name, NULL, 10) : strtoull(name, NULL, 10);
  return all->count++;
}

static int parse_table(struct program *all, const char *line) {
  char name[NAME_BYTES];
  int length;
  if (sscanf(line, ".global .align 4 .b32 %23[a-z0-9][%d]", name, &length) != 2 ||
      all->table_count == 64) {
    return 0;
  }
  uint32_t *table = malloc(4 * (size_t)length);
  const char *at = strchr(line, '{');
  for (int i = 0; i < length; i++) {
    char *end;
    table[i] = (uint32_t)strtoll(at + 1, &end, 10);
    at = end;
  }
  all->tables[all->table_count] = table;
  all->table_bytes[all->table_count++] = 4 * (size_t)length;
  all->initial[number_of(all, name)] = (uintptr_t)table;
  return *at == '}';
}

static int parse_instruction(struct program *all, char *line) {
  struct instruction *one = &all->code[all->length];
  *one = (struct instruction){.kind = UNKNOWN, .guard = -1};
  char *rest = line;
  if (line[0] == '@') {
    one->guard = number_of(all, strtok_r(line + 1, " ", &rest));
  }
  char *name = strtok_r(rest == line ? line : NULL, " ;", &rest);
  for (int i = 0; name && i < UNKNOWN; i++) {
    if (strcmp(name, names[i]) == 0) {
      one->kind = (enum opcode)i;
    }
  }
  int operands = 0;
  for (char *word; (word = strtok_r(NULL, " ,;[]{}", &rest)) != NULL;) {
    char *plus = strchr(word, '+');
    if (plus) {
      one->offset = strtoll(plus + 1, NULL, 10);
      *plus = 0;
    }
    if (operands == MOST_OPERANDS || (one->operand[operands++] = number_of(all, word)) < 0) {
      return 0;
    }
  }
  all->length++;
  return one->kind != UNKNOWN;
}

struct program *stub_parse_ptx(const char *text) {
  struct program *all = calloc(1, sizeof *all);
  char *copy = strdup(text);
  size_t lines = 1;
  for (const char *at = text; *at; at++) {
    lines += *at == '\n';
  }
  all->code = calloc(lines, sizeof *all->code);
  int known = 1;
  int begun = 0;
  char *next;
  for (char *line = strtok_r(copy, "\n", &next); line && known; line = strtok_r(NULL, "\n", &next)) {
    size_t length = strlen(line);
    if (strncmp(line, ".global", 7) == 0) {
      known = parse_table(all, line);
    } else if (!begun) {
      begun = line[0] == '{';
    } else if (line[length - 1] == ':') {
      line[length - 1] = 0;
      all->initial[number_of(all, line)] = (uint64_t)all->length;
    } else if (line[0] != '.' && line[0] != '}') {
      known = parse_instruction(all, line);
    }
  }
  free(copy);
  if (!known) {
    stub_free_ptx(all);
    return NULL;
  }
  return all;
}

void stub_free_ptx(struct program *program) {
  for (int i = 0; i < program->table_count; i++) {
    free(program->tables[i]);
  }
  free(program->code);
  free(program);
}

/* The last accessed memory, which the next access mostly uses, too. */
struct range {
  uintptr_t start, end;
};

static int touches(const struct program *all, struct range *last, uintptr_t at, size_t bytes) {
  if (at >= last->start && at + bytes <= last->end) {
    return 1;
  }
  for (int i = 0; i < all->table_count; i++) {
    uintptr_t start = (uintptr_t)all->tables[i];
    if (at >= start && at + bytes <= start + all->table_bytes[i]) {
      return 1;
    }
  }
  struct block *block = stub_block(at, bytes, DEVICE);
  if (block) {
    *last = (struct range){block->start, block->start + block->bytes};
  }
  return block != NULL;
}

static float as_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

static uint64_t as_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float from_half(uint64_t bits) {
  uint16_t low = (uint16_t)bits;
  _Float16 half;
  memcpy(&half, &low, sizeof half);
  return (float)half;
}

static uint64_t to_half(float value) {
  _Float16 half = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

static int run_thread(
    const struct program *all, const uint8_t *parameter, uint64_t *r, struct range *last) {
  for (int at = 0; at < all->length; at++) {
    const struct instruction *one = &all->code[at];
    if (one->guard >= 0 && !r[one->guard]) {
      continue;
    }
    const int *o = one->operand;
    uint64_t a = r[o[1]], b = r[o[2]], c = r[o[3]], to = r[o[0]];
    uint32_t low = (uint32_t)a, other = (uint32_t)b;
    uint64_t address = (o[1] >= 0 ? a : 0) + (uint64_t)one->offset;
    switch (one->kind) {
      case MOV_U32: case MOV_B32: case CVT_LONG: to = low; break;
      case MOV_U64: to = a; break;
      case PARAM_U32: to = 0; memcpy(&to, parameter + one->offset, 4); break;
      case PARAM_U64: memcpy(&to, parameter + one->offset, 8); break;
      case REM: to = low % other; break;
      case DIV: to = low / other; break;
      case AND: to = low & other; break;
      case OR: to = low | other; break;
      case XOR: to = low ^ other; break;
      case SHL: to = other > 31 ? 0 : low << other; break;
      case SHR: to = other > 31 ? 0 : low >> other; break;
      case ADD: to = low + other; break;
      case ADD_LONG: to = a + b; break;
      case SUB: to = low - other; break;
      case MUL: to = low * other; break;
      case MUL_LONG: to = a * b; break;
      case MAD: to = low * other + (uint32_t)c; break;
      case MAD_LONG: case MAD_SIGNED: to = a * b + c; break;
      case MAD_WIDE: to = (uint64_t)low * other + c; break;
      case MAX: to = low > other ? low : other; break;
      case MIN: to = low < other ? low : other; break;
      case CVT_SIGNED: to = (uint64_t)(int64_t)(int32_t)low; break;
      case CVT_SHORT: case CVT_INT: to = (uint16_t)low; break;
      case HALF_TO_FLOAT: to = as_bits(from_half(a)); break;
      case FLOAT_TO_HALF: to = to_half(as_float(a)); break;
      case INT_TO_FLOAT: to = as_bits((float)(int32_t)low); break;
      case GE: to = low >= other; break;
      case GT: to = low > other; break;
      case LT: to = low < other; break;
      case EQ: to = low == other; break;
      case EQ_FLOAT: to = as_float(a) == as_float(b); break;
      case LE_AND: to = low <= other && c; break;
      case SELECT: to = c ? low : other; break;
      case ADD_FLOAT: to = as_bits(as_float(a) + as_float(b)); break;
      case SUB_FLOAT: to = as_bits(as_float(a) - as_float(b)); break;
      case MUL_FLOAT: to = as_bits(as_float(a) * as_float(b)); break;
      case DIV_FLOAT: to = as_bits(as_float(a) / as_float(b)); break;
      case LOAD_BYTE:
        if (!touches(all, last, address, 1)) {
          return 0;
        }
        to = *(const uint8_t *)address;
        break;
      case LOAD_INT: case LOAD_FLOAT:
        if (address % 4 != 0 || !touches(all, last, address, 4)) {
          return 0;
        }
        to = *(const uint32_t *)address;
        break;
      case STORE_FOUR: case STORE_INT: case STORE_SHORT: {
        int words = one->kind == STORE_FOUR ? 4 : 1;
        size_t bytes = one->kind == STORE_SHORT ? 2 : 4;
        address = to + (uint64_t)one->offset;
        if (address % (words * bytes) != 0 || !touches(all, last, address, words * bytes)) {
          return 0;
        }
        for (int i = 0; i < words; i++) {
          memcpy((void *)(address + i * bytes), &r[o[1 + i]], bytes);
        }
        continue;
      }
      case BRANCH: at = (int)to - 1; continue;
      case RETURN: return 1;
      case UNKNOWN: return 0;
    }
    r[o[0]] = to;
  }
  return 1;
}

int stub_run_ptx(const struct program *program, const void *parameter, unsigned int blocks) {
  struct program *all = (struct program *)program;
  int thread = number_of(all, "%tid.x");
  int block = number_of(all, "%ctaid.x");
  size_t bytes = (size_t)all->count * sizeof(uint64_t);
  uint64_t *registers = malloc(bytes);
  memcpy(registers, all->initial, bytes);
  struct range last = {0, 0};
  int touched = 1;
  for (unsigned int i = 0; touched && i < blocks * THREADS; i++) {
    /* Instructions write no constants, so only these two registers must be set for each thread. */
    registers[thread] = i % THREADS;
    registers[block] = i / THREADS;
    touched = run_thread(all, parameter, registers, &last);
  }
  free(registers);
  return touched;
}
