#include "load.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static struct options opt;
static char *names, *block;
static uint16_t *offsets;

static struct {
  uint64_t opens, closes;        /* as planned */
  uint64_t opened, closed;       /* as it came */
  uint64_t cpu_opened, cpu_closed;
  uint64_t done, hits, misses, wrong, errors, gets, sets;
  uint64_t most;
  uint64_t buckets[64 * 60];
} load;

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("hiredis: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static double number(const char *flag, const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (*text == '\0' || *end != '\0' || !(value >= 0) || isinf(value)) die("%s %s: not a number", flag, text);
  return value;
}

void load_options(int argc, char **argv, struct options *options) {
  opt = (struct options){.host = "127.0.0.1", .port = 6379, .operation = "get", .in_flight = 1, .batch = 64,
                         .keys = 100000, .key_size = 16, .value_size = 512, .warmup = 1, .duration = 2,
                         .seed = 1, .connections = 1};
  for (int i = 1; i < argc; i++) {
    const char *flag = argv[i];
    if (!strcmp(flag, "--cluster")) { opt.cluster = 1; continue; }
    if (!strcmp(flag, "--misses")) { opt.misses = 1; continue; }
    if (i + 1 == argc) die("%s: unknown, or has no value", flag);
    const char *value = argv[++i];
    if (!strcmp(flag, "--host")) opt.host = value;
    else if (!strcmp(flag, "--port")) opt.port = (int)number(flag, value);
    else if (!strcmp(flag, "--operation")) opt.operation = value;
    else if (!strcmp(flag, "--in-flight")) opt.in_flight = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--style")) {
      opt.batches = !strcmp(value, "batch");
      if (!opt.batches && strcmp(value, "wait")) die("--style %s: wait or batch", value);
    } else if (!strcmp(flag, "--batch")) opt.batch = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--keys")) opt.keys = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--key-size")) opt.key_size = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--value-size")) opt.value_size = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--warmup")) opt.warmup = number(flag, value);
    else if (!strcmp(flag, "--duration")) opt.duration = number(flag, value);
    else if (!strcmp(flag, "--seed")) opt.seed = strtoull(value, NULL, 10);
    else if (!strcmp(flag, "--connections")) opt.connections = (unsigned)number(flag, value);
    else if (!strcmp(flag, "--json")) { if (strcmp(value, "-")) die("--json %s: only -", value); }
    else die("%s: unknown", flag);
  }
  if (!strcmp(opt.operation, "get")) opt.set_below = 0;
  else if (!strcmp(opt.operation, "set")) opt.set_below = 1ULL << 32;
  else if (!strcmp(opt.operation, "mixed")) opt.set_below = 858993459;
  else die("--operation %s: get, set or mixed", opt.operation);
  if (opt.keys == 0 || opt.in_flight == 0 || opt.batch == 0 || opt.connections == 0)
    die("keys, in-flight, batch and connections are at least 1");
  if (opt.key_size < 5) die("--key-size: at least 5");
  if (opt.batches && opt.in_flight % opt.batch != 0) die("--in-flight: not a multiple of the batch");
  *options = opt;
}

/* SplitMix64 */
static const uint64_t gamma64 = 0x9e3779b97f4a7c15;

static inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void load_prepare(const struct options *options) {
  opt = *options;
  names = malloc((size_t)opt.keys * opt.key_size + 1);
  offsets = malloc(opt.keys * sizeof *offsets);
  block = malloc(4096 + (size_t)opt.value_size);
  for (unsigned i = 0; i < opt.keys; i++) {
    char *name = names + (size_t)i * opt.key_size;
    snprintf(name, opt.key_size + 1, "%s%0*u", opt.misses ? "mis:" : "key:", (int)opt.key_size - 4, i);
    offsets[i] = (uint16_t)(mix(i) & 4095);
  }
  for (unsigned i = 0; i < 4096 + opt.value_size; i++)
    block[i] = (char)('a' + (((mix(1 + i * gamma64) >> 32) * 26) >> 32));
}

uint64_t load_stream(unsigned caller) { return mix(opt.seed + mix(caller + 1)); }

struct operation load_draw(uint64_t *state) {
  *state += gamma64;
  uint64_t word = mix(*state);
  struct operation operation = {(uint32_t)(((word >> 32) * opt.keys) >> 32),
                                (word & 0xffffffff) < opt.set_below};
  if (operation.set) load.sets++;
  else load.gets++;
  return operation;
}

const char *load_key(uint32_t number) { return names + (size_t)number * opt.key_size; }
const char *load_value(uint32_t number) { return block + offsets[number]; }

uint64_t load_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t cpu(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000 +
         (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

void load_start(void) {
  load.opens = load_now() + (uint64_t)(opt.warmup * 1e9);
  load.closes = UINT64_MAX;
}

/* 64 buckets for every power of two; below 128 one for every number. */
static unsigned bucket_of(uint64_t value) {
  if (value < 128) return (unsigned)value;
  unsigned shift = (unsigned)(63 - __builtin_clzll(value)) - 6;
  return shift * 64 + (unsigned)(value >> shift);
}

static uint64_t bucket_end(unsigned bucket) {
  if (bucket < 128) return bucket;
  unsigned shift = bucket / 64 - 1;
  return ((uint64_t)(bucket - shift * 64 + 1) << shift) - 1;
}

int load_count(enum outcome outcome, uint64_t begun, uint64_t now) {
  if (load.opened == 0 && now >= load.opens) {
    load.opened = now;
    load.closes = now + (uint64_t)(opt.duration * 1e9);
    load.cpu_opened = cpu();
  }
  if (load.closed == 0 && now >= load.closes) {
    load.closed = now;
    load.cpu_closed = cpu();
  }
  int within = load.opened != 0 && load.closed == 0;
  switch (outcome) {
    case HIT: if (within) load.hits++; break;
    case STORED: break;
    case MISS:
      if (within) load.misses++;
      if (!opt.misses) within = 0;
      break;
    case WRONG: load.wrong++; within = 0; break;
    case FAILED: load.errors++; within = 0; break;
  }
  if (within) {
    uint64_t took = now - begun;
    load.done++;
    load.buckets[bucket_of(took)]++;
    if (took > load.most) load.most = took;
  }
  return load.closed == 0;
}

static uint64_t percentile(double share) {
  uint64_t rank = (uint64_t)ceil(share * (double)load.done), seen = 0;
  for (unsigned i = 0; i < sizeof load.buckets / sizeof *load.buckets; i++) {
    seen += load.buckets[i];
    if (seen >= rank && seen > 0) return bucket_end(i) < load.most ? bucket_end(i) : load.most;
  }
  return 0;
}

void load_report(const char *client, const char *version, unsigned connections, const char *notes) {
  double seconds = (double)(load.closed - load.opened) / 1e9;
  uint64_t state = load_stream(0), sum = 0;
  for (int i = 0; i < 1000; i++) sum += mix(state += gamma64);
  printf("{\"schema\": \"redis-client-compare-peer/1\", \"client\": \"%s\", \"version\": \"%s\", "
         "\"runtime\": \"gcc %s\", \"operation\": \"%s\", \"ops_per_sec\": %.1f, \"duration_sec\": %.6f, "
         "\"total_ops\": %lu, \"hits\": %lu, \"misses\": %lu, \"wrong\": %lu, \"errors\": %lu, "
         "\"latency\": {\"p50\": %lu, \"p90\": %lu, \"p95\": %lu, \"p99\": %lu, \"p99_9\": %lu, \"max\": %lu}, "
         "\"cpu_ns\": %lu, \"all_get\": %lu, \"all_set\": %lu, \"connections\": %u, "
         "\"stream_check\": \"0x%lx\", \"notes\": [%s]}\n",
         client, version, __VERSION__, opt.operation, (double)load.done / seconds, seconds, load.done,
         load.hits, load.misses, load.wrong, load.errors, percentile(0.5), percentile(0.9), percentile(0.95),
         percentile(0.99), percentile(0.999), load.most, load.cpu_closed - load.cpu_opened, load.gets,
         load.sets, connections, sum, notes);
}
